/* headrace bench: streams epochs with a consumer that does nothing, or sleeps for the time of a training step, and says how
 * fast batches came.
 *
 * Throughput is counted from the first call to the last batch, the first batch included. Decoded bytes are the library's
 * count; tensor bytes are what the consumer got, which windows make larger. The wait share is the consumer's time in
 * hr_loader_next: without --step-time it is nearly all of it. Progress goes to standard error when that is a terminal. */
#include "json.h"
#include "request.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: headrace bench [OPTION…] ARCHIVE --along DIM --view VIEW … --batch N\n\n"
    "Streams epochs and says how fast batches come: samples and decoded bytes a second, time to\n"
    "the first batch, share of time spent waiting, peak memory.\n\n"
    "Measurement\n"
    "  --epochs N           epochs to stream (1)\n"
    "  --steps N            stop after so many steps in all\n"
    "  --step-time MS       sleep so long after each batch, as a training step would take\n";

struct figures {
    int64_t steps, samples, valid, epochs;
    double tensor_bytes, seconds, first, wait;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double peak_resident(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) ? 0 : (double)u.ru_maxrss * 1024;
}

static void show_progress(const struct request *r, const struct figures *f, int64_t total)
{
    char rate[24], memory[24];
    fprintf(
        stderr,
        "\r\033[Kepoch %lld of %lld  step %lld of %lld  %.0f samples/s  %s/s of tensors  peak %s",
        (long long)f->epochs + 1, (long long)r->epochs, (long long)f->steps, (long long)total,
        (double)f->samples / f->seconds, cli_bytes(rate, f->tensor_bytes / f->seconds),
        cli_bytes(memory, peak_resident()));
}

static void take_batch(const struct hr_batch *b, struct figures *f)
{
    struct hr_tensor t;
    int64_t rows = hr_batch_rows(b);
    const uint8_t *valid = hr_batch_valid(b);
    f->steps++;
    f->samples += rows;
    for (int64_t i = 0; i < rows; i++)
        f->valid += valid[i] != 0;
    for (int i = 0; i < hr_batch_count(b); i++)
        if (!hr_batch_tensor(b, i, &t))
            f->tensor_bytes += (double)t.bytes;
}

static int drain(const struct request *r, struct hr_loader *l, struct figures *f,
                 struct hr_error *e)
{
    int64_t per_epoch;
    if (hr_loader_steps(l, &per_epoch, e) < 0)
        return -1;
    int64_t total = per_epoch * r->epochs;
    if (r->steps && r->steps < total)
        total = r->steps;
    bool terminal = isatty(STDERR_FILENO);
    double start = now(), shown = start;
    while (f->steps < total) {
        struct hr_batch *b;
        double asked = now();
        int rc = hr_loader_poll(l, -1, cli_show_log, NULL, &b, e);
        double got = now();
        if (rc < 0)
            return -1;
        f->wait += got - asked;
        f->seconds = got - start;
        if (rc == 0) {
            f->epochs++;
            continue;
        }
        f->first = f->steps ? f->first : f->seconds;
        take_batch(b, f);
        hr_batch_release(b);
        if (terminal && got - shown > 0.1) {
            show_progress(r, f, total);
            shown = got;
        }
        if (r->step_seconds > 0 && f->steps < total)
            nanosleep(
                &(struct timespec){
                    (time_t)r->step_seconds,
                    (long)((r->step_seconds - (double)(time_t)r->step_seconds) * 1e9)},
                NULL);
    }
    if (terminal)
        fputs("\r\033[K", stderr);
    return 0;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void print_json(const struct figures *f, const char *stats, double decoded)
{
    printf("{\"steps\": %lld, \"samples\": %lld, \"valid_samples\": %lld, \"seconds\": %.6f, "
           "\"samples_per_second\": %.6g, \"decoded_bytes_per_second\": %.6g, "
           "\"tensor_bytes_per_second\": %.6g, "
           "\"first_batch_seconds\": %.6f, \"wait_share\": %.6g, \"peak_resident_bytes\": %.0f, "
           "\"stats\": %s}\n",
           (long long)f->steps, (long long)f->samples, (long long)f->valid, f->seconds,
           share((double)f->samples, f->seconds), share(decoded, f->seconds),
           share(f->tensor_bytes, f->seconds), f->first, share(f->wait, f->seconds),
           peak_resident(), stats);
}

static void print_text(const struct figures *f, const struct value *stats, double decoded)
{
    char a[24], b[24];
    const struct value *chunks = value_get(stats, "chunks"), *memory = value_get(stats, "memory");
    printf("batches     %s, %s sample%s in %s\n", cli_count((double)f->steps),
           cli_count((double)f->samples), f->samples == 1 ? "" : "s", cli_seconds(a, f->seconds));
    printf("throughput  %s samples/s, %s/s decoded, %s/s of tensors\n",
           cli_count(share((double)f->samples, f->seconds)),
           cli_bytes(a, share(decoded, f->seconds)),
           cli_bytes(b, share(f->tensor_bytes, f->seconds)));
    printf("first batch after %s\n", cli_seconds(a, f->first));
    printf("waiting     %s for batches, %.1f %% of the time\n", cli_seconds(a, f->wait),
           100 * share(f->wait, f->seconds));
    printf("chunks      %s read, %s of them again; %s missing\n",
           cli_count(value_number(chunks, "read", 0)), cli_count(value_number(chunks, "reread", 0)),
           cli_count(value_number(chunks, "missing", 0)));
    printf("memory      %s of the budget at most, %s resident at most\n",
           cli_bytes(a, value_number(memory, "peak", 0)), cli_bytes(b, peak_resident()));
    const char *summary = value_text(value_get(stats, "store"), "summary", NULL);
    if (summary) /* of a store behind a network */
        printf("store       %s\n", summary);
}

int command_bench(int argc, char **argv)
{
    struct request r;
    struct opened o;
    struct hr_error e;
    struct figures f = {0};
    char *json = NULL;
    int rc = request_read(argc, argv, usage, true, &r);
    if (rc)
        return rc < 0 ? EXIT_OK : rc;
    if ((rc = request_open(&r, &o)))
        return rc;
    if (drain(&r, o.loader, &f, &e) < 0 || hr_loader_stats_json(o.loader, &json, &e) < 0) {
        rc = cli_fail(&e);
    } else {
        const struct value *stats = json_read(json);
        double decoded = value_number(value_get(stats, "bytes"), "decoded", 0);
        if (r.json)
            print_json(&f, json, decoded);
        else
            print_text(&f, stats, decoded);
    }
    hr_free(json);
    request_close(&o);
    return rc ? rc : cli_finish();
}
