/* What to make of a try that brought no object: a status outside 2xx, or silence. Each sets the
 * try's fault, with the words that people will read. Internal to the room. */
#ifndef NET_JUDGE_H
#define NET_JUDGE_H
#include "net/transfer.h"

void judge_status(struct transfer *t);
void judge_silence(struct transfer *t, CURLcode code); /* no reply: what libcurl says decides */

#endif
