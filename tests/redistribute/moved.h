/** One tensor of a move as one rank has it: layouts, watched memory, and what the oracle says must be in it. */
#ifndef TESTS_REDISTRIBUTE_MOVED_H
#define TESTS_REDISTRIBUTE_MOVED_H

#include "buffer.h"
#include "oracle.h"
#include <tessera/layout.h>

typedef struct moved {
    const oracle_layout *from, *to; /**< the caller's, like `move` */
    const oracle_move *move;
    int rank;
    bool in_src, in_dst;
    tsr_layout *src_layout, *dst_layout;
    local_buffer src, dst;
    unsigned char *given, *wanted; /**< source and destination elements, contiguous */
} moved;

/** Memory for this rank's tensors, with odd strides if `strided`. The fields down to `rank` are set; layouts are made and freed by the
 * caller. */
void moved_start(moved *m, uint64_t seed, bool strided);
void moved_finish(moved *m);

/** New values in the source, and what the destination must become. */
void moved_set(moved *m, uint64_t seed);

/** NULL, or in `text` what is wrong with the destination, which is `dst`, or with the source. */
const char *moved_wrong(const moved *m, const local_buffer *dst, char *text, size_t capacity);
const char *moved_source_wrong(const moved *m, char *text, size_t capacity);

#endif
