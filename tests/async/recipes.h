/** Cases of sweeps of moves on devices with streams: random ones, and every pair of placements. */
#ifndef TESTS_ASYNC_RECIPES_H
#define TESTS_ASYNC_RECIPES_H

#include "sweep.h"

/** What a sweep draws from. */
typedef struct recipe {
    int world, devices, mesh_ndim;
    bool two_meshes, lazy;
    int batch; /**< up to so many tensors together */
    int64_t elements;
    tsr_nodes nodes;
    oracle_mesh mesh;             /**< for sweeps of one */
    void (*check)(void *machine); /**< fails the running test if the last case left a fault; NULL: nobody looks */
    void *machine;
} recipe;

/** Calls `check`. */
void recipe_check(const recipe *r);

/** As sweep_make, with a recipe as the argument: random layouts, ways and modes, without end. */
bool recipe_random(void *r, int64_t number, sweep_case *out);

/** Likewise: every pair of lists over {R, S(0), S(1), P} on one mesh, in several shapes, with all dtypes in turn. */
bool recipe_pair(void *r, int64_t number, sweep_case *out);

#endif
