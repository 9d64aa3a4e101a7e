/* libcurl, found at run time.
 *
 * The library must load where libcurl is not installed (local archives need none), so its
 * functions come from dlopen at the first URL. This is the only header that includes
 * <curl/curl.h>; a plain CURL call elsewhere would not link. */
#ifndef NET_LIBCURL_H
#define NET_LIBCURL_H
#include <curl/curl.h>

#include "base/error.h"

/* The typechecking macros wrap calls to the linked functions; here they go through pointers. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

struct curl_api {
    void *handle;
    CURLcode (*global_init)(long flags);
    curl_version_info_data *(*version_info)(CURLversion age);
    const char *(*easy_strerror)(CURLcode code);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *easy);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *multi);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned n, int timeout_ms,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *multi);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
};
int curl_load(struct curl_api *c, struct hr_error *e);
void curl_unload(struct curl_api *c);

#endif
