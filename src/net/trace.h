/* The debug log's line about one request. Internal to the room. */
#ifndef NET_TRACE_H
#define NET_TRACE_H
#include "net/transfer.h"

/* `t` as in try_retire. What was asked, without secrets: no query of the URL, no headers. */
void trace_try(const struct easy *h, const struct transfer *t, long connects);

#endif
