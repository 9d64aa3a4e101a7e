/* Hierarchies: what is asked for, what is found, and what is said when it is not. */
#include "fake.h"

static struct hr_error e;

static int count_arrays(const struct reader *r)
{
    const struct array *const *arrays;
    return reader_arrays(r, &arrays);
}

static void consolidated_v3_is_one_request(void)
{
    struct fake f =
        FAKE({"zarr.json",
              "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"t\": 1}, "
              "\"consolidated_metadata\": {\"kind\": \"inline\", \"must_understand\": false, "
              "\"metadata\": {\"g/a\": " V3_ARRAY("[4, 6]", "[2, 3]") ", \"g\": " V3_GROUP "}}}"});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check(reader_consolidated(r));
    check_str(reader_format(r), "zarr v3");
    check_eq(f.requests, 1);
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(f.requests, 1);
    check_eq(count_arrays(r), 1);
    const struct array *x = reader_find(r, "g/a");
    if (check(x && !x->problem)) {
        check_eq(x->n_chunks, 4);
        check_eq(x->zarr_format, 3);
    }
    const struct group *groups;
    check_eq(reader_groups(r, &groups), 2);
    check_str(groups[0].path, "");
    check(json_get(groups[0].attributes, "t") != NULL);
    reader_free(r);
}

