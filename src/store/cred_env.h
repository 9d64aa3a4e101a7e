/* What the environment says about reaching servers. Read when a store is opened, in the caller's
 * thread: the network thread never calls getenv, which races with a setenv of the host program. */
#ifndef STORE_CRED_ENV_H
#define STORE_CRED_ENV_H
#include <stdbool.h>

const char *env_proxy(bool tls); /* http_proxy / https_proxy, all_proxy; NULL: none */
const char *env_no_proxy(void);
/* The certificate bundle: SSL_CERT_FILE, CURL_CA_BUNDLE, or where distributions keep it. NULL:
 * libcurl's own. The built-in path of a libcurl that came with another distribution or in a
 * wheel is often wrong here. */
const char *env_ca_file(void);

#endif
