/* Patches, products, crops, mirrored and padded edges end to end: what the planner says of them, done
 * by the driver on files, compressed, packed or plain. */
#include <math.h>

#include "api/archive.h"
#include "api/loader.h"
#include "api/runtime.h"
#include "base/keyed.h"
#include "base/mem.h"
#include "little.h"
#include "plan/split.h"

static struct hr_error e;

static const struct little arrays[] = {
    {.name = "t2m", .time = 24, .y = 6, .x = 40, .chunk = 4, .chunk_y = 3, .zstd = true},
    {.name = "raw", .time = 24, .y = 6, .x = 40, .chunk = 4, .chunk_y = 2},
    {.name = "packed",
     .time = 24,
     .y = 6,
     .x = 40,
     .chunk = 8,
     .chunk_y = 6,
     .zstd = true,
     .i2 = true}};
static const int shape[3] = {24, 6, 40};
static const float outside = -99;

static uint64_t words;
static int64_t draw(uint64_t n)
{
    return (int64_t)(keyed_word(5, words++) % n);
}

static void must(int rc)
{
    if (rc < 0)
        printf("# %s\n", e.text);
    check(rc >= 0);
}

/* Each dimension follows an axis of its own. */
static bool part_draw(struct plan_part *part, struct plan_axis *axes)
{
    static const enum plan_edge edges[] = {EDGE_VALID, EDGE_PAD, EDGE_REFLECT, EDGE_CLIP};
    uint64_t stride = 1;
    for (int d = 2; d >= 0; d--) {
        int64_t mul = 1 + draw(3);
        part->dim[d] = (struct plan_dim){.kind = SEL_SAMPLE,
                                         .axis = d,
                                         .start = draw(5) - 2,
                                         .count = d == 2 ? 1 + draw(20) : 1 + draw(4),
                                         .step = 1 + (draw(4) == 0),
                                         .mul = mul,
                                         .edge = edges[draw(4)],
                                         .to_stride = stride};
        stride *= (uint64_t)part->dim[d].count;
        axes[d] = (struct plan_axis){.n = (uint64_t)shape[d] / (uint64_t)mul + 1};
        axes[d].last = axes[d].n;
        if (d && draw(4) == 0) { /* a crop that stays inside */
            part->dim[d].start = 0;
            part->dim[d].mul = 1;
            axes[d] = (struct plan_axis){2, 0, 2, (uint64_t)shape[d]};
            part->dim[d].edge = EDGE_PAD;
        }
        if ((part->dim[d].count - 1) * part->dim[d].step >= shape[d])
            return false;
    }
    return true;
}

static int64_t index_of(const struct plan_dim *dim, int d, int64_t place, int64_t i)
{
    int64_t start = dim->start + place * dim->mul, size = shape[d],
            most = size - (dim->count - 1) * dim->step - 1;
    if (dim->edge == EDGE_CLIP)
        start = start < 0 ? 0 : start > most ? most : start;
    int64_t x = start + i * dim->step;
    if (dim->edge == EDGE_REFLECT)
        x = x < 0 ? -x : x >= size ? 2 * (size - 1) - x : x;
    return x < 0 || x >= size ? -1 : x;
}

static float value_of(const struct little *a, int64_t t, int64_t y, int64_t x)
{
    if (t < 0 || y < 0 || x < 0)
        return outside;
    if (!a->i2)
        return little_value(a, t, y, x);
    int16_t stored = little_packed(a, t, y, x);
    return stored == -1 ? NAN : (float)stored * 0.5f + 100;
}

static bool row_is_right(const struct little *a, const struct plan_part *part,
                         const struct plan_axis *axes, int64_t place, const float *row)
{
    int64_t at[3];
    for (int d = 2; d >= 0; d--) {
        int64_t radix = (int64_t)(axes[d].places ? axes[d].places : axes[d].n);
        at[d] = place % radix;
        place /= radix;
    }
    for (int64_t t = 0; t < part->dim[0].count; t++)
        for (int64_t y = 0; y < part->dim[1].count; y++)
            for (int64_t x = 0; x < part->dim[2].count; x++, row++) {
                float wanted = value_of(a, index_of(&part->dim[0], 0, at[0], t),
                                        index_of(&part->dim[1], 1, at[1], y),
                                        index_of(&part->dim[2], 2, at[2], x));
                if (!(*row == wanted || (isnan(*row) && isnan(wanted))))
                    return false;
            }
    return true;
}

