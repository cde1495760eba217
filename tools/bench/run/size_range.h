/** Sizes from the first to the last, each a factor of the one before, as nccl-tests' -b, -e and -f; and shapes of about such sizes. */
#ifndef TESSERA_TOOLS_BENCH_RUN_SIZE_RANGE_H
#define TESSERA_TOOLS_BENCH_RUN_SIZE_RANGE_H

#include "cli/parse.h"

typedef struct size_range {
    int64_t begin, end; /**< bytes; begin is 0 where no sizes were asked for */
    double factor;
} size_range;

/** --begin, --end and --factor. Returns the tool's exit status. */
int size_range_read(const tool_arguments *given, size_range *out);

/** The size after `size`, or 0 past the last. */
int64_t size_range_next(const size_range *r, int64_t size);

/** How many there are. */
int64_t size_range_count(const size_range *r);

/**
 * The shape of a tensor whose largest shard, before or after a move, is of `bytes`, or less by as little as even cuts allow: a matrix that
 * is about square, with more dims where the placements cut them. Where both sides cut, the dims are as long as their parts are many, so
 * that every rank holds something; then the largest shard is of more bytes than a few that are asked for, and several sizes have one shape.
 * Returns the tool's exit status.
 */
int choose_shape(const tsr_mesh *mesh, const char *from, const char *to, tsr_dtype dtype, int64_t bytes, tensor_shape *out);

#endif
