/** Cases of sweeps of moves on devices with streams: random ones, and every pair of placements. */
#ifndef TESTS_ASYNC_RECIPES_H
#define TESTS_ASYNC_RECIPES_H

#include "sweep.h"

/** What the cases of a sweep are drawn from. */
typedef struct recipe {
    int world, devices, mesh_ndim;
    bool two_meshes, lazy;
    int batch; /**< upper bound of the tensors moved together */
    int64_t elements;
    tsr_nodes nodes;
    oracle_mesh mesh;             /**< the mesh of sweeps over one mesh */
    void (*check)(void *machine); /**< fails the running test if the last case left a fault; NULL: no check */
    void *machine;
} recipe;

/** Calls `check`, unless NULL. */
void recipe_check(const recipe *r);

/** A sweep_make whose argument is a recipe: random layouts, ways and modes, without end. */
bool recipe_random(void *r, int64_t number, sweep_case *out);

/** A sweep_make whose argument is a recipe: every pair of lists over {R, S(0), S(1), P} on one
 * mesh, in several shapes, with all dtypes in turn. */
bool recipe_pair(void *r, int64_t number, sweep_case *out);

#endif
