/* headrace cat: the values of an array as raw bytes, for tests, pipes and numpy.fromfile. */
#include "cli.h"
#include "options.h"
#include <unistd.h>

static const char usage[] =
    "usage: headrace cat [OPTION…] ARCHIVE [ARRAY]\n\n"
    "Writes the values of an array to standard output: C order, little-endian, no header.\n"
    "Strings of variable length are joined by NUL bytes. Without ARRAY, the array at the\n"
    "root. A field of a struct array is ARRAY.FIELD.\n\n"
    "  --decode        decode CF packing: scale_factor, add_offset, missing values → NaN\n"
    "  --dtype TYPE    as this type: f4, f8, float16, int32, …\n"
    "  --options JSON  storage options of a URL, such as '{\"connect_timeout\": 3}'\n";

int command_cat(int argc, char **argv)
{
    const char *type = NULL;
    bool decode = false;
    const struct place_option own[] = {
        {"decode", NULL, &decode}, {"dtype", &type, NULL}, {NULL, NULL, NULL}};
    struct place p;
    struct hr_archive *a;
    struct hr_error e;
    int rc = place_read(argc, argv, usage, own, &p);
    if (rc)
        return rc < 0 ? EXIT_OK : rc;
    enum hr_dtype dtype = type ? hr_dtype_parse(type) : HR_NONE;
    if (type && !dtype)
        return cli_usage(
            "cat", "--dtype %s: no data type has that name; types are f4, f8, float16, int32, …",
            type);
    if (hr_open(p.url, p.storage, &a, &e) < 0)
        return cli_fail(&e);
    rc = hr_archive_cat(a, p.array ? p.array : "", dtype, decode, STDOUT_FILENO, &e);
    hr_archive_unref(a);
    return rc < 0 ? cli_fail(&e) : EXIT_OK;
}
