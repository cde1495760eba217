/**
 * A brute-force model of layouts and redistribution, written from the documented rules and apart
 * from the engine. Tests compare the engine with it, and so do benchmarks that check their results.
 *
 * It does not nest intervals: indices of a dim pass one cut after the other, each of which counts
 * the positions that reach it. Values are computed one element at a time, in arithmetic of its
 * own. Of the library it uses only the plain types of placement.h and dtype.h, no function. It
 * expects valid layouts.
 */
#ifndef TESSERA_ORACLE_H
#define TESSERA_ORACLE_H

#include <tessera/placement.h>

#include <stdbool.h>

#define ORACLE_MAX_RANKS 64

/** A mesh; `ranks` has the communicator's rank at each row-major position. A mesh of more than
 * ORACLE_MAX_RANKS ranks has rank p at position p, and of functions only those of meshes, cuts and
 * moves take it. */
typedef struct oracle_mesh {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t ranks[ORACLE_MAX_RANKS];
} oracle_mesh;

/** A layout; `sizes` and `blocks` of its placements are borrowed. */
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
/** The row-major position of `rank`; -1 if it is not in the mesh. */
int64_t oracle_mesh_position(const oracle_mesh *mesh, int64_t rank);
/** A mesh of the given shape over ranks first, first + 1, .. */
oracle_mesh oracle_mesh_make(int ndim, const int64_t *shape, int64_t first);

/* Cuts. */

/** Writes to `out`, in order, the elements of `piece` (of `count`) that part `part` of `parts` of a
 * cut keeps; returns their number. */
int64_t oracle_cut(const tsr_placement *placement, int64_t parts, int64_t part, const int64_t *piece, int64_t count,
                   int64_t *out);

/** True if two Shards cut in the same way, but for their orders; a unit or interleave of 0 or 1
 * counts as absent. */
bool oracle_same_cut(const tsr_placement *a, const tsr_placement *b);

/** Writes the mesh dims that cut tensor dim `dim`, in the order of the cuts; returns their
 * number. */
int oracle_cuts_of(const oracle_layout *layout, int dim, int *mesh_dims);

/** Writes to `out` (room for shape[dim]) the global indices along `dim` that a coordinate owns,
 * ascending; returns their number. */
int64_t oracle_owned(const oracle_layout *layout, const int64_t *coordinate, int dim, int64_t *out);

/** Indices from `begin` to before `end`. */
typedef struct oracle_run {
    int64_t begin, end;
} oracle_run;

/** What oracle_owned() lists, for dims too long for a list: consecutive indices are one run. */
typedef struct oracle_runs {
    oracle_run *at; /**< ascending; on the heap */
    size_t count;
    int64_t length; /**< number of indices */
} oracle_runs;

/** False, and nothing to destroy, if there is no memory. */
bool oracle_runs_create(const oracle_layout *layout, const int64_t *coordinate, int dim, oracle_runs *out);
/** Zeroed runs are fine. */
void oracle_runs_destroy(oracle_runs *runs);
/** True if one of the runs has the index. */
bool oracle_runs_have(const oracle_runs *runs, int64_t index);

/** The shard of a rank: its local shape and, for each dim, the global index of each local index. */
typedef struct oracle_shard {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t global_shape[TSR_MAX_DIMS];
    int64_t *index[TSR_MAX_DIMS];
    int64_t count; /**< number of local elements */
} oracle_shard;

/** The shard of `rank`; all dims are 0 for a rank outside the mesh. */
void oracle_shard_create(const oracle_layout *layout, int64_t rank, oracle_shard *out);
void oracle_shard_destroy(oracle_shard *shard);
/** The row-major global index of the element with row-major local index `local`. */
int64_t oracle_shard_global(const oracle_shard *shard, int64_t local);

/** The number of elements of the whole tensor. */
int64_t oracle_count(const oracle_layout *layout);

/** Sets held[g] for every global element g that the rank owns; leaves the others as they are. */
void oracle_mark(const oracle_layout *layout, int64_t rank, bool *held);

/** True if two positions of the mesh differ only in Replicate dims, so that they hold the same
 * elements of the same term. */
bool oracle_are_replicas(const oracle_layout *layout, int64_t p, int64_t q);

/* Values. */

/** Bytes of one element. */
size_t oracle_bytes(tsr_dtype dtype);

/** True if the dtype has the op. */
bool oracle_has_op(tsr_dtype dtype, tsr_reduce_op op);

/** Writes the identity of the op: -0.0 (0 in integers) for sum, 1 for prod. */
void oracle_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value);

/** Writes an integer that the dtype holds exactly; of complex numbers it is the real part. */
void oracle_integer(tsr_dtype dtype, int64_t number, unsigned char *value);

