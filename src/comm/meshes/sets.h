/** Which ranks of a mesh a call joins: those along some dims through this rank. */
#ifndef TSR_COMM_MESHES_SETS_H
#define TSR_COMM_MESHES_SETS_H

#include "comm/groups/group.h"
#include "mesh/derive.h"

typedef struct tsr_mesh_set {
    tsr_mesh_dims dims;
    int64_t *ranks;   /**< of the mesh's communicator, in row-major order of their coordinates along `dims` */
    tsr_rank_set set; /**< `ranks` once more; empty on a rank outside the mesh */
    int own;          /**< this rank's index in `ranks` */
} tsr_mesh_set;

/** What a rank calls, for a tsr_call_describe. */
typedef struct tsr_mesh_call {
    const char *call; /**< "tsr_mesh_split" */
    const tsr_mesh *mesh;
    const char *dims;
} tsr_mesh_call;

/** A tsr_call_describe whose argument is a tsr_mesh_call. */
void tsr_mesh_call_describe(const void *arg, char *text, size_t capacity);

/** TSR_ERROR_ARGUMENT: `mesh` is NULL or abstract. */
tsr_status tsr_mesh_check_comm(const tsr_mesh *mesh, const char *call);

/** Lists the ranks along `dims` through this rank. tsr_mesh_set_free() frees the lists. Does not
 * communicate. */
tsr_status tsr_mesh_set_find(const tsr_mesh *mesh, const tsr_mesh_dims *dims, tsr_mesh_set *out);

/** Frees the lists of a set, which may be all 0. */
void tsr_mesh_set_free(const tsr_mesh *mesh, tsr_mesh_set *set);

#endif
