/* The parts of the public header that belong to no object: version, memory that the caller frees, names of data types. */
#include "base/mem.h"
#include "codec/dtype.h"

#define TEXT_OF(x)                        #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *hr_version(void)
{
    return VERSION_TEXT(HR_VERSION_MAJOR, HR_VERSION_MINOR, HR_VERSION_PATCH);
}

void hr_free(void *p)
{
    mem_free(p);
}

const char *hr_dtype_name(enum hr_dtype t)
{
    return dtype_kind_name(t);
}

enum hr_dtype hr_dtype_parse(const char *name)
{
    return dtype_kind_parse(name);
}

size_t hr_dtype_size(enum hr_dtype t)
{
    return dtype_kind_size(t);
}
