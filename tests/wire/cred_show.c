/* What the AWS chain finds, printed for tests in other languages: id, secret, token, end, one a
 * line, or "error: " and its text. Arguments: profile and region, "" for none. */
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

int main(int argc, char **argv)
{
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
