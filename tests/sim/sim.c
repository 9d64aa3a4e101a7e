/* Runs seeded schedules of the real planner and engine (schedule.h) and reports them as one TAP test per kind of claim.
 *
 *     sim                       10,000 schedules, a fifth of them and more at exactly the smallest accepted budget
 *     sim --count N --from S    others
 *     sim --seed N --verbose    one schedule again, every action and event printed: how a failure is reproduced */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule.h"

#define PRINT(name) printf("# %-10s %llu\n", #name, (unsigned long long)t.name)

static void tally_print(const struct tally *total)
{
    struct tally t = *total;
    PRINT(schedules);
    PRINT(minimum);
    PRINT(tight);
    PRINT(push);
    PRINT(hold);
    PRINT(keep);
    PRINT(steps);
    PRINT(batches);
    PRINT(pushed);
    PRINT(held);
    PRINT(copies);
    PRINT(kept);
    PRINT(rereads);
    PRINT(failed);
    PRINT(larger);
    PRINT(restarts);
    PRINT(sentences);
}

static void claim(int n, bool ok, const char *what)
{
    printf("%s %d - %s\n", ok ? "ok" : "not ok", n, what);
}

int main(int argc, char **argv)
{
    uint64_t from = 1, count = 10000, one = 0, failures = 0;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--verbose"))
            verbose = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            one = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            count = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--from") && i + 1 < argc)
            from = strtoull(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "usage: sim [--seed N [--verbose]] [--from N] [--count N]\n");
            return 2;
        }
    }
    if (one)
        from = one, count = 1;
    struct tally t = {0};
    uint64_t seed = from;
    for (; one ? seed == from : t.schedules + failures < count; seed++) {
        struct hr_error e = {0};
        int rc = schedule_run(seed, verbose, &t, &e);
        if (rc > 0 && one)
            printf("# seed %llu makes no valid plan: %s\n", (unsigned long long)seed, e.text);
        if (rc < 0) {
            printf("# seed %llu: %s\n# again: sim --seed %llu --verbose\n",
                   (unsigned long long)seed, e.text, (unsigned long long)seed);
            if (++failures == 10)
                break;
        }
    }
    tally_print(&t);
    claim(1, !failures,
          "every schedule keeps the rules and gives the naive reader's batches in order");
    claim(2, one || t.minimum * 5 >= t.schedules,
          "a fifth of them at exactly the smallest accepted budget");
    claim(3,
          one || (t.push && t.hold && t.keep && t.rereads && t.copies && t.kept && t.larger &&
                  t.restarts && t.failed && t.sentences),
          "every way of the engine was taken, by plain samples and sentences");
    claim(4, !mem_live(), "nothing is left allocated");
    printf("1..4\n");
    return failures != 0;
}
