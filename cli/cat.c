/* headrace cat: the values of an array as raw bytes, for tests, pipes and numpy.fromfile. */
#include "cli.h"
#include <getopt.h>
#include <stdio.h>
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
    static const struct option options[] = {{"decode", no_argument, NULL, 'd'},
                                            {"dtype", required_argument, NULL, 't'},
                                            {"options", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    enum hr_dtype dtype = HR_NONE;
    int decode = 0, c;
    const char *storage = NULL;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            decode = 1;
            break;
        case 't':
            dtype = hr_dtype_parse(optarg);
            if (dtype == HR_NONE)
                return cli_usage("cat", "'%s' is no data type", optarg);
            break;
        case 'o':
            storage = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return cli_finish();
        default:
            return cli_bad_option("cat", argv);
        }
    }
    if (argc - optind < 1 || argc - optind > 2)
        return cli_usage("cat", "an archive and at most one array are expected");
    struct hr_archive *a;
    struct hr_error e;
    if (hr_open(argv[optind], storage, &a, &e) < 0)
        return cli_fail(&e);
    int rc = hr_archive_cat(a, argc - optind > 1 ? argv[optind + 1] : "", dtype, decode,
                            STDOUT_FILENO, &e);
    hr_archive_unref(a);
    return rc < 0 ? cli_fail(&e) : EXIT_OK;
}
