/* What a store says of an object's bytes: the CRC-32C of the whole of it, in a header beside them.
 *
 * It guards what TLS does not: proxies and caches in between, servers with bad memory, plain http. Only whole objects have
 * one. Other checksums (MD5, CRC-32, CRC-64/NVME, SHA) and those of parts are left alone. */
#ifndef STORE_SUM_H
#define STORE_SUM_H
#include "base/crc32c.h"
#include "base/error.h"
#include "net/reply.h"

#define SUM_S3_ASK "x-amz-checksum-mode" /* "ENABLED" with a request: the answer has it */

struct sum {
    crc32c_table *table; /* NULL: this CPU needs none */
};
int sum_init(struct sum *s, struct hr_error *e);
void sum_dispose(struct sum *s);
/* False, and *why: the head has a checksum, and it is not that of these bytes. */
bool sum_agrees_gcs(const struct sum *s, const struct reply *head, const void *data, uint64_t size,
                    char *why, size_t room);
bool sum_agrees_s3(const struct sum *s, const struct reply *head, const void *data, uint64_t size,
                   char *why, size_t room);

#endif
