/** How every mesh is made: a description that is checked, then one block of memory. */
#ifndef TSR_MESH_BUILD_H
#define TSR_MESH_BUILD_H

#include "base/references.h"
#include "mesh/grid.h"
#include "mesh/mesh.h"
#include "mesh/node_map.h"

#include <tessera/mesh.h>

typedef struct tsr_mesh_content {
    void *data;
    void (*destroy)(void *data); /* NULL: the slot is not set */
} tsr_mesh_content;

struct tsr_mesh {
    tsr_references references;
    tsr_context *context; /* retained */
    tsr_comm *comm;       /* retained; NULL: abstract */
    bool owns_comm;       /* the communicator is destroyed with the mesh */
    tsr_mesh *owner;      /* the mesh that owns `comm`, retained; NULL: this one, or none */
    tsr_grid grid;
    uint64_t hash;
    tsr_node_map *nodes;             /* one reference; NULL: nodes are not known */
    const char *names[TSR_MAX_DIMS]; /* behind this struct, in its block; all NULL for an unnamed mesh */
    tsr_mesh_content slots[TSR_MESH_SLOTS];
};

/** What a mesh is to be. All pointers are borrowed for the call. */
typedef struct tsr_mesh_description {
    const char *call;     /**< the public call, which begins errors' sentences */
    tsr_context *context; /**< not NULL */
    tsr_comm *comm;
    bool owns_comm;  /**< the mesh is to destroy `comm` */
    tsr_mesh *owner; /**< as a mesh's `owner`; or the mesh itself that owns `comm` */
    tsr_grid grid;   /**< ndim and shape are set; without `ranks` also `first`; without `ranks` and `numbered` also
                        `strides` */
    bool numbered;   /**< without `ranks`: the ranks are first, first + 1, .. */
    const int64_t *ranks;
    bool named;
    const char *names[TSR_MAX_DIMS];
    bool asks_comm;      /**< the node map is made from `comm`, and `nodes` is not read */
    tsr_node_map *nodes; /**< NULL: nodes are not known */
    /** may be NULL; if the error is a rank that is listed twice, receives its second position */
    int64_t *repeated;
} tsr_mesh_description;

/** Describes a mesh over `comm`, or an abstract mesh if `comm` is NULL, from the arguments of a
 * create call. */
tsr_status tsr_mesh_describe(const char *call, tsr_context *context, tsr_comm *comm, int ndim, const int64_t *shape,
                             const char *const *names, const int64_t *ranks, tsr_mesh_description *out);

/** Checks sizes, names and ranks, and makes the mesh. */
tsr_status tsr_mesh_build(tsr_mesh_description *description, tsr_mesh **out);

/** How many ranks a mesh over `comm` (NULL: an abstract mesh) can have; its ranks are below this
 * number. */
int64_t tsr_mesh_limit(const tsr_comm *comm);

/** How many characters at the front of `text` can be the name of a dim; 0: no name stands there. */
size_t tsr_mesh_name_length(const char *text);

#endif
