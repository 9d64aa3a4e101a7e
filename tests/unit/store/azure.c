/* What URLs, connection strings, options and the environment say about an Azure store. */
#include "store/azure_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/azure.h"
#include "t.h"

#define ENDPOINT "https://account.blob.core.windows.net"

static const char *const variables[] = {"AZURE_STORAGE_ACCOUNT",
                                        "AZURE_STORAGE_ACCOUNT_NAME",
                                        "AZURE_STORAGE_KEY",
                                        "AZURE_STORAGE_ACCOUNT_KEY",
                                        "AZURE_STORAGE_ACCESS_KEY",
                                        "AZURE_STORAGE_SAS_TOKEN",
                                        "AZURE_STORAGE_SAS_KEY",
                                        "AZURE_STORAGE_TOKEN",
                                        "AZURE_STORAGE_CONNECTION_STRING",
                                        "AZURE_STORAGE_ENDPOINT",
                                        "AZURE_ENDPOINT",
                                        "AZURE_STORAGE_USE_EMULATOR",
                                        "AZURE_STORAGE_ANON",
                                        "AZURE_SKIP_SIGNATURE",
                                        "AZURITE_BLOB_STORAGE_URL",
                                        "AZURE_CLIENT_ID",
                                        "AZURE_CLIENT_SECRET",
                                        "AZURE_TENANT_ID",
                                        "AZURE_STORAGE_CLIENT_ID",
                                        "AZURE_STORAGE_CLIENT_SECRET",
                                        "AZURE_STORAGE_TENANT_ID",
                                        "AZURE_FEDERATED_TOKEN_FILE",
                                        "AZURE_AUTHORITY_HOST"};

