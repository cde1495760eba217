/**
 * A brute-force model of layouts and redistribution, written from the documented rules and apart from the engine.
 *
 * Nothing here knows intervals: a rank's part of a dim is an explicit array of global indices, to which the cuts are applied one after
 * the other. Values are computed one element at a time, in arithmetic of its own. Of the library it uses only the plain types of
 * placement.h and dtype.h, no function. It is slow on purpose, and trusts its callers: layouts given to it are valid.
 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <stdbool.h>
#include <tessera/placement.h>

#define ORACLE_MAX_RANKS 64

/** `ranks`: the communicator's rank at each row-major coordinate. */
typedef struct oracle_mesh {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t ranks[ORACLE_MAX_RANKS];
} oracle_mesh;

/** `sizes` and `blocks` of the placements are borrowed. */
typedef struct oracle_layout {
    oracle_mesh mesh;
    tsr_placement placements[TSR_MAX_DIMS];
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    tsr_dtype dtype;
} oracle_layout;

/* Meshes. */
int64_t oracle_mesh_count(const oracle_mesh *mesh);
void oracle_mesh_coordinate(const oracle_mesh *mesh, int64_t position, int64_t *coordinate);
/** The row-major position of `rank`, or -1. */
int64_t oracle_mesh_position(const oracle_mesh *mesh, int64_t rank);
/** A mesh of those sizes over ranks first, first + 1, .. */
oracle_mesh oracle_mesh_make(int ndim, const int64_t *shape, int64_t first);

/* Cuts. */

/** One part of a cut: elements [0, count) of `piece` that part `part` of `parts` keeps, written to `out` in order; how many. */
int64_t oracle_cut(const tsr_placement *placement, int64_t parts, int64_t part, const int64_t *piece, int64_t count, int64_t *out);

/** Shards that cut alike, whatever their orders; 0 and 1 both spell "none". */
bool oracle_same_cut(const tsr_placement *a, const tsr_placement *b);

/** Mesh dims that cut tensor dim `dim`, in the order in which they cut; how many. */
int oracle_cuts_of(const oracle_layout *layout, int dim, int *mesh_dims);

/** The global indices along `dim` that a coordinate owns, ascending, in `out` (room for shape[dim]); how many. */
int64_t oracle_owned(const oracle_layout *layout, const int64_t *coordinate, int dim, int64_t *out);

/** What one rank owns: local shape, and per dim the global index of each local index. */
typedef struct oracle_shard {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t global_shape[TSR_MAX_DIMS];
    int64_t *index[TSR_MAX_DIMS];
    int64_t count; /**< local elements */
} oracle_shard;

/** `rank` may be outside the mesh: then every dim is 0. */
void oracle_shard_create(const oracle_layout *layout, int64_t rank, oracle_shard *out);
void oracle_shard_destroy(oracle_shard *shard);
/** Row-major global number of the local element with row-major number `local`. */
int64_t oracle_shard_global(const oracle_shard *shard, int64_t local);

int64_t oracle_count(const oracle_layout *layout);

/** Sets held[g] for every global element g that the rank owns, and leaves the others as they are. */
void oracle_mark(const oracle_layout *layout, int64_t rank, bool *held);

/** Whether two positions of the mesh differ only where the layout replicates: they have the same elements of the same term. */
bool oracle_are_replicas(const oracle_layout *layout, int64_t p, int64_t q);

/* Values. */

/** Bytes of one element. */
size_t oracle_bytes(tsr_dtype dtype);

/** Whether the dtype has the op. */
bool oracle_has_op(tsr_dtype dtype, tsr_reduce_op op);

/** The value that changes nothing: -0.0 or 0 for sum, 1 for prod. */
void oracle_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value);

/** Reduces `count` values that lie one after the other, in that order; `divisor` is 1 but for avg. */
void oracle_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const unsigned char *terms, int64_t count, unsigned char *value);

/** `value` as another floating type, rounded once. */
void oracle_convert(tsr_dtype from, const unsigned char *value, tsr_dtype to, unsigned char *out);

/** A reproducible element: any bits, ordinary numbers and special values in turn. */
void oracle_element(tsr_dtype dtype, uint64_t seed, int64_t global, int64_t term, unsigned char *value);

/* Moves. */

/** How `src` becomes `dst`: worked out once for a pair of layouts. Mesh dims of size 1 are gone from `src` and `dst`. */
typedef struct oracle_move {
    oracle_layout src, dst;
    bool same_mesh;
    bool shortcut;            /**< Shard -> Partial(sum) by keeping own elements */
    bool kept[TSR_MAX_DIMS];  /**< dims of src (and of dst: then the meshes are equal) whose Partial stays */
    int64_t reduced_terms;    /**< m: the product of the sizes of the dims that are reduced */
    int64_t divisor;          /**< the product of the sizes of the avg dims among them */
    tsr_reduce_op reduced_op; /**< meaningful where reduced_terms > 1 */
} oracle_move;

void oracle_move_make(const oracle_layout *src, const oracle_layout *dst, oracle_move *out);

/** Whether source and destination may be one pointer. */
bool oracle_in_place(const oracle_move *move);

/** The term that a coordinate of the source mesh holds of a global element: the same for replicas. */
void oracle_source_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global, unsigned char *value);

/** The new Partial(sum) or Partial(prod) for which a coordinate of the destination mesh holds the identity, or NULL: it holds the value. */
const tsr_placement *oracle_filled_by(const oracle_move *move, const int64_t *coordinate);

/** What a coordinate of the destination mesh must hold of a global element that it owns. */
void oracle_expected_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global, unsigned char *value);

/** All of a rank's source (`expected` 0) or destination bytes, contiguous; `out` has room for its shard. */
void oracle_fill(const oracle_move *move, uint64_t seed, bool expected, int64_t rank, unsigned char *out);

/** The least bytes that all ranks together must receive. `per_rank`, where not NULL, gets each of `ranks` ranks' own least, and true is
 * returned, where no Partial is reduced or made; else false. */
bool oracle_lower_bound(const oracle_move *move, int64_t ranks, int64_t *total, int64_t *per_rank);

/** The bytes that each rank sends, by the rule for senders: the k replicas of a source piece are numbered, its receivers that do not own
 * it counted from t = 0, both in row-major order; receiver t takes replica t mod k. Between two meshes owners are counted too. False where
 * values are reduced: then the rule leaves it open. */
bool oracle_sent(const oracle_move *move, int64_t ranks, int64_t *sent);

/* Text. */

/** The placements and the mesh as the tool and the parser write them; both return `text`. */
const char *oracle_print_placements(const tsr_placement *placements, int count, char *text, size_t capacity);
const char *oracle_print_mesh(const oracle_mesh *mesh, char *text, size_t capacity);
const char *oracle_print_shape(int ndim, const int64_t *shape, char *text, size_t capacity);
const char *oracle_dtype_name(tsr_dtype dtype);

#endif
