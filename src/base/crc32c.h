/* CRC-32C (RFC 3720 §12.1, polynomial 0x1EDC6F41, reflected): of zarr's codec and shard indexes, and of what object stores say
 * about their objects. The CPU's own instruction where there is one, about 4.5 GB/s out of memory; else a table, about 1.5 GB/s. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t crc32c_table[8][256];

bool crc32c_needs_table(void); /* this CPU has no such instruction */
void crc32c_make_table(crc32c_table t);
/* t: NULL where none is needed. */
uint32_t crc32c(const uint32_t (*t)[256], const void *data, size_t n);

#endif