static void let_go(void *w)
{
    wiring_free(w);
    runtime_workers_done();
}

/* One epoch of such samples; every row against the formula. */
static void epoch_run(const struct little *a, struct wiring *w, struct plan *p,
                      const struct plan_part *part, const struct plan_axis *axes)
{
    struct driver *driver = NULL;
    struct driver_config c = {.plan = p,
                              .store = archive_store(w->samples->archive),
                              .arrays = w->arrays,
                              .parts = w->parts,
                              .release = let_go,
                              .arg = w,
                              .engine = {.budget = 64 << 20,
                                         .fetches = 8,
                                         .join_bytes = 1 << 20,
                                         .job_bytes = 1 << 18,
                                         .job_chunks = 64}};
    uint64_t epoch = (uint64_t)draw(5);
    must(batch_layout_new(w->tensors, 1, plan_facts(p)->rows, &c.layout, &e));
    must(runtime_workers(&c.workers, &e));
    must(driver_open(&c, &driver, &e));
    batch_layout_unref(c.layout);
    driver_start(driver, epoch, 0);
    int wrong = 0;
    for (uint64_t step = 0; step < plan_facts(p)->steps; step++) {
        struct hr_batch *b = NULL;
        must(driver_next(driver, 0, NULL, NULL, &b, &e));
        for (int64_t r = 0; b && r < b->rows; r++)
            wrong += !row_is_right(a, part, axes, plan_place(p, epoch, b->ids[r]),
                                   (const float *)batch_row(b, 0, (uint64_t)r));
        batch_unref(b);
    }
    check_eq(wrong, 0);
    driver_close(driver);
    driver_unref(driver);
}

static bool world_run(const struct little *a)
{
    struct hr_archive *archive = NULL;
    struct hr_samples *s = NULL;
    struct wiring *w = NULL;
    struct plan *p = NULL;
    struct plan_part part = {0};
    struct plan_axis axes[3];
    struct plan_config config;
    struct hr_loader_options o = {.n = 4, .shuffle = HR_SHUFFLE_SPREAD};
    must(hr_open(little_url(), NULL, &archive, &e));
    must(hr_samples_new(archive, "time", &s, &e));
    must(hr_samples_view(s, "x", &a->name, 1, NULL, &e));
    if (a->i2)
        must(hr_view_dtype(s, "x", HR_F32, &e));
    must(wiring_new(s, &o, &w, &e));
    bool fine =
        part_draw(&part, axes) && split_valid_ids(w->samples->arrays, &part, 1, axes, 3, NULL) == 0;
    struct batch_tensor *t = &w->tensors[0];
    w->samples->parts[0] = part;
    w->samples->views[0].items = 1;
    t->ndim = 4;
    for (int d = 0; d < 3; d++) {
        t->shape[d + 1] = part.dim[d].count;
        w->samples->views[0].items *= fine ? (uint64_t)part.dim[d].count : 1;
    }
    w->parts[0].pad = &outside;
    wiring_plan_config(w, &o, NULL, &config);
    config.axes = axes;
    config.n_axes = 3;
    config.seed = words;
    config.remainder = HR_PAD;
    if (fine && plan_open(&config, &p, &e) == 0)
        epoch_run(a, w, p, &part, axes);
    else
        wiring_free(w);
    fine = p != NULL;
    plan_unref(p);
    hr_samples_unref(s);
    hr_archive_unref(archive);
    return fine;
}

static void boxes_of_every_kind_hold_what_the_formula_says(void)
{
    for (int i = 0; i < 3; i++)
        little_write(&arrays[i]);
    for (int done = 0; done < 45;)
        done += world_run(&arrays[done % 3]);
}

int main(void)
{
    RUN(boxes_of_every_kind_hold_what_the_formula_says);
    snprintf(little_root, sizeof little_root, "/tmp/headrace-geometry-%d", (int)getpid());
    mkdir(little_root, 0777);
    RUN(boxes_of_every_kind_hold_what_the_formula_says);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", little_root);
    return system(command) || t_done();
}
