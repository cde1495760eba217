/** One rank's side of a tensor of a move: layouts, guarded memory, and the contents by the
 * oracle. */
#ifndef TESTS_REDISTRIBUTE_MOVED_H
#define TESTS_REDISTRIBUTE_MOVED_H

#include "buffer.h"
#include "oracle.h"

#include <tessera/layout.h>

typedef struct moved {
    const oracle_layout *from, *to; /**< borrowed, like `move` */
    const oracle_move *move;
    int rank;
    bool in_src, in_dst;
    tsr_layout *src_layout, *dst_layout;
    local_buffer src, dst;
    unsigned char *given, *wanted; /**< the source's elements, and those that the destination must get, contiguous */
} moved;

/** Allocates this rank's tensors, with odd strides if `strided`. The caller has set the fields down
 * to `rank`, and owns the layouts. */
void moved_start(moved *m, uint64_t seed, bool strided);
void moved_finish(moved *m);

/** Sets new values in the source, and computes the expected destination. */
void moved_set(moved *m, uint64_t seed);

/** What is wrong with the destination `dst`, or with the source, written to `text`; NULL if nothing
 * is. */
const char *moved_wrong(const moved *m, const local_buffer *dst, char *text, size_t capacity);
const char *moved_source_wrong(const moved *m, char *text, size_t capacity);

#endif