static void consolidated_null_reads_nodes_one_by_one(void)
{
    struct fake f =
        FAKE({"zarr.json",
              "{\"zarr_format\": 3, \"node_type\": \"group\", \"consolidated_metadata\": null}"},
             {"a/zarr.json", V3_ARRAY("[4]", "[4]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check(!reader_consolidated(r));
    check_eq(fake_want(&f, r, "a", &e), READER_READY);
    check(reader_find(r, "a") != NULL);
    reader_free(r);
}

static void zmetadata_gives_arrays_in_any_member_order(void)
{
    struct fake f =
        FAKE({".zmetadata",
              "{\"metadata\": {\"b/.zattrs\": {\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"]}, "
              "\"b/.zarray\": " V2_ARRAY(
                  "[4, 6]", "[2, 3]") ", \".zattrs\": {\"title\": \"T\"}, "
                                      "\".zgroup\": " V2_GROUP ", \"a/.zarray\": " V2_ARRAY(
                                          "[5]", "[2]") "}, \"zarr_consolidated_format\": 1}"});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_str(f.log, "zarr.json .zmetadata");
    check_str(reader_format(r), "zarr v2");
    const struct array *b = reader_find(r, "b");
    if (check(b && !b->problem && b->dims)) {
        check_str(b->dims[0], "y");
        check_str(b->dims[1], "x");
    }
    check(reader_find(r, "a") && !reader_find(r, "a")->dims);
    const struct group *groups;
    check_eq(reader_groups(r, &groups), 1);
    check_str(json_str(json_get(groups[0].attributes, "title")), "T");
    reader_free(r);
}

static void an_array_that_stale_consolidated_metadata_lacks_is_found(void)
{
    struct fake f = FAKE({".zmetadata", "{\"metadata\": {\".zgroup\": " V2_GROUP "}}"},
                         {"new/.zarray", V2_ARRAY("[5]", "[2]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_want(&f, r, "/new/", &e), READER_READY);
    check(reader_find(r, "new") != NULL);
    reader_free(r);
}

static void root_arrays_of_both_versions(void)
{
    struct fake f3 = FAKE({"zarr.json", V3_ARRAY("[4]", "[2]")});
    struct fake f2 = FAKE({".zarray", V2_ARRAY("[4]", "[2]")}, {".zattrs", "{\"u\": \"K\"}"});
    struct reader *r3 = fake_open(&f3, &e), *r2 = fake_open(&f2, &e);
    if (check(r3 && r2)) {
        check(reader_find(r3, "") != NULL);
        check(reader_find(r2, "") && json_get(reader_find(r2, "")->attributes, "u"));
        check_eq(fake_walk(&f3, r3, &e), READER_READY);
        check_eq(fake_want(&f2, r2, "", &e), READER_READY);
    }
    reader_free(r3);
    reader_free(r2);
}

static void both_versions_in_one_hierarchy_are_walked(void)
{
    struct fake f =
        FAKE({".zgroup", V2_GROUP}, {"old/.zarray", V2_ARRAY("[4]", "[2]")}, {"old/0", ""},
             {"g/zarr.json", V3_GROUP}, {"g/new/zarr.json", V3_ARRAY("[4]", "[2]")},
             {"g/new/c/0", ""}, {"g/deep/.zgroup", V2_GROUP},
             {"g/deep/old/.zarray", V2_ARRAY("[4]", "[2]")}, {"notes/readme.txt", ""});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(count_arrays(r), 0);
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(count_arrays(r), 3);
    check(reader_find(r, "old") && reader_find(r, "g/new") && reader_find(r, "g/deep/old"));
    check(reader_complete(r));
    int requests = f.requests;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(f.requests, requests);
    reader_free(r);
}

static void v3_is_read_where_both_documents_stand(void)
{
    struct fake f =
        FAKE({"zarr.json", V3_ARRAY("[4]", "[2]")}, {".zarray", V2_ARRAY("[9]", "[3]")});
    struct reader *r = fake_open(&f, &e);
    if (check(r != NULL))
        check_eq(reader_find(r, "")->shape[0], 4);
    reader_free(r);
}

static void a_root_without_documents_opens_when_its_children_have_some(void)
{
    struct fake f =
        FAKE({"group/zarr.json", V3_GROUP}, {"group/a/zarr.json", V3_ARRAY("[4]", "[2]")});
    struct fake nothing = FAKE({"readme.txt", ""}, {"dir/file", ""});
    struct reader *r = fake_open(&f, &e);
    if (check(r != NULL)) {
        check_eq(fake_want(&f, r, "group/a", &e), READER_READY);
        check_eq(fake_walk(&f, r, &e), READER_READY);
    }
    reader_free(r);
    check(!fake_open(&nothing, &e));
    check_eq(e.code, HR_ENOENT);
    check_has(e.text, "zarr.json");
    nothing.cannot_list = true;
    check(!fake_open(&nothing, &e));
    check_eq(e.code, HR_ENOENT);
}

static void a_missing_array_names_near_ones(void)
{
    struct fake f = FAKE({"zarr.json", V3_GROUP}, {"temperature/zarr.json", V3_ARRAY("[4]", "[2]")},
                         {"pressure/zarr.json", V3_ARRAY("[4]", "[2]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_want(&f, r, "temprature", &e), HR_ENOENT);
    check_has(e.text, "did you mean \"temperature\"?");
    check_eq(fake_want(&f, r, "humidity", &e), HR_ENOENT);
    check(!strstr(e.text, "did you mean"));
    check_eq(fake_want(&f, r, "pressure", &e),
             READER_READY); /* the reader goes on after an error */
    check_eq(fake_want(&f, r, "../secret", &e), HR_ENOENT);
    check_has(e.text, "no path within the archive");
    reader_free(r);
}

static void the_last_component_of_a_path_is_near_enough(void)
{
    struct fake f =
        FAKE({".zmetadata", "{\"metadata\": {\".zgroup\": " V2_GROUP
                            ", \"ocean/deep/salt/.zarray\": " V2_ARRAY("[5]", "[2]") "}}"});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_want(&f, r, "Salt", &e), HR_ENOENT);
    check_has(e.text, "\"ocean/deep/salt\"");
    reader_free(r);
}

static void what_may_be_absent_is_looked_for_briefly(void)
{
    struct fake plain = FAKE({".zgroup", V2_GROUP}, {"lat/.zarray", V2_ARRAY("[4]", "[2]")});
    struct fake whole = FAKE({".zmetadata", "{\"metadata\": {\".zgroup\": " V2_GROUP "}}"});
    struct reader *r = fake_open(&plain, &e), *c = fake_open(&whole, &e);
    if (!check(r && c))
        return;
    plain.log[0] = '\0';
    check_eq(reader_try(r, "lon", &e) | fake_finish(&plain, r, &e), READER_READY);
    check(!reader_wanted(r));
    check_str(plain.log, "lon/.zarray lon/.zgroup lon/zarr.json");
    check_eq(reader_try(r, "/lat", &e) | fake_finish(&plain, r, &e), READER_READY);
    check(reader_wanted(r) && reader_wanted(r) == reader_find(r, "lat"));
    int requests = whole.requests;
    check_eq(reader_try(c, "lon", &e) | fake_finish(&whole, c, &e), READER_READY);
    check(!reader_wanted(c));
    check_eq(whole.requests, requests);
    reader_free(r);
    reader_free(c);
}

static void a_plain_v2_array_takes_two_requests(void)
{
    struct fake f = FAKE({".zgroup", V2_GROUP}, {"lat/.zarray", V2_ARRAY("[4]", "[2]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    f.log[0] = '\0';
    check_eq(fake_want(&f, r, "lat", &e), READER_READY);
    check_str(f.log, "lat/.zarray lat/.zattrs");
    reader_free(r);
}

static void a_group_is_no_array_and_says_what_it_holds(void)
{
    struct fake f = FAKE({"zarr.json", V3_GROUP}, {"g/zarr.json", V3_GROUP},
                         {"g/a/zarr.json", V3_ARRAY("[4]", "[2]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    fake_walk(&f, r, &e);
    check_eq(fake_want(&f, r, "g", &e), HR_ENOENT);
    check_has(e.text, "is a group, not an array; arrays in it: \"g/a\"");
    check_eq(fake_want(&f, r, "", &e), HR_ENOENT);
    check_has(e.text, "the root is a group");
    reader_free(r);
}

static void a_bad_array_does_not_spoil_its_siblings(void)
{
    struct fake f = FAKE(
        {"zarr.json", V3_GROUP}, {"cut/zarr.json", "{\"zarr_format\": 3, "},
        {"odd/zarr.json", V3_ARRAY_WITH("[4, 5]", "\"int32\"", "[2, 5]", V3_KEYS, "0",
                                        "[{\"name\": \"nobody.knows\"}]", "")},
        {"good/zarr.json", V3_ARRAY("[4]", "[2]")}, {"four/zarr.json", "{\"zarr_format\": 4}"});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    const struct array *odd = reader_find(r, "odd"), *cut = reader_find(r, "cut");
    check(reader_find(r, "good") && !reader_find(r, "good")->problem);
    if (check(odd && odd->problem)) {
        check_has(odd->problem, "nobody.knows");
        check_eq(odd->problem_code, HR_EUNSUPPORTED);
        check_eq(odd->shape[1], 5); /* what is understood is kept for reports */
    }
    check(cut && cut->problem && cut->problem_code == HR_EFORMAT);
    check(reader_find(r, "four") && reader_find(r, "four")->problem_code == HR_EUNSUPPORTED);
    check_eq(fake_want(&f, r, "cut", &e), READER_READY);
    reader_free(r);
}

static void a_broken_root_document_is_an_error_of_opening(void)
{
    struct fake cut = FAKE({"zarr.json", "{\"zarr_format\": 3"});
    struct fake list = FAKE({".zarray", "[]"});
    check(!fake_open(&cut, &e));
    check_eq(e.code, HR_EFORMAT);
    check_has(e.text, "zarr.json");
    struct reader *r = fake_open(&list, &e); /* an array all the same, and its problem */
    check(r && reader_find(r, "") && reader_find(r, "")->problem);
    reader_free(r);
}

static void fields_of_struct_arrays_are_arrays(void)
{
    const char *doc = V2_ARRAY_WITH(
        "[4]", "[2]", "[[\"id\", \"<u2\"], [\"pos\", [[\"x\", \">f8\"], [\"y.z\", \"<f4\"]]]]",
        "null", "");
    struct fake f = FAKE({".zgroup", V2_GROUP}, {"g/.zgroup", V2_GROUP}, {"g/t/.zarray", doc});
    struct fake root = FAKE({".zarray", doc});
    struct reader *r = fake_open(&f, &e), *r0 = fake_open(&root, &e);
    if (!check(r && r0))
        return;
    check_eq(fake_want(&f, r, "g/t.id", &e), READER_READY);
    check_eq(fake_want(&f, r, "g/t/pos/x", &e), READER_READY);
    check_eq(fake_want(&f, r, "g/t.pos.y.z", &e), READER_READY);
    const struct array *x = reader_find(r, "g/t/pos/x"), *y = reader_find(r, "g/t.pos.y.z");
    if (check(x && y)) {
        check_eq(x->field_offset, 2);
        check_eq(x->field_stride, 14);
        check_eq(x->type.kind, HR_F64);
        check_str(x->parent, "g/t");
        check_eq(y->field_offset, 10);
        check_eq(y->type.kind, HR_F32);
    }
    check_eq(fake_want(&f, r, "g/t.nothing", &e), HR_ENOENT);
    check_eq(fake_want(&root, r0, "id", &e), READER_READY);
    reader_free(r);
    reader_free(r0);
}

static void too_much_metadata_is_refused_by_size_and_by_depth(void)
{
    struct fake f = FAKE({"zarr.json", ""});
    f.pretend_size = 100 << 20;
    check(!fake_open(&f, &e));
    check_eq(e.code, HR_EUNSUPPORTED);
    check_has(e.text, "104.9 MB");
    static char deep[20001];
    memset(deep, '[', 10000);
    memset(deep + 10000, ']', 10000);
    struct fake g = FAKE({"zarr.json", deep});
    check(!fake_open(&g, &e));
    check_eq(e.code, HR_EFORMAT);
    check_has(e.text, "nest");
}

static void paths_that_leave_the_archive_are_refused(void)
{
    struct fake f = FAKE(
        {".zmetadata", "{\"metadata\": {\".zgroup\": " V2_GROUP ", \"../x/.zarray\": " V2_ARRAY(
                           "[5]", "[2]") ", \"a//b/.zarray\": " V2_ARRAY("[5]", "[2]") "}}"});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(count_arrays(r), 2);
    check(reader_find(r, "../x") && reader_find(r, "../x")->problem);
    check(reader_find(r, "a//b") && reader_find(r, "a//b")->problem);
    reader_free(r);
}

static void without_listing_images_are_found_by_their_metadata(void)
{
    struct fake f = FAKE(
        {".zgroup", V2_GROUP},
        {".zattrs", "{\"multiscales\": [{\"datasets\": [{\"path\": \"0\"}, {\"path\": \"1\"}]}]}"},
        {"0/.zarray", V2_ARRAY("[4]", "[2]")}, {"1/.zarray", V2_ARRAY("[2]", "[2]")},
        {"labels/.zgroup", V2_GROUP}, {"labels/.zattrs", "{\"labels\": [\"cells\"]}"},
        {"labels/cells/.zgroup", V2_GROUP},
        {"labels/cells/.zattrs", "{\"multiscales\": [{\"datasets\": [{\"path\": \"0\"}]}]}"},
        {"labels/cells/0/.zarray", V2_ARRAY("[4]", "[2]")},
        {"unknown/.zarray", V2_ARRAY("[4]", "[2]")});
    f.cannot_list = true;
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(count_arrays(r), 3);
    check(reader_find(r, "0") && reader_find(r, "1") && reader_find(r, "labels/cells/0"));
    check(!reader_complete(r));
    check_eq(fake_want(&f, r, "labels/nope", &e), HR_ENOENT);
    check_eq(fake_want(&f, r, "unknown", &e), READER_READY); /* probed by name */
    reader_free(r);
}

/* What xarray writes: an array names its dimensions and, in CF's attributes, others. */
static void without_listing_arrays_lead_to_their_coordinates(void)
{
    struct fake f =
        FAKE({"zarr.json", V3_GROUP},
             {"t2m/zarr.json",
              V3_ARRAY_WITH("[4, 2]", "\"int32\"", "[2, 2]", V3_KEYS, "0", V3_BYTES,
                            ", \"dimension_names\": [\"valid\", \"../x\"], \"attributes\": "
                            "{\"coordinates\": \"lead  where\", \"grid_mapping\": \"crs\"}")},
             {"valid/zarr.json", V3_ARRAY_WITH("[4]", "\"int32\"", "[4]", V3_KEYS, "0", V3_BYTES,
                                               ", \"attributes\": {\"bounds\": \"valid_bounds\"}")},
             {"valid_bounds/zarr.json", V3_ARRAY("[4, 2]", "[4, 2]")},
             {"lead/zarr.json", V3_ARRAY("[4]", "[4]")}, {"crs/.zarray", V2_ARRAY("[1]", "[1]")},
             {"hidden/zarr.json", V3_ARRAY("[4]", "[4]")});
    f.cannot_list = true;
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_want(&f, r, "t2m", &e), READER_READY);
    f.requests = 0;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check(reader_find(r, "valid") && reader_find(r, "valid_bounds") && reader_find(r, "lead"));
    check_eq(count_arrays(r), 4);
    check_eq(f.requests, 6); /* the listing, one a name: what is not there is asked for once */
    check(!reader_complete(r));
    reader_free(r);
}

static void without_listing_usual_names_are_tried(void)
{
    struct fake f = FAKE({".zgroup", V2_GROUP}, {"time/.zarray", V2_ARRAY("[4]", "[4]")},
                         {"x/zarr.json", V3_ARRAY("[4]", "[4]")},
                         {"time/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"time\"]}"});
    f.cannot_list = true;
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    f.requests = 0;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(count_arrays(r), 1);
    check(reader_find(r, "time") != NULL);
    check(f.requests < 20);
    reader_free(r);
}

static void without_listing_cells_are_found_by_their_encoding(void)
{
    struct fake f = FAKE(
        {".zgroup", V2_GROUP}, {".zattrs", "{\"encoding-type\": \"anndata\"}"},
        {"X/.zgroup", V2_GROUP},
        {"X/.zattrs", "{\"encoding-type\": \"csr_matrix\", \"shape\": [2, 2]}"},
        {"X/data/.zarray", V2_ARRAY("[4]", "[4]")}, {"X/indices/.zarray", V2_ARRAY("[4]", "[4]")},
        {"X/indptr/.zarray", V2_ARRAY("[3]", "[3]")}, {"obs/.zgroup", V2_GROUP},
        {"obs/.zattrs", "{\"encoding-type\": \"dataframe\", \"_index\": \"_index\", "
                        "\"column-order\": [\"type\"]}"},
        {"obs/_index/.zarray", V2_ARRAY("[2]", "[2]")}, {"obs/type/.zgroup", V2_GROUP},
        {"obs/type/.zattrs", "{\"encoding-type\": \"categorical\"}"},
        {"obs/type/codes/.zarray", V2_ARRAY("[2]", "[2]")});
    f.cannot_list = true;
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_walk(&f, r, &e), READER_READY);
    check_eq(count_arrays(r), 5);
    check(reader_find(r, "X/indptr") && reader_find(r, "obs/_index") &&
          reader_find(r, "obs/type/codes"));
    reader_free(r);
}

static void groups_without_end_are_an_error(void)
{
    static char key[70 * 2 + 20], *at = key;
    struct fake_object objects[72];
    static char keys[72][sizeof key + 16];
    for (int i = 0; i < 70; i++) {
        snprintf(keys[i], sizeof keys[i], "%szarr.json", key);
        objects[i] = (struct fake_object){keys[i], V3_GROUP};
        at += snprintf(at, 3, "g/");
    }
    struct fake f = {.objects = objects, .n = 70};
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    check_eq(fake_walk(&f, r, &e), HR_EUNSUPPORTED);
    check_has(e.text, "nested deeper");
    reader_free(r);
}

static void unknown_members_are_refused_unless_they_may_be_ignored(void)
{
    struct fake f = FAKE(
        {"zarr.json", V3_GROUP},
        {"a/zarr.json",
         V3_ARRAY_WITH("[4]", "\"int32\"", "[2]", V3_KEYS, "0", V3_BYTES,
                       ", \"extra\": {\"must_understand\": false}, \"storage_transformers\": []")},
        {"b/zarr.json",
         V3_ARRAY_WITH("[4]", "\"int32\"", "[2]", V3_KEYS, "0", V3_BYTES, ", \"extra\": {}")},
        {"c/zarr.json", V3_ARRAY_WITH("[4]", "\"int32\"", "[2]", V3_KEYS, "0", V3_BYTES,
                                      ", \"storage_transformers\": [{\"name\": \"cipher\"}]")});
    struct reader *r = fake_open(&f, &e);
    if (!check(r != NULL))
        return;
    fake_walk(&f, r, &e);
    check(!reader_find(r, "a")->problem);
    check_has(reader_find(r, "b")->problem, "\"extra\"");
    check_has(reader_find(r, "c")->problem, "cipher");
    reader_free(r);
}

/* Every allocation in turn fails: an error, no crash, nothing lost. */
static void running_out_of_memory_anywhere_is_an_ordinary_error(void)
{
    struct fake f =
        FAKE({".zmetadata",
              "{\"metadata\": {\".zgroup\": " V2_GROUP
              ", \"a/.zarray\": " V2_ARRAY("[4, 4]", "[2, 2]") ", \"s/.zarray\": " V2_ARRAY_WITH(
                  "[4]", "[2]", "[[\"id\", \"<u2\"]]", "null", "") "}}"});
    uint64_t live = mem_live();
    bool done = false;
    for (uint64_t n = 1; n < 500 && !done; n++) {
        mem_fail_at(n, false);
        e.code = 0;
        struct reader *r = fake_open(&f, &e);
        int rc = r ? fake_want(&f, r, "s.id", &e) : e.code;
        done = r && rc == READER_READY && mem_count() < n;
        mem_fail_at(0, false);
        if (rc < 0 && rc != HR_ENOMEM) {
            check_eq(rc, HR_ENOMEM);
            printf("# allocation %llu: %s\n", (unsigned long long)n, e.text);
            done = true;
        }
        reader_free(r);
    }
    check(done);
    check_eq(mem_live(), live);
}

int main(void)
{
    RUN(consolidated_v3_is_one_request);
    RUN(consolidated_null_reads_nodes_one_by_one);
    RUN(zmetadata_gives_arrays_in_any_member_order);
    RUN(an_array_that_stale_consolidated_metadata_lacks_is_found);
    RUN(root_arrays_of_both_versions);
    RUN(both_versions_in_one_hierarchy_are_walked);
    RUN(v3_is_read_where_both_documents_stand);
    RUN(a_root_without_documents_opens_when_its_children_have_some);
    RUN(a_missing_array_names_near_ones);
    RUN(the_last_component_of_a_path_is_near_enough);
    RUN(what_may_be_absent_is_looked_for_briefly);
    RUN(a_plain_v2_array_takes_two_requests);
    RUN(a_group_is_no_array_and_says_what_it_holds);
    RUN(a_bad_array_does_not_spoil_its_siblings);
    RUN(a_broken_root_document_is_an_error_of_opening);
    RUN(fields_of_struct_arrays_are_arrays);
    RUN(too_much_metadata_is_refused_by_size_and_by_depth);
    RUN(paths_that_leave_the_archive_are_refused);
    RUN(without_listing_images_are_found_by_their_metadata);
    RUN(without_listing_arrays_lead_to_their_coordinates);
    RUN(without_listing_usual_names_are_tried);
    RUN(without_listing_cells_are_found_by_their_encoding);
    RUN(groups_without_end_are_an_error);
    RUN(unknown_members_are_refused_unless_they_may_be_ignored);
    RUN(running_out_of_memory_anywhere_is_an_ordinary_error);
    return t_done();
}
