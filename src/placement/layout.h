/** Layout functions for the folders above, beyond the public calls. Unless a comment lists errors,
 * arguments are not checked. */
#ifndef TSR_PLACEMENT_LAYOUT_H
#define TSR_PLACEMENT_LAYOUT_H

#include "base/references.h"
#include "placement/cut.h"

#include <tessera/layout.h>

#include <stdbool.h>

/** The cuts of one tensor dim, outermost first; mesh dims of size 1 are left out. */
typedef struct tsr_dim_cuts {
    int count;
    int mesh_dim[TSR_MAX_DIMS];
} tsr_dim_cuts;

struct tsr_layout {
    tsr_references references;
    tsr_context *context; /**< the mesh's, borrowed: a reference of its own would make all ranks write to one counter */
    tsr_mesh *mesh;
    int mesh_ndim, ndim;
    int64_t shape[TSR_MAX_DIMS];
    tsr_dtype dtype;
    size_t element_bytes;
    tsr_placement placements[TSR_MAX_DIMS]; /**< their lists lie behind this struct */
    tsr_cut cuts[TSR_MAX_DIMS];             /**< by mesh dim; set where the placement is Shard */
    tsr_dim_cuts dims[TSR_MAX_DIMS];        /**< by tensor dim: the cuts of each */
    uint64_t hash;                          /**< equal layouts have equal hashes */
    atomic_uint_least64_t id;               /**< what tsr_layout_number() returns; 0: not given yet */
};

/** tsr_placements_parse() of one placement per dim of `mesh`: `out` has room for TSR_MAX_DIMS
 * placements, `numbers` for `capacity` numbers of sizes and blocks. TSR_ERROR_ARGUMENT also if the
 * text does not have one placement per mesh dim. */
tsr_status tsr_placements_parse_for(const tsr_mesh *mesh, const char *text, tsr_placement *out, int64_t *numbers,
                                    size_t capacity);

/** A layout on the stack, for looking up an equal layout without allocating. */
typedef union tsr_layout_probe {
    tsr_layout layout;
    char room[4096];
} tsr_layout_probe;

/**
 * The tensor of `like` under other placements, on the same mesh; mesh and placements must outlive
 * the probe. Errors as tsr_layout_create(). If the probe has no room for the lists of sizes and
 * blocks, their sums are not checked: the probe can then be compared, printed and kept
 * (tsr_layout_keep(), which checks them), but not asked for shapes.
 */
tsr_status tsr_layout_probe_init(tsr_layout_probe *probe, const tsr_layout *like, const tsr_placement *placements);

/** A new layout from a probe that tsr_layout_probe_init() accepted; the caller owns it. Lists that
 * had no room in the probe are checked now: errors as tsr_layout_create(). */
tsr_status tsr_layout_keep(const tsr_layout_probe *probe, tsr_layout **out);

/** The placements of `layout` for `mesh`, which is equal to the layout's mesh but may have other
 * dims of size 1. Their lists are borrowed from the layout. */
void tsr_placements_on(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out);

/** The placements that tsr_layout_gradient() gives, for `mesh` as in tsr_placements_on().
 * TSR_ERROR_UNSUPPORTED: a Partial that is neither sum nor avg. */
tsr_status tsr_gradient_placements(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out);

/** True if both have the same global shape and dtype; mesh and placements may differ. */
bool tsr_layout_same_tensor(const tsr_layout *a, const tsr_layout *b);

/** True if both place tensors of the same global shape in the same way on equal meshes; dtypes may
 * differ. */
bool tsr_layout_alike(const tsr_layout *a, const tsr_layout *b);

/** Upper bound for the length of any shard along `dim`; exact unless parts interleave. */
int64_t tsr_layout_largest_length(const tsr_layout *layout, int dim);

#endif
