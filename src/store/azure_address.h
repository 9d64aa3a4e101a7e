/* Where a container is: the forms of URLs, endpoints and connection strings.
 *
 *     az://container/path, azure://…, abfs://…, adl://…, wasb://…     account from the options
 *     abfss://container@account.dfs.core.windows.net/path, wasbs://container@account.blob.…
 *     https://account.blob.core.windows.net/container/path[?SAS]
 *
 * The Blob service is spoken whatever the URL's form: it reads what the Data Lake service writes. */
#ifndef STORE_AZURE_ADDRESS_H
#define STORE_AZURE_ADDRESS_H
#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

/* What a URL says; NULL: nothing. In an arena. */
struct azure_url {
    const char *account, *host; /* host: of the Blob service */
    const char *container;
    const char *prefix; /* as it stands in keys, without '/' at its end; "" */
    const char *sas;    /* the query, byte for byte, if it is signed */
};
int azure_url_parse(const char *url, struct azure_url *out, struct arena *a, struct hr_error *e);
/* An http or https URL of the Blob or Data Lake service, without a query or with a signed one. */
bool azure_url_is(const char *url);

/* Where requests go. */
struct azure_place {
    const char *origin; /* "https://account.blob.core.windows.net" */
    const char *root;   /* what stands before the container: "", "/devstoreaccount1" */
    bool tls, loopback;
};
/* `endpoint`: scheme (https where there is none), host, port, path. */
int azure_place_parse(const char *endpoint, struct azure_place *out, struct arena *a,
                      struct hr_error *e);

/* "Name=value;…". NULL: not in it. */
struct azure_connection {
    const char *account, *key, *sas, *endpoint;
    bool development; /* UseDevelopmentStorage */
};
int azure_connection_parse(const char *text, struct azure_connection *out, struct arena *a,
                           struct hr_error *e);

/* What runs beside a developer: its account and key are the same everywhere. */
#define AZURE_EMULATOR_ACCOUNT "devstoreaccount1"
#define AZURE_EMULATOR_KEY                                                                         \
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define AZURE_EMULATOR_URL "http://127.0.0.1:10000"

#endif
