/** Reproducible random meshes and layouts, with every valid split, unit, block, order and op. */
#ifndef TESTS_ORACLE_RANDOM_H
#define TESTS_ORACLE_RANDOM_H

#include "oracle.h"

typedef struct oracle_random {
    uint64_t state;
} oracle_random;

uint64_t oracle_random_next(oracle_random *random);
/** A random number from 0 to bound - 1. */
int64_t oracle_random_below(oracle_random *random, int64_t bound);

#define ORACLE_NUMBERS 512

/** Storage for the sizes and blocks of layouts, which point into it; must not move while they are
 * used. */
typedef struct oracle_numbers {
    int64_t at[ORACLE_NUMBERS];
    size_t count;
} oracle_numbers;

/** A mesh of at most `most` of the ranks below `world`, with up to `ndim` dims, also of size 1, and
 * sometimes permuted ranks. */
oracle_mesh oracle_random_mesh(oracle_random *random, int ndim, int64_t most, int64_t world);

/** Draws the placements of `layout`, whose mesh, shape and dtype are set. */
void oracle_random_placements(oracle_random *random, oracle_layout *layout, oracle_numbers *numbers);

/** Draws the shape of `layout`, of up to `ndim` dims and at most `most` elements. */
void oracle_random_shape(oracle_random *random, int ndim, int64_t most, oracle_layout *layout);

/** Draws the node of each of `world` ranks, with arbitrary node numbers and sizes: each node's
 * ranks contiguous or, in half of the cases, mixed. */
void oracle_random_nodes(oracle_random *random, int64_t world, int64_t *node);

tsr_dtype oracle_random_dtype(oracle_random *random);

#endif
