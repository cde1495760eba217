/** A file that is open to be read, and what reading it into a dtensor asks of the layout. */
#ifndef TSR_TENSOR_INPUT_H
#define TSR_TENSOR_INPUT_H

#include "placement/layout.h"

#include <tessera/status.h>

/** One file at a time; zeroed, no file is open. */
typedef struct tsr_input {
    const char *path; /**< of the file that is open, borrowed; NULL: no file is */
    int file;
    int64_t bytes_read; /**< from all files */
} tsr_input;

/** Opens the file at `path`, unless it is the one that is open; closes another one. */
tsr_status tsr_input_open(tsr_input *input, const char *path);

/** Closes the file, if one is open. */
void tsr_input_close(tsr_input *input);

/** Reads `bytes` bytes from byte `at` of the open file on. */
tsr_status tsr_input_read(tsr_input *input, int64_t at, char *to, size_t bytes);

/** Opens the file at `path` and checks that it has `bytes` bytes from byte `offset` on. */
tsr_status tsr_input_check(tsr_input *input, const char *path, int64_t offset, int64_t bytes);

/** False if the rank at `coordinate` is to hold the identity of `*op` and reads nothing: on a
 * Partial(sum) or Partial(prod) mesh dim, only coordinate 0 holds the value. */
bool tsr_input_holds_value(const tsr_layout *layout, const int64_t *coordinate, tsr_reduce_op *op);

#endif
