/* What the AWS chain finds, printed for tests in other languages: id, secret, token, end, one a
 * line, or "error: " and its text. Arguments: profile and region, "" for none. With three more, a
 * bucket's URL, a key and seconds, the key is read again and again for so long instead, and what
 * is printed is how often that went well and how often not, and the last error. */
#include <stdatomic.h>

#include "store/cred_aws.h"
#include "wire/wire.h"

static void ready(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static void show(const char *s)
{
    printf("%s\n", s ? s : "");
}

static int read_on(char **argv)
{
    char options[256];
    struct hr_error e = {0};
    struct store *s;
    int good = 0, bad = 0;
    snprintf(options, sizeof options, "{\"profile\": %s%s%s, \"region\": \"%s\"}",
             *argv[1] ? "\"" : "null", argv[1], *argv[1] ? "\"" : "", argv[2]);
    if (store_open(argv[3], options, &s, &e) < 0) {
        printf("error: %s\n", e.text);
        return 0;
    }
    uint64_t until = clock_ns() + strtoull(argv[5], NULL, 10) * 1000000000ull;
    do {
        struct got g = read_all(s, argv[4]);
        if (g.r.rc == 0)
            good++;
        else if (bad++ < 1000)
            e = g.r.error;
        free(g.data);
        usleep(20000);
    } while (clock_ns() < until);
    store_unref(s);
    printf("%d\n%d\n%s\n", good, bad, e.text);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 5)
        return read_on(argv);
    static _Atomic int woken;
    struct net_policy quick = QUICK;
    struct hr_error e = {0};
    struct cred *c;
    struct cred_use use;
    quick.backoff_max_ms = 5;
    struct net *net = net_new(&(struct net_options){0}, &e);
    struct aws_config config = {.profile = argc > 1 && *argv[1] ? argv[1] : NULL,
                                .region = argc > 2 && *argv[2] ? argv[2] : NULL,
                                .what = "s3://bucket",
                                .net = net,
                                .policy = &quick,
                                .ready = ready,
                                .ready_arg = (void *)&woken};
    int rc = net ? cred_aws_new(&config, &c, &e) : HR_ENOMEM;
    if (rc == 0) {
        while ((rc = cred_get(c, &use, &e)) == NET_WAIT)
            usleep(1000);
        if (rc == 0) {
            show(use.value->id);
            show(use.value->secret);
            show(use.value->token);
            printf("%lld\n", (long long)use.value->until);
            cred_done(&use);
        }
        cred_close(c);
    }
    if (rc < 0)
        printf("error: %s\n", e.text);
    if (net)
        net_unref(net);
    for (int i = 0; i < 1000 && mem_live(); i++) /* the thread that fetched lets go of it */
        usleep(1000);
    return mem_live() ? 1 : 0;
}