static void clear(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

static struct arena arena;

/* Read a URL with options; the text of an error, or NULL. */
static const char *read_options(const char *url, const char *json, struct azure_url *u,
                                struct azure_options *o)
{
    static struct hr_error e;
    struct store_env env = {0};
    e = (struct hr_error){.code = 0};
    arena_dispose(&arena);
    arena_init(&arena);
    int rc = azure_url_parse(url, u, &arena, &e);
    if (rc == 0)
        rc = azure_options_read(o, json, u, &env, "az://here", &arena, &e);
    return rc < 0 ? e.text : NULL;
}

static void expect_place(const char *url, const char *json, const char *account,
                         const char *endpoint, const char *container, const char *prefix)
{
    struct azure_url u;
    struct azure_options o;
    char place[256];
    const char *error = read_options(url, json, &u, &o);
    if (!check(!error)) {
        printf("# %s: %s\n", url, error);
        return;
    }
    snprintf(place, sizeof place, "%s%s", o.place.origin, o.place.root);
    check_str(o.account, account);
    check_str(place, endpoint);
    check_str(u.container, container);
    check_str(u.prefix, prefix);
}

#define NAMED "{\"account_name\": \"account\"}"

static void all_forms_of_urls_name_the_same_place(void)
{
    static const char *const short_forms[] = {
        "az://container/a/b.zarr", "azure://container/a/b.zarr/", "abfs://container/a/b.zarr",
        "abfss://container/a/b.zarr", "adl://container/a/b.zarr//"};
    static const char *const long_forms[] = {
        "abfs://container@account.dfs.core.windows.net/a/b.zarr",
        "abfss://container@account.dfs.core.windows.net/a/b.zarr/",
        "wasb://container@account.blob.core.windows.net/a/b.zarr",
        "wasbs://container@account.blob.core.windows.net/a/b.zarr",
        "az://container@account/a/b.zarr",
        "az://account.blob.core.windows.net/container/a/b.zarr",
        "https://account.blob.core.windows.net/container/a/b.zarr",
        "https://account.dfs.core.windows.net/container/a/b.zarr/",
        "http://account.blob.core.windows.net/container/a/b%2Ezarr",
        "https://account-secondary.dfs.core.windows.net/container/a/b.zarr#x"};
    clear();
    for (size_t i = 0; i < sizeof short_forms / sizeof *short_forms; i++)
        expect_place(short_forms[i], NAMED, "account", ENDPOINT, "container", "a/b.zarr");
    for (size_t i = 0; i + 1 < sizeof long_forms / sizeof *long_forms; i++) {
        expect_place(long_forms[i], "", "account", ENDPOINT, "container", "a/b.zarr");
        expect_place(long_forms[i], NAMED, "account", ENDPOINT, "container", "a/b.zarr");
    }
    expect_place(long_forms[sizeof long_forms / sizeof *long_forms - 1], "", "account",
                 "https://account-secondary.blob.core.windows.net", "container", "a/b.zarr");
    expect_place("https://account.z01.blob.storage.azure.net/c-1", "", "account",
                 "https://account.z01.blob.storage.azure.net", "c-1", "");
    expect_place("abfss://con@acc.dfs.core.chinacloudapi.cn/p", "", "acc",
                 "https://acc.blob.core.chinacloudapi.cn", "con", "p");
    expect_place("az://$web/a b%20?#", NAMED, "account", ENDPOINT, "$web", "a b%20?#");
}

static void signed_queries_are_kept_byte_for_byte(void)
{
    static const char sas[] = "sp=r&st=2024-01-01T00:00:00Z&sig=a%2Fb+c%3d%3D&x=";
    struct azure_url u;
    struct azure_options o;
    char url[256];
    clear();
    snprintf(url, sizeof url, "https://account.blob.core.windows.net/container/a?%s", sas);
    check(!read_options(url, "", &u, &o));
    check_str(o.given.sas, sas);
    check(azure_url_is(url));
    snprintf(url, sizeof url, "az://container/a?%s", sas);
    check(!read_options(url, NAMED, &u, &o));
    check_str(o.given.sas, sas);
    check_str(u.prefix, "a");
    check(azure_url_is("https://account.blob.core.windows.net/c/x"));
    check(!azure_url_is("https://account.blob.core.windows.net/c/x?snapshot=1"));
    check(!azure_url_is("https://example.org/account.blob.core.windows.net/c"));
    check(!azure_url_is("https://blob.core.windows.net.example.org/c"));
    check(!azure_url_is("az://account.blob.core.windows.net/c"));
}

static void expect_error(const char *url, const char *json, const char *part)
{
    struct azure_url u;
    struct azure_options o;
    const char *error = read_options(url, json, &u, &o);
    if (!check(error != NULL)) {
        printf("# %s\n", url);
        return;
    }
    check_has(error, part);
    check(!strstr(error, "SECRET"));
}

static void urls_that_mean_nothing_are_refused(void)
{
    clear();
    expect_error("az://ab/x", NAMED, "no name of a container");
    expect_error("az:///x", NAMED, "no name of a container");
    expect_error("az://Container/x", NAMED, "no name of a container");
    expect_error("az://a--b/x", NAMED, "no name of a container");
    expect_error("az://-ab/x", NAMED, "no name of a container");
    expect_error("https://account.blob.core.windows.net", "", "no name of a container");
    expect_error("https://account.blob.core.windows.net/con/%zz", "", "escape");
    expect_error("abfs://container@example.org/x", "", "no storage account");
    expect_error("abfs://container@/x", "", "no storage account");
    expect_error("az://container/x", "", "account_name");
    expect_error("az://con@one/x", "{\"account_name\": \"two\"}", "two accounts");
}

static void endpoints_are_found_in_their_order(void)
{
    clear();
    expect_place("az://con/x",
                 "{\"account_name\": \"account\", \"endpoint\": "
                 "\"http://127.0.0.1:10000/account/\"}",
                 "account", "http://127.0.0.1:10000/account", "con", "x");
    expect_place("az://con/x",
                 "{\"account_name\": \"account\", \"account_host\": "
                 "\"blobs.example.org\"}",
                 "account", "https://blobs.example.org", "con", "x");
    expect_place("az://con/x", "{\"use_emulator\": true}", "devstoreaccount1",
                 "http://127.0.0.1:10000/devstoreaccount1", "con", "x");
    setenv("AZURITE_BLOB_STORAGE_URL", "http://localhost:7", 1);
    expect_place("az://con/x", "{\"use_emulator\": true}", "devstoreaccount1",
                 "http://localhost:7/devstoreaccount1", "con", "x");
    setenv("AZURE_STORAGE_ACCOUNT", "account", 1);
    setenv("AZURE_STORAGE_ENDPOINT", "https://own.example.org", 1);
    expect_place("az://con/x", "", "account", "https://own.example.org", "con", "x");
    expect_place("az://con@other/x", "", "other", "https://other.blob.core.windows.net", "con",
                 "x");
    expect_place("abfs://con@account.dfs.core.windows.net/x", "", "account", ENDPOINT, "con", "x");
    clear();
    expect_error("az://con/x",
                 "{\"account_name\": \"account\", \"endpoint\": \"https://h/?sig=SECRET\"}",
                 "sas_token");
    expect_error("az://con/x",
                 "{\"account_name\": \"account\", \"endpoint\": \"http://h\", \"allow_http\": "
                 "false}",
                 "not encrypted");
}

static void connection_strings_say_account_key_and_endpoint(void)
{
    struct azure_url u;
    struct azure_options o;
    clear();
    check(!read_options("az://con/x",
                        "{\"connection_string\": \"DefaultEndpointsProtocol=https;AccountName=acc;"
                        "AccountKey=a2V5==;EndpointSuffix=core.chinacloudapi.cn\"}",
                        &u, &o));
    check_str(o.account, "acc");
    check_str(o.given.key, "a2V5==");
    check_str(o.place.origin, "https://acc.blob.core.chinacloudapi.cn");
    check(!read_options("az://con/x",
                        "{\"connection_string\": \" accountname=acc; SharedAccessSignature="
                        "sv=1&sig=a%3D;BlobEndpoint=http://h:1/acc/;\"}",
                        &u, &o));
    check_str(o.given.sas, "sv=1&sig=a%3D");
    check_str(o.place.root, "/acc");
    check(!read_options("az://con/x", "{\"connection_string\": \"UseDevelopmentStorage=true\"}", &u,
                        &o));
    check_str(o.account, AZURE_EMULATOR_ACCOUNT);
    check_str(o.given.key, AZURE_EMULATOR_KEY);
    check_str(o.place.origin, AZURE_EMULATOR_URL);
    expect_error("az://con/x", "{\"connection_string\": \"SECRET\"}", "connection string");
    expect_error("az://con/x", "{\"connection_string\": \"AccountKey=SECRET\"}", "AccountName");
    setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc;AccountKey=a2V5", 1);
    check(!read_options("az://con/x", "", &u, &o));
    check_str(o.account, "acc");
    check_str(o.found.key, "a2V5");
    check(!o.given.key);
    clear();
}

static void keys_of_the_environment_are_for_their_account_only(void)
{
    struct azure_url u;
    struct azure_options o;
    clear();
    setenv("AZURE_STORAGE_KEY", "a2V5", 1);
    setenv("AZURE_STORAGE_SAS_TOKEN", "sig=1", 1);
    check(!read_options("az://con@acc/x", "", &u, &o));
    check_str(o.found.key, "a2V5"); /* nobody says whose it is */
    setenv("AZURE_STORAGE_ACCOUNT", "acc", 1);
    check(!read_options("az://con@acc/x", "", &u, &o));
    check_str(o.found.key, "a2V5");
    check(!read_options("az://con/x", "", &u, &o));
    check_str(o.account, "acc");
    check(!read_options("az://con@other/x", "", &u, &o));
    check(!o.found.key && !o.found.sas);
    clear();
}

static void options_have_the_names_of_others(void)
{
    static const char *const keys[] = {"account_key", "access_key", "azure_storage_account_key",
                                       "azure_storage_access_key"};
    static const char *const tenants[] = {"tenant_id", "azure_tenant_id", "authority_id",
                                          "azure_storage_tenant_id"};
    struct azure_url u;
    struct azure_options o;
    char json[256];
    clear();
    for (size_t i = 0; i < 4; i++) {
        snprintf(json, sizeof json, "{\"azure_storage_account_name\": \"acc\", \"%s\": \"a2V5\"}",
                 keys[i]);
        check(!read_options("az://con/x", json, &u, &o));
        check_str(o.given.key, "a2V5");
        snprintf(json, sizeof json, "{\"account_name\": \"acc\", \"%s\": \"t\"}", tenants[i]);
        check(!read_options("az://con/x", json, &u, &o));
        check_str(o.given.tenant, "t");
    }
    check(!read_options("az://con@acc/x", "{\"skip_signature\": true}", &u, &o));
    check_eq(o.anonymous, MAYBE_YES);
    setenv("AZURE_STORAGE_ANON", "true", 1);
    check(!read_options("az://con@acc/x", "", &u, &o));
    check_eq(o.anonymous, MAYBE_YES);
    check(!read_options("az://con@acc/x", "{\"account_key\": \"a2V5\"}", &u, &o));
    check_eq(o.anonymous, MAYBE_UNSAID);
    clear();
    expect_error("az://con@acc/x", "{\"acount_key\": \"SECRET\"}", "account_key");
    expect_error("az://con@acc/x", "{\"anon\": true, \"account_key\": \"SECRET\"}", "not both");
    expect_error("az://con@acc/x", "{\"sas_token\": \"SECRET\"}", "sv=");
    expect_error("az://con@acc/x", "{\"sas_token\": \"sig=SECRET x\"}", "sv=");
    expect_error("az://con@acc/x", "{\"token\": \"SECRET\\r\\nx: y\"}", "token");
    expect_error("az://con@acc/x", "{\"container_name\": \"other\"}", "container_name");
}

static void the_end_of_a_sas_is_read(void)
{
    int64_t end = 0;
    check(azure_sas_end("sv=1&se=2024-02-29T12%3A34%3A56Z&sig=x", &end));
    check_eq(end, 1709210096);
    check(azure_sas_end("se=2024-02-29T12:34Z", &end));
    check_eq(end, 1709210040);
    check(azure_sas_end("sse=1&se=2024-02-29", &end));
    check_eq(end, 1709164800);
    check(!azure_sas_end("sse=2024-02-29&sig=se=2", &end));
    check(!azure_sas_end("se=soon", &end));
}

static void only_this_machine_is_this_machine(void)
{
    static const char *const yes[] = {"http://127.0.0.1", "http://127.1.2.3:80/x",
                                      "http://localhost/", "http://LOCALHOST:1", "http://[::1]:2/"};
    static const char *const no[] = {"http://127.0.0.1.example.org", "http://localhost.example.org",
                                     "http://127.0.0.1@example.org", "http://127.",
                                     "http://[::1].example.org",     "http://10.0.0.1",
                                     "http://127.0.0.1\\@h/"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        check(azure_is_loopback(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        check(!azure_is_loopback(no[i]));
}

static void running_out_of_memory_leaks_nothing(void)
{
    uint64_t live = mem_live();
    clear();
    setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc;AccountKey=a2V5", 1);
    for (uint64_t n = 1; n < 200; n++) {
        struct store *s = NULL;
        struct hr_error e = {0};
        mem_fail_at(n, false);
        int rc = store_open("az://container/a b?sv=1&sig=2",
                            "{\"tenant_id\": \"t\", \"max_retries\": 1}", &s, &e);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM || rc == HR_EUNSUPPORTED);
        store_unref(s);
        for (int i = 0; i < 1000 && mem_live() > live; i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (!check_eq(mem_live(), live))
            break;
    }
    clear();
}

int main(void)
{
    arena_init(&arena);
    RUN(all_forms_of_urls_name_the_same_place);
    RUN(signed_queries_are_kept_byte_for_byte);
    RUN(urls_that_mean_nothing_are_refused);
    RUN(endpoints_are_found_in_their_order);
    RUN(connection_strings_say_account_key_and_endpoint);
    RUN(keys_of_the_environment_are_for_their_account_only);
    RUN(options_have_the_names_of_others);
    RUN(the_end_of_a_sas_is_read);
    RUN(only_this_machine_is_this_machine);
    arena_dispose(&arena);
    RUN(running_out_of_memory_leaks_nothing);
    return t_done();
}
