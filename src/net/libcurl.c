/* See libcurl.h. The shared object is never unmapped (RTLD_NODELETE): a resolver thread that
 * libcurl has let go may still be inside it. curl_global_init is counted and thread-safe since
 * 7.84 and is never undone, since other users of libcurl in the process cannot be known. */
#include "net/libcurl.h"

#include "base/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define OLDEST 0x074400 /* 7.68: curl_multi_poll with curl_multi_wakeup */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define F(name)                                                                                    \
    {                                                                                              \
        "curl_" #name, offsetof(struct curl_api, name)                                             \
    }
    F(global_init),      F(version_info),        F(easy_strerror), F(easy_init),
    F(easy_cleanup),     F(easy_setopt),         F(easy_getinfo),  F(slist_append),
    F(slist_free_all),   F(multi_init),          F(multi_cleanup), F(multi_setopt),
    F(multi_add_handle), F(multi_remove_handle), F(multi_perform), F(multi_poll),
    F(multi_wakeup),     F(multi_info_read),
#undef F
};

static void *open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    return library_open(names, sizeof names / sizeof *names);
}

int curl_load(struct curl_api *c, struct hr_error *e)
{
    *c = (struct curl_api){.handle = open_library()};
    if (!c->handle)
        return error_set(
            e, HR_EUNSUPPORTED,
            "reading URLs needs libcurl, and libcurl.so.4 was not found; install it (Debian, "
            "Ubuntu: libcurl4; Fedora: libcurl) or copy the archive to a local directory");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(c->handle, functions[i].name);
        if (!f) {
            curl_unload(c);
            return error_set(e, HR_EUNSUPPORTED,
                             "the installed libcurl has no %s; 7.68 or newer is needed",
                             functions[i].name);
        }
        memcpy((char *)c + functions[i].offset, &f, sizeof f);
    }
    const curl_version_info_data *v = c->version_info(CURLVERSION_NOW);
    if (v->version_num < OLDEST || c->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        int rc = error_set(e, HR_EUNSUPPORTED, "libcurl %s cannot be used; 7.68 or newer is needed",
                           v->version);
        curl_unload(c);
        return rc;
    }
    return 0;
}

void curl_unload(struct curl_api *c)
{
    if (c->handle)
        dlclose(c->handle);
    *c = (struct curl_api){0};
}
