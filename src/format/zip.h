/* The directory of a zip archive, from the last bytes of the object. Private to the format room.
 *
 * Strict: one disk, nothing encrypted, every member before the directory, nothing behind the end record. Zip64 is read
 * (PKWARE APPNOTE 6.3.10 §4.3.12–4.3.16, §4.5.3). */
#ifndef FORMAT_ZIP_H
#define FORMAT_ZIP_H
#include "codec/npz.h"

#define ZIP_TAIL (64u << 10) /* the directory of a few members, and then some */

struct zip_entry {
    const char *name; /* in the tail, not terminated */
    size_t name_size;
    struct zip_member member;
    uint64_t offset; /* of its local header in the object, and … */
    uint64_t span;   /* … how many bytes may be its own: to the next member or the directory */
};

/* `tail`: the last n bytes, or all n of a smaller object; object_size: 0 if unknown. At most `most` entries, in the order
 * of the directory. HR_EDATA where it is none. */
int zip_directory(const uint8_t *tail, size_t n, uint64_t object_size, const char *where,
                  struct zip_entry *out, size_t most, size_t *count, struct hr_error *e);
const struct zip_entry *zip_find(const struct zip_entry *entries, size_t n, const char *name);

#endif
