/* The storage options that every store behind a network has: what http, s3, gcs and azure put
 * first into their own tables (options.h). */
#ifndef STORE_REMOTE_OPTIONS_H
#define STORE_REMOTE_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

#include "net/net.h"
#include "store/foreign.h"
#include "store/options.h"
#include "store/store.h"

struct remote_options {
    struct net_policy policy;
    uint32_t concurrency; /* 0: the policy's */
    bool missing_403;
    const struct json *headers; /* an object of strings, or NULL */
    const char *proxy, *ca_file;
    const struct json *client;  /* object_store's client_options */
    struct option_names others; /* passed over */
};
/* The lines of a table of options for a struct `type` with a struct remote_options `member`. */
#define REMOTE_OPTIONS(type, member)                                                               \
    {"", OPTION_FOREIGN, offsetof(type, member.others), FOREIGN_STORE, 0},                         \
        {"client_options", OPTION_OBJECT, offsetof(type, member.client), 0, 0},                    \
        {"headers", OPTION_HEADERS, offsetof(type, member.headers), 0, 0},                         \
        {"missing_403", OPTION_BOOL, offsetof(type, member.missing_403), 0, 0},                    \
        {"proxy", OPTION_STRING, offsetof(type, member.proxy), 0, 0},                              \
        {"ca_file", OPTION_STRING, offsetof(type, member.ca_file), 0, 0},                          \
        {"connect_timeout", OPTION_SECONDS, offsetof(type, member.policy.connect_ms), 0, 3600},    \
        {"first_byte_timeout", OPTION_SECONDS, offsetof(type, member.policy.first_byte_ms), 0,     \
         3600},                                                                                    \
        {"stall_timeout", OPTION_SECONDS, offsetof(type, member.policy.stall_ms), 0, 3600},        \
        {"max_retries", OPTION_COUNT, offsetof(type, member.policy.max_retries), 0, 1000},         \
        {"retry_total", OPTION_SECONDS, offsetof(type, member.policy.retry_total_ms), 0, 86400},   \
    {                                                                                              \
        "concurrency", OPTION_COUNT, offsetof(type, member.concurrency), 1, 256                    \
    }

/* Before options_parse: what holds where nothing is said. */
void remote_options_init(struct remote_options *o, const struct store_env *env);
/* After it. `shown` names the store in errors. */
int remote_options_check(struct remote_options *o, const char *shown, struct hr_error *e);
/* Proxy, certificates and policy of a client; the environment fills what the options leave open. */
void remote_options_apply(const struct remote_options *o, bool tls, struct net_config *c);
/* In the log: options that were passed over. */
void remote_options_say(const struct remote_options *o, const char *shown, struct net *net);
/* The user's headers, in their order. 0 or -1 when out of memory. */
int remote_options_headers(const struct remote_options *o, struct net_wire *w);

#endif
