/** Reproducible random meshes and layouts: every split, unit, block, order and op that is valid where it stands. */
#ifndef TESTS_ORACLE_RANDOM_H
#define TESTS_ORACLE_RANDOM_H

#include "oracle.h"

typedef struct oracle_random {
    uint64_t state;
} oracle_random;

uint64_t oracle_random_next(oracle_random *random);
/** 0 <= result < bound. */
int64_t oracle_random_below(oracle_random *random, int64_t bound);

#define ORACLE_NUMBERS 512

/** Storage for the sizes and blocks of layouts; must stay where it is while they are used. */
typedef struct oracle_numbers {
    int64_t at[ORACLE_NUMBERS];
    size_t count;
} oracle_numbers;

/** A mesh of at most `most` of the ranks 0..world, in up to `ndim` dims, sizes of 1 included, sometimes permuted. */
oracle_mesh oracle_random_mesh(oracle_random *random, int ndim, int64_t most, int64_t world);

/** Sets placements of `layout`, whose mesh, shape and dtype are given. */
void oracle_random_placements(oracle_random *random, oracle_layout *layout, oracle_numbers *numbers);

/** A shape of up to `ndim` dims with at most `most` elements. */
void oracle_random_shape(oracle_random *random, int ndim, int64_t most, oracle_layout *layout);

/** The node of each of `world` ranks, by any numbers: nodes of all sizes, one after the other or, in half of the cases, mixed. */
void oracle_random_nodes(oracle_random *random, int64_t world, int64_t *node);

tsr_dtype oracle_random_dtype(oracle_random *random);

#endif
