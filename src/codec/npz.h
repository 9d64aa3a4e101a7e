/* Arrays as numpy writes them: an NPY header and the items; in an NPZ file, each is a member of a zip archive.
 *
 * A member can be read alone: the bytes from its local header on are one stored chunk, which codec_chain_npz decodes. The
 * header's promise is held against what is expected, so a member of another type or length is HR_EDATA, not numbers. */
#ifndef CODEC_NPZ_H
#define CODEC_NPZ_H
#include "codec/chain.h"

/* What stands before the items (numpy.lib.format, versions 1 to 3). */
#define NPY_DIMS 32
struct npy_head {
    size_t size; /* bytes before the first item */
    char descr[16];
    bool fortran;
    int ndim;
    uint64_t shape[NPY_DIMS];
};
int npy_head_parse(const uint8_t *data, size_t n, struct npy_head *out, struct hr_error *e);

/* A member, as the zip's directory has it. */
struct zip_member {
    uint16_t method; /* 0: stored, 8: deflate */
    uint32_t crc;
    uint64_t stored, size;
};
#define ZIP_LOCAL 30 /* bytes of a local header without its name and extras */
/* What any array's NPY header may take: more is no header. */
#define NPY_HEAD_MOST ((64u << 10) + 12)

/* `count` items of a little-endian type in a member whose stored chunk has at most `span` bytes. */
int codec_chain_npz(struct arena *a, const struct zip_member *m, const struct dtype *type,
                    uint64_t count, uint64_t span, const char *where, struct codec_chain **out,
                    struct hr_error *e);
/* A whole member → context memory, valid until its next use: the items behind the header. */
int npz_member_read(struct codec_context *x, const struct zip_member *m, const void *src, size_t n,
                    struct npy_head *head, const uint8_t **items, uint64_t *bytes,
                    struct hr_error *e);

#endif
