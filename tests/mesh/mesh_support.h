/* What the tests of src/mesh share: a communicator that only knows its rank, size and context, and random meshes as plain lists. */
#ifndef TESTS_MESH_SUPPORT_H
#define TESTS_MESH_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <tessera/mesh.h>

/* Stands in for src/comm, of which a mesh reads just this. */
struct tsr_comm {
    int rank, size;
    tsr_context *context;
    const int *node; /* one a rank; NULL: not known */
};

/* A mesh as nothing but a list of ranks, row-major: the oracle. */
typedef struct mesh_model {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t count;
    int64_t ranks[256];
} mesh_model;

/* splitmix64 (Steele, Lea and Flood, 2014): a seed is a whole state, so a failing case is reproduced by its number. */
typedef struct random_state {
    uint64_t at;
} random_state;

uint64_t random_below(random_state *random, uint64_t bound);

/* Up to 4 dims of up to 4 ranks out of `world` >= 256: numbered, numbered from elsewhere, with dims exchanged or reversed, or shuffled. */
mesh_model random_model(random_state *random, int64_t world);

/* The model's mesh in `context`, over `comm` (may be NULL); names "a", "b", .. if `named`. */
tsr_mesh *mesh_of(const mesh_model *model, tsr_context *context, tsr_comm *comm, bool named);

/* The text of a mesh, in one of a few buffers used in turn. */
const char *text_of(const tsr_mesh *mesh);

/* The mesh of this text, abstract. */
tsr_mesh *parsed(const char *text);

/* Fails unless the mesh has exactly the model's ranks at the model's places, and none of 0..world-1 besides. `text` and `seed` say which
 * case it was. */
void assert_mesh_is(const tsr_mesh *mesh, const mesh_model *model, int64_t world, uint64_t seed);

/* Advances a coordinate in row-major order; false after the last. */
bool next_coordinate(const mesh_model *model, int64_t *coordinate);

#endif
