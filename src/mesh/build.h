/** How every mesh is made: a description that is checked, then one block of memory. */
#ifndef TSR_MESH_BUILD_H
#define TSR_MESH_BUILD_H

#include "base/references.h"
#include "mesh/grid.h"
#include "mesh/node_map.h"
#include <tessera/mesh.h>

struct tsr_mesh {
    tsr_references references;
    tsr_context *context; /* retained */
    tsr_comm *comm;       /* retained; NULL: abstract */
    tsr_grid grid;
    uint64_t hash;
    tsr_node_map *nodes;             /* a reference of its own; NULL: not known */
    const char *names[TSR_MAX_DIMS]; /* into this block; all NULL for an unnamed mesh */
    void *slot;
    void (*slot_destroy)(void *data);
};

/** Everything is borrowed for the call. */
typedef struct tsr_mesh_description {
    const char *call;     /**< who asks, for errors */
    tsr_context *context; /**< not NULL */
    tsr_comm *comm;
    tsr_grid grid; /**< ndim and shape; and, if `ranks` is NULL, first and, unless `numbered`, strides */
    bool numbered; /**< ranks first, first + 1, .. */
    const int64_t *ranks;
    bool named;
    const char *names[TSR_MAX_DIMS];
    bool asks_comm; /**< for its nodes, in place of: */
    tsr_node_map *nodes;
    int64_t *repeated; /**< may be NULL; where the sentence is about a rank that stands twice, its second position */
} tsr_mesh_description;

/** Describes a mesh over `comm`, or an abstract one where that is NULL, from what the create calls are given. */
tsr_status tsr_mesh_describe(const char *call, tsr_context *context, tsr_comm *comm, int ndim, const int64_t *shape,
                             const char *const *names, const int64_t *ranks, tsr_mesh_description *out);

/** Checks sizes, names and ranks, and makes the mesh. */
tsr_status tsr_mesh_build(tsr_mesh_description *description, tsr_mesh **out);

/** How many ranks a mesh over `comm`, or an abstract one, can have: they are numbered from 0 to below that. */
int64_t tsr_mesh_limit(const tsr_comm *comm);

/** How many characters at the front of `text` can be the name of a dim; 0 if none. */
size_t tsr_mesh_name_length(const char *text);

#endif
