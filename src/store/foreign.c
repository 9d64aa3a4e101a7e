/* See foreign.h. */
#include "store/foreign.h"

#include <string.h>
#include <strings.h>

static const char *const store[] = {"asynchronous",
                                    "loop",
                                    "skip_instance_cache",
                                    "use_listings_cache",
                                    "listings_expiry_time",
                                    "max_paths",
                                    "batch_size",
                                    "default_block_size",
                                    "default_fill_cache",
                                    "default_cache_type",
                                    "cache_type",
                                    "cache_options",
                                    "cache_regions",
                                    "block_size",
                                    "blocksize",
                                    "fixed_upload_size",
                                    "retry_config",
                                    "max_concurrency",
                                    "consistency",
                                    "cache_timeout",
                                    "secure_serialize",
                                    "default_location",
                                    "check_connection",
                                    "default_acl",
                                    "assume_container_exists",
                                    NULL};
static const char *const client[] = {"api_version", NULL};
static const char *const config[] = {"max_pool_connections",
                                     "retries",
                                     "connect_timeout",
                                     "read_timeout",
                                     "tcp_keepalive",
                                     "user_agent",
                                     "user_agent_extra",
                                     "parameter_validation",
                                     "request_checksum_calculation",
                                     "response_checksum_validation",
                                     "signature_version",
                                     NULL};
static const char *const obstore[] = {"timeout",
                                      "connect_timeout",
                                      "read_timeout",
                                      "allow_http",
                                      "allow_invalid_certificates",
                                      "http1_only",
                                      "http2_only",
                                      "http2_keep_alive_interval",
                                      "http2_keep_alive_timeout",
                                      "http2_keep_alive_while_idle",
                                      "http2_max_frame_size",
                                      "pool_idle_timeout",
                                      "pool_max_idle_per_host",
                                      "randomize_addresses",
                                      "user_agent",
                                      "default_content_type",
                                      NULL};

bool foreign_harmless(const char *name, enum foreign where)
{
    static const char *const *const lists[] = {store, client, config, obstore};
    for (const char *const *p = lists[where]; *p; p++)
        if (!strcmp(name, *p))
            return true;
    return false;
}

/* True, 1, "true": anything but a plain no. */
static bool says_yes(const struct json *v)
{
    const char *text = json_str(v);
    if (text)
        return strcasecmp(text, "false") != 0;
    return v->type != JSON_NULL && !(v->type == JSON_BOOL && !v->boolean);
}

const char *foreign_refusal(const char *name, const struct json *v, enum foreign where)
{
    static const char checked[] =
        "certificates are always checked; name the right ones by the storage option ca_file";
    bool yes = says_yes(v);
    if (where == FOREIGN_CLIENT && !strcmp(name, "verify") && !yes && v->type != JSON_NULL)
        return checked;
    if (where == FOREIGN_OBSTORE && !strcmp(name, "allow_invalid_certificates") && yes)
        return checked;
    if (where == FOREIGN_OBSTORE && !strcmp(name, "allow_http") && !yes && v->type != JSON_NULL)
        return "give it as the storage option allow_http";
    if (where == FOREIGN_OBSTORE && !strcmp(name, "proxy_url"))
        return "give it as the storage option proxy";
    if (where == FOREIGN_OBSTORE && !strcmp(name, "default_headers"))
        return "give them as the storage option headers";
    if (where == FOREIGN_CONFIG && !strcmp(name, "proxies"))
        return "give the storage option proxy";
    if (where == FOREIGN_CONFIG && !strcmp(name, "signature_version") && v->type != JSON_NULL &&
        (!json_str(v) || (strcmp(json_str(v), "s3v4") && strcmp(json_str(v), "v4"))))
        return "requests are signed by version 4 alone; for none give anon";
    if (where == FOREIGN_STORE && !strcmp(name, "version_aware") && yes)
        return "what is read is the latest version of each object";
    if (where == FOREIGN_STORE && !strcmp(name, "s3_additional_kwargs") && yes)
        return "what they say would not be sent; requester_pays and headers are storage options";
    return NULL;
}
