/** Ranges of sizes, as by nccl-tests' -b, -e and -f, each size a factor times the one before; and
 * shapes of about a size. */
#ifndef TESSERA_TOOLS_BENCH_RUN_SIZE_RANGE_H
#define TESSERA_TOOLS_BENCH_RUN_SIZE_RANGE_H

#include "cli/parse.h"

typedef struct size_range {
    int64_t begin, end; /**< bytes; begin is 0 if no sizes are given */
    double factor;
} size_range;

/** Parses a number of bytes: "64", or "4K", "16M", "1G", "1T" in binary multiples. Returns the
 * tool's exit status. */
int size_read(const char *option, const char *text, int64_t *out);

/** Reads --begin, --end and --factor. Returns the tool's exit status. */
int size_range_read(const tool_arguments *given, size_range *out);

/** The size after `size`, or 0 past the last. */
int64_t size_range_next(const size_range *r, int64_t size);

/** The number of sizes in the range; 0 if begin is 0. */
int64_t size_range_count(const size_range *r);

/**
 * Chooses the shape of a tensor whose largest shard, before or after a move, has `bytes`, or
 * slightly less for even cuts: a matrix that is about square, with more dims if the placements cut
 * them. If both sides cut, each dim is at least as long as its number of parts, so that every rank
 * holds an element; small `bytes` then give a larger shard, and several sizes one shape. Returns
 * the tool's exit status.
 */
int choose_shape(const tsr_mesh *mesh, const char *from, const char *to, tsr_dtype dtype, int64_t bytes,
                 tensor_shape *out);

#endif