/** A reduction that takes its terms one by one. `divisor` is 1 unless the op is avg; the other
 * fields begin as zero. */
typedef struct oracle_reduction {
    tsr_dtype dtype;
    tsr_reduce_op op;
    int64_t divisor;
    int64_t count;          /**< number of terms so far */
    double real, imaginary; /**< of terms of floating-point and complex dtypes */
    uint64_t integer;       /**< of terms of other dtypes */
} oracle_reduction;

void oracle_reduction_add(oracle_reduction *r, const unsigned char *term);
/** Writes the result of at least one term. */
void oracle_reduction_finish(const oracle_reduction *r, unsigned char *value);

/** Reduces `count` contiguous values, in their order; `divisor` is 1 unless the op is avg. */
void oracle_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const unsigned char *terms, int64_t count,
                   unsigned char *value);

/** Converts a value to another floating-point dtype, rounded once. */
void oracle_convert(tsr_dtype from, const unsigned char *value, tsr_dtype to, unsigned char *out);

/** Writes a reproducible element of a term: arbitrary bits, an ordinary number or a special
 * value. */
void oracle_element(tsr_dtype dtype, uint64_t seed, int64_t global, int64_t term, unsigned char *value);

/* Moves. */

/** How `src` becomes `dst`, worked out once for a pair of layouts. `src` and `dst` are without mesh
 * dims of size 1. */
typedef struct oracle_move {
    oracle_layout src, dst;
    bool same_mesh;
    bool shortcut;            /**< Shard -> Partial(sum) in which every rank just keeps its elements */
    bool kept[TSR_MAX_DIMS];  /**< mesh dims of `src` whose Partial stays in `dst`; only on equal meshes */
    int64_t reduced_terms;    /**< product of the sizes of the mesh dims that are reduced */
    int64_t divisor;          /**< product of the sizes of the avg dims among those reduced */
    tsr_reduce_op reduced_op; /**< the op of the reduction; meaningful if reduced_terms > 1 */
} oracle_move;

void oracle_move_make(const oracle_layout *src, const oracle_layout *dst, oracle_move *out);

/** True if source and destination may be the same memory. */
bool oracle_in_place(const oracle_move *move);

/** Writes the term of element `number` that a coordinate of the source mesh holds. */
typedef void oracle_draw(const oracle_move *move, const void *how, const int64_t *coordinate, int64_t number,
                         unsigned char *value);

/** Writes the value of an element, whose terms draw() writes, after the Partial dims that do not
 * stay are reduced in row-major order; `coordinate` has the coordinates of the other dims. */
void oracle_reduced_value(const oracle_move *move, oracle_draw *draw, const void *how, const int64_t *coordinate,
                          int64_t number, unsigned char *value);

/** Writes the term of a global element that a coordinate of the source mesh holds, drawn from the
 * seed; it is the same on replicas. */
void oracle_source_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global,
                         unsigned char *value);

/** The new Partial(sum) or Partial(prod) of which a coordinate of the destination mesh holds the
 * identity; NULL if it holds the value. */
const tsr_placement *oracle_filled_by(const oracle_move *move, const int64_t *coordinate);

/** Writes what a coordinate of the destination mesh must hold of a global element that it owns. */
void oracle_expected_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global,
                           unsigned char *value);

/** Writes a rank's contiguous destination (`expected`) or source shard; `out` has room for it. */
void oracle_fill(const oracle_move *move, uint64_t seed, bool expected, int64_t rank, unsigned char *out);

/** Computes the least bytes that all ranks together must receive. If no Partial is reduced or made,
 * returns true, and `per_rank`, unless NULL, gets the least bytes of each of `ranks` ranks; else
 * returns false. */
bool oracle_lower_bound(const oracle_move *move, int64_t ranks, int64_t *total, int64_t *per_rank);

/** Computes the bytes that each rank sends, by the rule for senders: the k replicas of a source
 * piece, and its receivers that do not own it, are numbered from 0 in row-major order; receiver t
 * receives from replica t mod k. Between two meshes, receivers that own the piece are numbered too.
 * Returns false if values are reduced, for which the rule says nothing. */
bool oracle_sent(const oracle_move *move, int64_t ranks, int64_t *sent);

/* Text. */

/** Print placements, a mesh and a shape in the syntax of the library's parser; all return
 * `text`. */
const char *oracle_print_placements(const tsr_placement *placements, int count, char *text, size_t capacity);
const char *oracle_print_mesh(const oracle_mesh *mesh, char *text, size_t capacity);
const char *oracle_print_shape(int ndim, const int64_t *shape, char *text, size_t capacity);
const char *oracle_dtype_name(tsr_dtype dtype);

#endif
