/* Support of the tests of src/mesh: a communicator with only a rank, a size and a context, and
 * random meshes as plain lists. */
#ifndef TESTS_MESH_SUPPORT_H
#define TESTS_MESH_SUPPORT_H

#include <tessera/mesh.h>

#include <stdbool.h>
#include <stdint.h>

/* Stands in for src/comm; a mesh reads only these members. */
struct tsr_comm {
    int rank, size;
    tsr_context *context;
    const int *node; /* one for each rank; NULL: unknown */
    int destroyed;   /* how often tsr_comm_destroy() was called */
};

/* The oracle of a mesh: a plain list of ranks in row-major order. */
typedef struct mesh_model {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t count;
    int64_t ranks[256];
} mesh_model;

/* splitmix64 (Steele, Lea and Flood, 2014); its state is the seed, so the number of a failing case
 * reproduces it. */
typedef struct random_state {
    uint64_t at;
} random_state;

uint64_t random_below(random_state *random, uint64_t bound);

/* A random mesh of up to 4 dims of up to 4 ranks, out of `world` >= 256: ranks count from 0 or
 * elsewhere, with dims exchanged or reversed, or are shuffled. */
mesh_model random_model(random_state *random, int64_t world);

/* The model's mesh in `context`, over `comm` (may be NULL); names "a", "b", .. if `named`. */
tsr_mesh *mesh_of(const mesh_model *model, tsr_context *context, tsr_comm *comm, bool named);

/* The text of a mesh, in one of a few static buffers used in turn. */
const char *text_of(const tsr_mesh *mesh);

/* The abstract mesh of a text. */
tsr_mesh *parsed(const char *text);

/* Fails the test, naming the seed, unless the mesh has the model's ranks at the model's
 * coordinates, and no other rank below `world`. */
void assert_mesh_is(const tsr_mesh *mesh, const mesh_model *model, int64_t world, uint64_t seed);

/* Advances a coordinate in row-major order; false after the last. */
bool next_coordinate(const mesh_model *model, int64_t *coordinate);

#endif
