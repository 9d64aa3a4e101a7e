/* Azure at its worst: the service answers as the real one seldom does (azure_server.py). The store
 * must end with the bytes, with "missing" where that is certain, or with one error that says what
 * to do; and never with a wrong one of these. */
#include "wire/azure.h"

static void a_wrong_clock_is_corrected_once(void)
{
    expect_hello("late", KEY, 2);
    expect_hello("wrong-date", KEY, 1);
}

static void throttling_and_server_faults_are_waited_out(void)
{
    expect_hello("busy", KEY, 3);
    expect_hello("timed-out", KEY, 3);
}

static void refusals_say_what_to_do(void)
{
    ERROR("gone", KEY, "az://gone/k: status 404 ContainerNotFound", "no container");
    ERROR("noperm", KEY, "403 AuthorizationPermissionMismatch", "Storage Blob Data Reader");
    ERROR("firewall", KEY, "403 AuthorizationFailure", "firewall");
    ERROR("nokeys", KEY, "403 KeyBasedAuthenticationNotPermitted", "managed identity");
    ERROR("archived", KEY, "409 BlobArchived", "archived");
    ERROR("nohttp", KEY, "400 AccountRequiresHttps", "https");
    ERROR("bare403", KEY, "status 403", "anon");
    ERROR("html", KEY, "status 404", "endpoint");
    ERROR("cut404", KEY, "status 404", "endpoint");
    ERROR("proxy404", KEY, "status 404", "endpoint");
}

static void missing_is_a_positive_answer(void)
{
    static const char *const containers[] = {"plain", "empty404"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_container(containers[i], KEY);
        check_eq(read_all(s, "k").r.rc, STORE_MISSING);
        check_eq(read_range(s, "k", -10, 0).r.rc, STORE_MISSING);
        check_eq(read_range(s, "k", 10, 10).r.rc, STORE_MISSING);
        store_unref(s);
    }
    static const char *const refused[] = {"noperm", "bare403"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_container(refused[i], KEY ", \"missing_403\": true");
        check_eq(read_all(s, "k").r.rc, STORE_MISSING);
        check_eq(read_all(s, "a/.zgroup").r.rc,
                 HR_ESTORE); /* cannot be told where nothing can be read */
        store_unref(s);
    }
    /* A wrong key is not a missing chunk. */
    struct store *s =
        open_container("plain", "\"account_key\": \"" OTHER "\", \"missing_403\": true");
    check_eq(read_all(s, "k").r.rc, HR_ESTORE);
    store_unref(s);
}

int main(int argc, char **argv)
{
    if (!azure_begin(argc, argv))
        return 77;
    RUN(a_wrong_clock_is_corrected_once);
    RUN(throttling_and_server_faults_are_waited_out);
    RUN(refusals_say_what_to_do);
    RUN(missing_is_a_positive_answer);
    server_stop(&mock);
    return t_done();
}
