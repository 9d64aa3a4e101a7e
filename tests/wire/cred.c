/* AWS credentials in use: requests of providers, renewal under way, many who ask at once, closing
 * at any moment. Who wins in the chain is cred.py's matter. */
#include "store/cred_aws.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "store/meta.h"
#include "wire/wire.h"

static struct server server;
static struct net *net;
static char home[64];
static const struct net_policy quick = QUICK;

/* An environment of our own: what is set here is all there is. */
static void clear_aws(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "AWS_ENDPOINT_URL_STS",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_REGION",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_DEFAULT_REGION",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "http_proxy",
        "HTTP_PROXY",
        "AWS_DEFAULT_PROFILE",
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", home, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

static const char *at(const char *path)
{
    static char urls[4][128];
    static unsigned turn;
    char *url = urls[turn++ % 4];
    snprintf(url, sizeof urls[0], "http://127.0.0.1:%d%s", server.port, path);
    return url;
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *f = fopen(path, "w");
    if (check(f)) {
        fputs(text, f);
        fclose(f);
    }
}

static void web_identity(const char *sts)
{
    char path[256];
    snprintf(path, sizeof path, "%s/web", home);
    clear_aws();
    write_file("web", "eyJ.web.identity\n");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/web", 1);
    setenv("AWS_ENDPOINT_URL_STS", at(sts), 1);
}

static void ready(void *arg)
{
    if (arg)
        atomic_fetch_add((_Atomic int *)arg, 1);
}

static struct cred *start(void)
{
    struct aws_config c = {.what = "s3://bucket", .net = net, .policy = &quick, .ready = ready};
    struct cred *cred = NULL;
    struct hr_error e = {0};
    if (!check_eq(cred_aws_new(&c, &cred, &e), 0))
        printf("# %s\n", e.text);
    return cred;
}

static int get(struct cred *c, struct cred_use *use, struct hr_error *e)
{
    for (int i = 0; i < 20000; i++) {
        int rc = cred_get(c, use, e);
        if (rc != NET_WAIT)
            return rc;
        usleep(1000);
    }
    return NET_WAIT;
}

/* All threads have let go of what was allocated since. */
static bool settles(uint64_t live, uint64_t ms)
{
    for (uint64_t i = 0; i < ms && mem_live() > live; i++)
        usleep(1000);
    return mem_live() <= live;
}

/* ---- requests of providers ------------------------------------------------------------------- */

static int ask(const struct net_policy *policy, const struct meta_ask *ask, int *status,
               struct buf *body, struct hr_error *e)
{
    struct meta_config c = {.net = net, .policy = policy};
    struct meta *m;
    memset(e, 0, sizeof *e);
    int rc = meta_new(&c, &m, e);
    if (check_eq(rc, 0)) {
        rc = meta_request(m, ask, status, body, e);
        meta_free(m);
    }
    return rc;
}

static void answers_and_refusals_come_with_their_bodies(void)
{
    struct buf body;
    struct hr_error e;
    int status;
    buf_init(&body);
    clear_aws();
    struct meta_ask good = {.url = at("/open/creds"), .neighbour = true};
    check_eq(ask(&quick, &good, &status, &body, &e), 0);
    check_has(body.data, "ASIACONTAINER");
    check_eq(status, 200);
    struct meta_ask bad = {.url = at("/container/creds"), .neighbour = true};
    check_eq(ask(&quick, &bad, &status, &body, &e), HR_ESTORE);
    check_eq(status, 401);
    check_str(body.data, "who is there?");
    check_has(e.text, "/container/creds: status 401");
    struct meta_ask post = {
        .method = "POST", .url = at("/sts/"), .body = "Action=Nothing&Version=1"};
    check_eq(ask(&quick, &post, &status, &body, &e), HR_ESTORE);
    check_eq(status, 400);
    check_has(body.data, "<Code>ValidationError</Code>");
    struct meta_ask nobody = {.url = "http://127.0.0.1:9/", .neighbour = true};
    check_eq(ask(&quick, &nobody, &status, &body, &e), HR_ESTORE);
    check_eq(status, 0);
    buf_dispose(&body);
}

/* A body that is cut, then an error with a longer body, then the whole. */
static void an_error_between_two_halves_of_an_answer_does_no_harm(void)
{
    struct buf body;
    struct hr_error e;
    int status;
    buf_init(&body);
    struct meta_ask cut = {.url = at("/cut/a")};
    if (!check_eq(ask(&quick, &cut, &status, &body, &e), 0))
        printf("# %s\n", e.text);
    check_eq(body.size, 2000);
    check(body.data && strspn(body.data, "z") == 2000);
    buf_dispose(&body);
}

static void a_neighbour_that_is_silent_costs_two_seconds(void)
{
    const struct net_policy usual = NET_POLICY;
    struct buf body;
    struct hr_error e;
    int status;
    buf_init(&body);
    uint64_t from = clock_ns();
    struct meta_ask slow = {.url = at("/slow/x"), .neighbour = true};
    check_eq(ask(&usual, &slow, &status, &body, &e), HR_ESTORE);
    check_eq(status, 0);
    uint64_t ms = (clock_ns() - from) / 1000000;
    check(ms >= 1900 && ms < 3200);
    buf_dispose(&body);
}

static void *ask_slow(void *arg)
{
    struct buf body;
    struct hr_error e = {0};
    int status;
    struct meta_ask slow = {.url = at("/slow/y")};
    buf_init(&body);
    intptr_t rc = meta_request(arg, &slow, &status, &body, &e);
    if (rc == HR_ECLOSED)
        rc = meta_request(arg, &slow, &status, &body, &e); /* and from then on */
    buf_dispose(&body);
    return (void *)rc;
}

static void a_stop_ends_a_request_and_all_later_ones(void)
{
    const struct net_policy usual = NET_POLICY;
    struct meta_config c = {.net = net, .policy = &usual};
    struct meta *m;
    pthread_t t;
    void *rc;
    check_eq(meta_new(&c, &m, NULL), 0);
    check_eq(pthread_create(&t, NULL, ask_slow, m), 0);
    usleep(100000);
    uint64_t from = clock_ns();
    meta_stop(m);
    pthread_join(t, &rc);
    check_eq((intptr_t)rc, HR_ECLOSED);
    check(clock_ns() - from < 500000000ull);
    meta_free(m);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static int count_given(void)
{
    struct buf body;
    struct hr_error e;
    int status;
    buf_init(&body);
    struct meta_ask count = {.url = at("/count"), .neighbour = true};
    int n = ask(&quick, &count, &status, &body, &e) == 0 ? (int)strtol(body.data, NULL, 10) : -1;
    buf_dispose(&body);
    return n;
}

static void short_lives_are_renewed_ahead_and_nobody_waits(void)
{
    struct cred_use use;
    web_identity("/life2/sts/");
    int before = count_given();
    struct cred *c = start();
    check_eq(get(c, &use, NULL), 0);
    check_str(use.value->id, "ASIAWEB-web");
    cred_done(&use);
    int waits = 0;
    for (int i = 0; i < 5000; i++) {
        int rc = cred_get(c, &use, NULL);
        waits += rc != 0;
        if (rc == 0) {
            check(use.value->until >= (int64_t)time(NULL));
            cred_done(&use);
        }
        usleep(1000);
    }
    int given = count_given() - before;
    check(given >= 3 && given <= 20);
    if (!check(waits <= 20)) /* where the machine is slow */
        printf("# %d of 5000 had to wait\n", waits);
    cred_close(c);
}

/* The token's file is read at each fetch; an identity provider renews what is in it. */
static void a_token_that_goes_bad_is_an_error_until_it_is_good_again(void)
{
    struct cred_use use;
    struct hr_error e = {0};
    web_identity("/life2/sts/");
    struct cred *c = start();
    check_eq(get(c, &use, NULL), 0);
    int64_t until = use.value->until;
    cred_done(&use);
    write_file("web", "worn out");
    int rc;
    while ((rc = get(c, &use, &e)) == 0 && (int64_t)time(NULL) < until + 3) {
        cred_done(&use);
        usleep(10000);
    }
    check_eq(rc, HR_ESTORE);
    check((int64_t)time(NULL) >= until - 1);
    check_has(e.text, "s3://bucket: credentials from web identity: role arn:aws:iam::1:role/web: "
                      "InvalidIdentityToken");
    check(!strstr(e.text, "worn"));
    write_file("web", "eyJ.web.identity");
    for (int i = 0; i < 80 && (rc = get(c, &use, &e)) < 0; i++)
        usleep(100000);
    if (check_eq(rc, 0))
        cred_done(&use);
    cred_close(c);
}

static void *one_of_many(void *arg)
{
    struct cred_use use;
    int rc = get(arg, &use, NULL);
    if (rc == 0)
        cred_done(&use);
    return (void *)(intptr_t)rc;
}

static void many_at_once_cause_one_fetch(void)
{
    pthread_t threads[16];
    web_identity("/sts/");
    int before = count_given();
    struct cred *c = start();
    for (int i = 0; i < 16; i++)
        check_eq(pthread_create(&threads[i], NULL, one_of_many, c), 0);
    for (int i = 0; i < 16; i++) {
        void *rc;
        pthread_join(threads[i], &rc);
        check_eq((intptr_t)rc, 0);
    }
    check_eq(count_given() - before, 1);
    cred_close(c);
}

static void the_environment_is_that_of_the_opening(void)
{
    struct cred_use use;
    clear_aws();
    setenv("AWS_ACCESS_KEY_ID", "first", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    struct cred *c = start();
    setenv("AWS_ACCESS_KEY_ID", "second", 1);
    check_eq(get(c, &use, NULL), 0);
    check_str(use.value->id, "first");
    cred_done(&use);
    cred_close(c);
}

static void given_keys_come_first(void)
{
    struct cred_use use;
    struct cred *c;
    struct hr_error e = {0};
    clear_aws();
    setenv("AWS_ACCESS_KEY_ID", "environment", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    struct aws_config config = {.id = "given",
                                .secret = "x",
                                .token = "y",
                                .what = "s3://bucket",
                                .net = net,
                                .ready = ready};
    check_eq(cred_aws_new(&config, &c, &e), 0);
    check_eq(get(c, &use, NULL), 0);
    check_str(use.value->id, "given");
    check_str(use.value->token, "y");
    cred_done(&use);
    cred_close(c);
    config.secret = NULL;
    check_eq(cred_aws_new(&config, &c, &e), HR_EINVAL);
    check_has(e.text, "needs its secret");
}

static void an_instance_that_is_not_there_is_not_asked_again_at_once(void)
{
    struct cred_use use;
    struct hr_error e = {0};
    clear_aws();
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", at("/slow"), 1);
    struct cred *c = start();
    check_eq(get(c, &use, &e), HR_ESTORE);
    check_has(e.text, "/slow: no answer");
    sleep(5); /* so long the error stands */
    uint64_t from = clock_ns();
    check_eq(get(c, &use, &e), HR_ESTORE);
    check_has(e.text, "instance metadata (no answer a moment ago)");
    check(clock_ns() - from < 300000000ull);
    cred_close(c);
}

static void settings_of_environment_and_profile(void)
{
    struct aws_settings s;
    struct arena a;
    struct hr_error e = {0};
    char path[128];
    clear_aws();
    snprintf(path, sizeof path, "%s/.aws", home);
    check_eq(mkdir(path, 0700), 0);
    write_file(".aws/config", "[profile p]\nregion = eu-west-3\nca_bundle = /ca\ns3 =\n"
                              "  addressing_style = path\nservices = here\n[services here]\n"
                              "s3 =\n  endpoint_url = http://s3.here\n");
    arena_init(&a);
    check_eq(aws_settings_read("p", &a, &s, &e), 0);
    check_str(s.region, "eu-west-3");
    check_str(s.endpoint_url, "http://s3.here");
    check_str(s.addressing_style, "path");
    check_str(s.ca_file, "/ca");
    setenv("AWS_DEFAULT_REGION", "us-west-1", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://env", 1);
    check_eq(aws_settings_read("p", &a, &s, &e), 0);
    check_str(s.region, "us-west-1");
    check_str(s.endpoint_url, "http://env");
    setenv("AWS_REGION", "us-west-2", 1);
    check_eq(aws_settings_read(NULL, &a, &s, &e), 0);
    check_str(s.region, "us-west-2");
    check(!s.addressing_style);
    check_eq(aws_settings_read("nope", &a, &s, &e), HR_EINVAL);
    unsetenv("AWS_ENDPOINT_URL_S3");
    arena_dispose(&a);
    snprintf(path, sizeof path, "%s/.aws/config", home);
    unlink(path);
    snprintf(path, sizeof path, "%s/.aws", home);
    rmdir(path);
}

/* ---- a store that uses them ------------------------------------------------------------------ */

static struct store *open_vault(void)
{
    char options[160];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {net, &quick};
    snprintf(options, sizeof options,
             "{\"endpoint_url\": \"http://127.0.0.1:%d\", \"region\": \"eu-west-3\"}", server.port);
    if (!check_eq(store_open_with("s3://vault/deep", options, &env, &s, &e), 0))
        printf("# %s\n", e.text);
    return s;
}

static bool reads_well(struct store *s)
{
    struct got g = read_all(s, "a b+c");
    bool good = g.r.rc == 0 && g.r.size == 8 && !memcmp(g.data, "treasure", 8);
    if (!good)
        printf("# %s\n", g.r.error.text);
    free(g.data);
    return good;
}

static void a_store_reads_on_while_its_keys_come_and_go(void)
{
    web_identity("/life2/sts/");
    struct store *s = open_vault();
    int before = count_given(), bad = 0;
    uint64_t until = clock_ns() + 6000000000ull;
    while (s && clock_ns() < until && bad < 3) {
        bad += !reads_well(s);
        usleep(3000);
    }
    check_eq(bad, 0);
    int given = count_given() - before;
    check(given >= 3 && given <= 24);
    store_unref(s);
}

static void keys_that_are_revoked_are_fetched_anew_once(void)
{
    struct buf body;
    struct hr_error e;
    int status;
    web_identity("/sts/");
    struct store *s = open_vault();
    int before = count_given();
    check(s && reads_well(s));
    usleep(1100000); /* younger ones are not asked for again */
    struct meta_ask revoke = {.url = at("/revoke")};
    buf_init(&body);
    check_eq(ask(&quick, &revoke, &status, &body, &e), 0);
    check(s && reads_well(s));
    check(s && reads_well(s));
    check_eq(count_given() - before, 2);
    check_eq(ask(&quick, &revoke, &status, &body, &e), 0);
    buf_dispose(&body);
    struct got g = read_all(s, "k"); /* fetched a moment ago: that will not help */
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "ExpiredToken");
    free(g.data);
    store_unref(s);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void closing_ends_a_fetch_under_way(void)
{
    char program[128];
    struct cred_use use;
    uint64_t live = mem_live();
    snprintf(program, sizeof program, "[default]\ncredential_process = sleep 30\n");
    write_file("slow-config", program);
    for (int way = 0; way < 3; way++) {
        clear_aws();
        if (way == 0) {
            unsetenv("AWS_EC2_METADATA_DISABLED");
            setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", at("/slow"), 1);
        } else if (way == 1) {
            snprintf(program, sizeof program, "%s/slow-config", home);
            setenv("AWS_CONFIG_FILE", program, 1);
        } else {
            web_identity("/slow/sts/");
        }
        struct cred *c = start();
        check_eq(cred_get(c, &use, NULL), NET_WAIT);
        usleep(60000);
        uint64_t from = clock_ns();
        cred_close(c);
        check(clock_ns() - from < 100000000ull);
        check(settles(live, 300));
        unsetenv("AWS_CONFIG_FILE");
    }
}

/* A store in small: its requests wait for a credential, its last request takes it along. */
struct small {
    struct net_client *client;
    struct cred *cred;
    _Atomic int done, good;
};

static int build(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e)
{
    struct small *s = arg;
    struct cred_use use;
    int rc = cred_get(s->cred, &use, e);
    if (rc)
        return rc;
    buf_puts(&w->url, at("/open/creds"));
    net_wire_header(w, "X-Key", use.value->id);
    w->mark = use.generation;
    cred_done(&use);
    return 0;
}

static enum net_verdict judge(void *arg, const struct net_reply *r, struct net_saying *say)
{
    return NET_DEFAULT;
}
static void small_release(void *arg)
{
    struct small *s = arg;
    cred_close(s->cred);
    free(s);
}
static void small_ready(void *arg)
{
    net_client_wake(((struct small *)arg)->client);
}
static void *no_room(void *arg, uint64_t size)
{
    static char sink[65536];
    return size <= sizeof sink ? sink : NULL;
}
static void small_done(void *arg, const struct net_result *r)
{
    atomic_fetch_add((_Atomic int *)arg, r->rc == 0 ? 65537 : 1); /* ended, and well */
}

static void requests_wait_for_a_credential_and_may_be_closed_while_they_do(void)
{
    static _Atomic int ended;
    int short_test = getenv("HEADRACE_TEST_SHORT") ? 40 : 150;
    uint64_t live = mem_live();
    for (int i = 0; i < short_test; i++) {
        web_identity(i % 3 ? "/life2/sts/" : "/sts/");
        struct small *s = calloc(1, sizeof *s);
        struct aws_config c = {.what = "s3://bucket",
                               .net = net,
                               .policy = &quick,
                               .ready = small_ready,
                               .ready_arg = s};
        check_eq(cred_aws_new(&c, &s->cred, NULL), 0);
        struct net_config n = {.build = build,
                               .judge = judge,
                               .release = small_release,
                               .arg = s,
                               .shown = "small",
                               .policy = quick};
        check_eq(net_client_open(net, &n, &s->client, NULL), 0);
        struct net_client *client = s->client;
        atomic_store(&ended, 0);
        for (int k = 0; k < 4; k++) {
            uint64_t ticket;
            struct net_get g = {.key = "k",
                                .want = {.kind = WANT_WHOLE},
                                .room = no_room,
                                .done = small_done,
                                .done_arg = (void *)&ended};
            check_eq(net_start(client, &g, &ticket, NULL), 0);
        }
        if (i % 2)
            usleep((unsigned)(i % 25) * 400);
        else
            for (int k = 0; k < 5000 && (atomic_load(&ended) & 65535) < 4; k++)
                usleep(1000);
        if (i % 2 == 0)
            check_eq(atomic_load(&ended) >> 16, 4);
        net_client_close(client);
        for (int k = 0; k < 5000 && (atomic_load(&ended) & 65535) < 4; k++)
            usleep(1000);
        check_eq(atomic_load(&ended) & 65535, 4);
    }
    check(settles(live, 2000));
}

static void no_memory_is_an_error_wherever_it_happens(void)
{
    uint64_t live = mem_live();
    int found = 0;
    for (int way = 0; way < 3; way++)
        for (uint64_t n = 1; n < 400; n++) {
            if (way == 2)
                web_identity("/sts/");
            else
                clear_aws();
            write_file("keys", "[default]\naws_access_key_id=A\naws_secret_access_key=B\n");
            char path[128];
            snprintf(path, sizeof path, "%s/keys", home);
            if (way == 0)
                setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
            if (way == 1)
                setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", at("/open/creds"), 1);
            struct aws_config c = {
                .what = "s3://bucket", .net = net, .policy = &quick, .ready = ready};
            struct cred *cred = NULL;
            struct cred_use use;
            struct hr_error e = {0};
            mem_fail_at(n, false);
            int rc = cred_aws_new(&c, &cred, &e);
            if (rc == 0)
                rc = get(cred, &use, &e);
            bool over = mem_count() < n;
            mem_fail_at(0, false);
            if (!check(rc == 0 || e.text[0]))
                printf("# way %d, allocation %d: %d\n", way, (int)n, rc);
            if (rc == 0)
                cred_done(&use);
            cred_close(cred);
            unsetenv("AWS_SHARED_CREDENTIALS_FILE");
            if (!check(settles(live, 2000))) {
                printf("# way %d, allocation %d: not all given back\n", way, (int)n);
                live = mem_live();
            }
            found += rc < 0;
            if (over)
                break;
        }
    check(found > 20);
}

int main(int argc, char **argv)
{
    snprintf(home, sizeof home, "/tmp/headrace-cred-XXXXXX");
    if (argc < 2 || !mkdtemp(home) || !server_start(&server, argv[1]))
        return 1;
    net = net_new(&(struct net_options){0}, NULL);
    RUN(answers_and_refusals_come_with_their_bodies);
    RUN(an_error_between_two_halves_of_an_answer_does_no_harm);
    RUN(a_neighbour_that_is_silent_costs_two_seconds);
    RUN(a_stop_ends_a_request_and_all_later_ones);
    RUN(short_lives_are_renewed_ahead_and_nobody_waits);
    RUN(a_token_that_goes_bad_is_an_error_until_it_is_good_again);
    RUN(many_at_once_cause_one_fetch);
    RUN(the_environment_is_that_of_the_opening);
    RUN(given_keys_come_first);
    RUN(an_instance_that_is_not_there_is_not_asked_again_at_once);
    RUN(settings_of_environment_and_profile);
    RUN(a_store_reads_on_while_its_keys_come_and_go);
    RUN(keys_that_are_revoked_are_fetched_anew_once);
    RUN(closing_ends_a_fetch_under_way);
    RUN(requests_wait_for_a_credential_and_may_be_closed_while_they_do);
    RUN(no_memory_is_an_error_wherever_it_happens);
    net_unref(net);
    server_stop(&server);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", home);
    return t_done() | (system(command) ? 1 : 0);
}
