/* The reader's state, shared by its two halves: reader.c (documents and listings) and want.c (the search for one path).
 * Private to the format room. */
#ifndef FORMAT_ROUND_H
#define FORMAT_ROUND_H
#include "base/buf.h"
#include "format/near.h"
#include "format/nodes.h"

#define MAX_NODES 200000 /* sought in one round */
#define MAX_DEPTH 64

enum phase {
    SEEK_V3,           /* zarr.json */
    SEEK_CONSOLIDATED, /* .zmetadata, at the root only */
    SEEK_ARRAY,        /* .zarray */
    SEEK_GROUP,        /* .zgroup */
    SEEK_ARRAY_ATTRS,  /* .zattrs, with the .zarray in `doc` */
    SEEK_GROUP_ATTRS,
    LIST_CHILDREN, /* of a group, in a walk */
    LIST_ROOT,     /* no document at the root: perhaps its children have some */
    LIST_NAMES,    /* for near matches */
    /* no zarr: scdl.c; their paths are keys of objects */
    SCDL_HEADER,   /* header.sch */
    SCDL_METADATA, /* metadata.json: there is an archive, but not its header */
    SCDL_ROWS,     /* the end of row_ptr.npy, which is all that tells an old archive */
    SCDL_HEAD,     /* the first item of an array */
    SCDL_TAIL,     /* the last one, and with it the size */
    SCDL_ZIP,      /* the directory of chunk.npz */
    SCDL_ZIP_ROWS  /* row_ptr.npy in it */
};
struct scdl_probe;
struct task {
    enum phase phase;
    const char *path;
    const struct json *doc;
    int depth;
    bool walk;  /* go on to the children */
    bool guess; /* only likely: sought by one document, as an array */
    /* SCDL: which bytes, of which of the arrays of a look */
    int64_t offset;
    uint64_t length;
    int part;
    struct scdl_probe *probe;
};

enum stage { WANT_NOTHING, WANT_NODE, WANT_PARENTS, WANT_NAMES, WANT_ROOT_NAMES, WANT_FAILED };
struct want {
    enum stage stage;
    const char *path;
    bool brief;   /* may well be absent: no search for fields, no words of help */
    size_t split; /* WANT_PARENTS: path[0 … split) is the parent being tried */
    bool probed;  /* … and has been sought */
    struct near near;
};

struct reader {
    struct nodes nodes;
    struct task *queue; /* those from `head` on */
    size_t head, n, cap;
    size_t sought;        /* nodes in this round */
    struct buf key;       /* of the need in progress */
    bool ready;           /* the root has been read */
    bool rootless;        /* … and has no document of its own */
    size_t below, looked; /* folders there, and those of them that are looked into */
    bool consolidated;
    bool walking; /* this round is a walk of the whole */
    bool walked;
    bool cannot_list;
    const char **guesses; /* paths that were guessed in this round */
    size_t n_guesses, guesses_cap;
    int root_format;   /* 2 or 3; 0 when rootless */
    struct scdl *scdl; /* an archive of that format, or NULL */
    struct want want;
};

/* The document by which a node is sought first: that of the root's version, so that a plain hierarchy costs no request
 * for documents of the other. */
enum phase reader_first_phase(const struct reader *r);
/* One task more. The error names the bound that was met. */
int reader_push(struct reader *r, enum phase phase, const char *path, int depth, bool walk,
                struct hr_error *e);
/* The same with all of a task. */
int reader_append(struct reader *r, const struct task *t, struct hr_error *e);
/* Nothing is there but what is known: neither sought nor listed. */
bool reader_closed(const struct reader *r);
/* A round that failed or was given up leaves nothing behind but the nodes it found. */
void reader_forget_round(struct reader *r);

/* probe.c: names for the walk of a store that cannot list. The children that a group's attributes name; the companions of
 * an array: its dimensions and what CF attributes name. */
int probe_children(struct reader *r, const struct task *t, struct hr_error *e);
int probe_companions(struct reader *r, const struct array *x, int depth, struct hr_error *e);

/* The stack is empty: what does the wanted path need next? 1: it is found; 0: there are tasks again, or ask again. */
int want_next(struct reader *r, struct hr_error *e);

#endif
