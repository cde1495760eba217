/** What the folders above need of a layout beyond the public calls. Pure integers; nothing here checks its arguments. */
#ifndef TSR_PLACEMENT_LAYOUT_H
#define TSR_PLACEMENT_LAYOUT_H

#include <stdbool.h>
#include <tessera/layout.h>

#include "base/references.h"
#include "placement/cut.h"

/** The cuts of one tensor dim, outermost first; mesh dims of size 1 are left out. */
typedef struct tsr_dim_cuts {
    int count;
    int mesh_dim[TSR_MAX_DIMS];
} tsr_dim_cuts;

struct tsr_layout {
    tsr_references references;
    tsr_context *context; /**< the mesh's, which keeps it: ranks would pass one count back and forth */
    tsr_mesh *mesh;
    int mesh_ndim, ndim;
    int64_t shape[TSR_MAX_DIMS];
    tsr_dtype dtype;
    size_t element_bytes;
    tsr_placement placements[TSR_MAX_DIMS]; /**< their arrays lie behind this struct */
    tsr_cut cuts[TSR_MAX_DIMS];             /**< by mesh dim, where the placement is Shard */
    tsr_dim_cuts dims[TSR_MAX_DIMS];        /**< by tensor dim */
    uint64_t hash;                          /**< equal layouts have equal ones */
    atomic_uint_least64_t id;               /**< tsr_layout_number(); 0: nobody has asked yet */
};

/** tsr_placements_parse() of one placement per dim of `mesh`: `out` has room for TSR_MAX_DIMS, `numbers` for `capacity` numbers of the
 * lists in the text. TSR_ERROR_ARGUMENT: also another count of placements. */
tsr_status tsr_placements_parse_for(const tsr_mesh *mesh, const char *text, tsr_placement *out, int64_t *numbers, size_t capacity);

/** A layout on the stack, to look another one up with: allocates nothing. */
typedef union tsr_layout_probe {
    tsr_layout layout;
    char room[4096];
} tsr_layout_probe;

/**
 * The tensor of `like` under other placements, on the same mesh; mesh and placements must outlive the probe. Errors as tsr_layout_create(),
 * but that lists of sizes and blocks for which there is no room are not held against the pieces that they cut: then the probe can be
 * compared, printed and copied (which checks them), and has no shapes.
 */
tsr_status tsr_layout_probe_init(tsr_layout_probe *probe, const tsr_layout *like, const tsr_placement *placements);

/** A layout of its own from a probe that was made right; lists for which there was no room are checked now. */
tsr_status tsr_layout_keep(const tsr_layout_probe *probe, tsr_layout **out);

/** A number that no other layout of this context has, also after this one is gone; not 0. Thread-safe. Not for probes. */
uint64_t tsr_layout_number(tsr_layout *layout);

/** The placements of `layout` for `mesh`, an equal one that may have other dims of size 1. Their arrays are those of the layout. */
void tsr_placements_on(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out);

/** The placements of tsr_layout_gradient(), for an equal mesh. */
tsr_status tsr_gradient_placements(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out);

/** True if both are of one global shape and dtype, however they are laid out. */
bool tsr_layout_same_tensor(const tsr_layout *a, const tsr_layout *b);

/** What no shard of the layout exceeds along `dim`; a little more than the largest where blocks interleave. */
int64_t tsr_layout_largest_length(const tsr_layout *layout, int dim);

#endif
