/* What an archive of single cells is, in a line: from its metadata alone, which has been read already. */
#ifndef CLI_ATLAS_H
#define CLI_ATLAS_H
#include <stdbool.h>
#include "json.h"

/* "1,000,000 cells × 20,000 genes, CSR float32, 1.03e9 non-zeros", kept; NULL: it is no atlas. */
const char *atlas_line(const struct value *archive, bool ascii);

#endif
