/* See clock.h. */
#include "store/clock.h"

#include <stdio.h>
#include <time.h>

#define STEP_S 60 /* corrections smaller than this cannot be what was wrong */

int64_t clock_of_server(const struct server_clock *c)
{
    return (int64_t)time(NULL) + atomic_load(&c->off);
}

uint8_t clock_mark(const struct server_clock *c)
{
    return (uint8_t)atomic_load(&c->corrections);
}

bool clock_ahead(const struct reply *answer, int64_t *off)
{
    size_t n;
    int64_t theirs;
    const char *date = reply_header(answer, "date", &n);
    if (!date || !reply_date(date, n, &theirs))
        return false;
    *off = theirs - (int64_t)time(NULL);
    return true;
}

bool clock_learns(struct server_clock *c, const struct reply *answer, uint8_t mark,
                  const char *shown, struct net *net)
{
    int64_t off;
    char text[256];
    if (clock_mark(c) != mark)
        return true; /* another answer was first */
    if (!clock_ahead(answer, &off))
        return false;
    int64_t change = off - atomic_load(&c->off);
    if (change > -STEP_S && change < STEP_S)
        return false;
    atomic_store(&c->off, off);
    atomic_fetch_add(&c->corrections, 1);
    snprintf(text, sizeof text,
             "%.120s: this machine's clock differs from the server's by %lld s; requests are "
             "signed with the server's time",
             shown, (long long)(off < 0 ? -off : off));
    net_say(net, 30, text);
    return true;
}
