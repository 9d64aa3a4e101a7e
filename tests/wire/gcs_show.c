/* What the chain of Google credentials finds, printed for tests in other languages: the token and
 * its end, one a line, or "error: " and its text. Arguments, "" for none: a file, "metadata",
 * how many times to fetch anew. */
#include <stdatomic.h>

#include "store/cred_gcs.h"
#include "wire/wire.h"

static void ready(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static int show(struct cred *c, struct hr_error *e)
{
    struct cred_use use;
    int rc;
    while ((rc = cred_get(c, &use, e)) == NET_WAIT)
        usleep(1000);
    if (rc < 0)
        return rc;
    printf("%s\n%lld\n", use.value->token ? use.value->token : "", (long long)use.value->until);
    cred_done(&use);
    return 0;
}

int main(int argc, char **argv)
{
    static _Atomic int woken;
    struct net_policy quick = QUICK;
    struct hr_error e = {0};
    struct gcs_env env;
    struct cred *c;
    struct arena arena;
    arena_init(&arena);
    quick.backoff_max_ms = 5;
    struct net *net = net_new(&(struct net_options){0}, &e);
    int rc = net ? gcs_env_read(&env, &arena, &e) : HR_ENOMEM;
    struct gcs_config config = {.file = argc > 1 && *argv[1] ? argv[1] : NULL,
                                .metadata_only = argc > 2 && *argv[2],
                                .env = &env,
                                .what = "gs://bucket",
                                .net = net,
                                .policy = &quick,
                                .ready = ready,
                                .ready_arg = (void *)&woken,
                                .anonymous = argc > 3};
    if (rc == 0)
        rc = cred_gcs_new(&config, &c, &e);
    if (rc == 0) {
        rc = show(c, &e);
        for (long n = argc > 3 ? strtol(argv[3], NULL, 10) : 0; rc == 0 && n; n--) {
            usleep(1100000); /* lives of a second are over */
            rc = show(c, &e);
        }
        cred_close(c);
    }
    if (rc < 0)
        printf("error: %s\n", e.text);
    if (net)
        net_unref(net);
    arena_dispose(&arena);
    for (int i = 0; i < 1000 && mem_live(); i++) /* the thread that fetched lets go of it */
        usleep(1000);
    return mem_live() ? 1 : 0;
}
