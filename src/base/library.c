#include "base/library.h"

#include <dlfcn.h>
#include <stdbool.h>

/* Sanitizers refuse it. */
#if !defined RTLD_DEEPBIND || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#undef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif

static bool shown_by_others(void)
{
    static const char *const symbols[] = {"SSL_CTX_new", "EVP_sha256", "curl_easy_init"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (dlsym(RTLD_DEFAULT, symbols[i]))
            return true;
    return false;
}

void *library_open(const char *const *names, size_t n)
{
    int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (shown_by_others() ? RTLD_DEEPBIND : 0);
    for (size_t i = 0; i < n; i++) {
        void *library = dlopen(names[i], how);
        if (library)
            return library;
    }
    return NULL;
}
