/* "Did you mean …": the names nearest to one that does not exist. Private to the format room. */
#ifndef FORMAT_NEAR_H
#define FORMAT_NEAR_H
#include "base/buf.h"

#define NEAR_MAX 3

struct near {
    const char *wanted;
    int n;
    struct {
        const char *name; /* not owned: must live until near_text */
        unsigned score;   /* smaller is nearer */
    } best[NEAR_MAX];
    const char *offered[NEAR_MAX + 1]; /* the first by alphabet, near or not */
    int n_offered;
};

void near_init(struct near *x, const char *wanted);
void near_offer(struct near *x, const char *name);
/* `"t2m", "t2m_mean" or "tp"`; nothing when no name was near. */
void near_text(const struct near *x, struct buf *out);
/* `"lat", "lon", "t2m", …`: the first by alphabet, for when none is near. */
void near_others(const struct near *x, struct buf *out);

#endif
