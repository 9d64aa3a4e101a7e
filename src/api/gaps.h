/* Steps along a coordinate with gaps: which positions of a sample axis have a window that runs over one. */
#ifndef API_GAPS_H
#define API_GAPS_H
#include "api/core.h"

/* Of a frozen-to-be core whose boxes are known: leave out the ids whose steps run over a gap, where a view asks for it. */
int gaps_drop(struct core *c, struct hr_error *e);

/* What steps run over where nobody asked: of the views the one with the most samples that do. */
struct gaps_note {
    const char *view, *dim; /* NULL: none runs over any */
    int64_t samples, gaps;  /* samples whose steps run over one; how many of those there are */
    char at[64];            /* the value behind the first */
};
/* Reads the coordinates of the views' sample axes. One that is not there, or cannot be read, has no gaps. */
int gaps_look(struct hr_samples *s, struct gaps_note *out, struct hr_error *e);

#endif
