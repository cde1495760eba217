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

/** The effective kind of a mesh dim: one of size 1 counts as Replicate. */
tsr_placement_kind tsr_layout_kind(const tsr_layout *layout, int mesh_dim);

/** The local length of `dim` at a coordinate in range. */
int64_t tsr_layout_length(const tsr_layout *layout, int dim, const int64_t *coordinate);

/** The run of global positions that starts at local position `at` of `dim`: global [begin, begin + length), local from `at`. 0 <= at <
 * length there. */
tsr_run tsr_layout_position(const tsr_layout *layout, int dim, const int64_t *coordinate, int64_t at);

/** The owner of global position `at` of `dim`: writes the coordinate of each mesh dim that cuts `dim`, and returns the run from there on.
 */
tsr_run tsr_layout_owner(const tsr_layout *layout, int dim, int64_t at, int64_t *coordinate);

/** Local shape at a coordinate, or NULL for a rank outside the mesh: one dim of size 0. Returns ndim. */
int tsr_layout_local_shape(const tsr_layout *layout, const int64_t *coordinate, int64_t *shape);

/** "64x64", or "scalar". `text` has room for TSR_SHAPE_TEXT bytes. */
#define TSR_SHAPE_TEXT 176
const char *tsr_shape_print(int ndim, const int64_t *shape, char *text);

/** "f32 64x64 S(0),R on mesh dp=2,tp=2", cut at `capacity`. */
const char *tsr_layout_describe(const tsr_layout *layout, char *text, size_t capacity);

/** True if both cuts of mesh dim `a_dim` and `b_dim` are written alike: kind, dim, modifiers, op. Orders are not compared. */
bool tsr_placement_same(const tsr_placement *a, const tsr_placement *b);

/** The place in the cut order that a Shard has, by default that of its mesh dim. */
int tsr_placement_order(const tsr_placement *placements, int mesh_dim);

/** The Shard's place among the cuts of its tensor dim, or TSR_ORDER_DEFAULT where ascending mesh dims say it already: equal orders, however
 * they are given, are said alike. */
int tsr_placement_said_order(const tsr_placement *placements, int count, int mesh_dim);

/** Mesh dims by cut order for tensor dim `dim`: indices of the Shard(dim) placements, sorted; returns how many. Equal orders stay in mesh
 * order and set `*equal`. */
int tsr_placements_order(const tsr_placement *placements, int count, int dim, int *sorted, bool *equal);

/** What no shard of the layout exceeds along `dim`; a little more than the largest where blocks interleave. */
int64_t tsr_layout_largest_length(const tsr_layout *layout, int dim);

#endif
