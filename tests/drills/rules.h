/**
 * A second oracle: layouts and moves by the rules of docs/layouts.md and docs/redistribution.md,
 * one element at a time.
 *
 * It is independent of the library and of the model in oracle/: it computes the part of each
 * element of a piece (rule_part()), while the engine computes with intervals and oracle/ with what
 * one part has. Of the library it uses plain types, no function.
 */
#ifndef TESTS_RULES_H
#define TESTS_RULES_H

#include <tessera/placement.h>

#include <stdbool.h>

enum { RULE_DIMS = 4, RULE_RANKS = 16, RULE_LENGTH = 80, RULE_BYTES = 16 };

/** A mesh; `ranks` has the communicator's rank at each row-major position. */
typedef struct rule_mesh {
    int ndim;
    int64_t shape[RULE_DIMS];
    int64_t ranks[RULE_RANKS];
} rule_mesh;

typedef struct rule_layout {
    rule_mesh mesh;
    tsr_placement placements[RULE_DIMS];
    /** storage for sizes and blocks, to which rule_layout_bind() points the placements */
    int64_t numbers[RULE_DIMS][RULE_RANKS];
    int ndim;
    int64_t shape[RULE_DIMS];
    tsr_dtype dtype;
} rule_layout;

int64_t rule_mesh_count(const rule_mesh *mesh);
/** The coordinate of `rank`; false if it is outside the mesh. */
bool rule_mesh_find(const rule_mesh *mesh, int64_t rank, int64_t *coordinate);
/** The coordinate of a row-major position. */
void rule_mesh_coordinate(const rule_mesh *mesh, int64_t position, int64_t *coordinate);

/** Makes the placements of a copied layout point into the copy. */
void rule_layout_bind(rule_layout *layout);

/** The part, of `parts`, of element `at` of a piece of `length` elements. */
int64_t rule_part(const tsr_placement *cut, int64_t parts, int64_t length, int64_t at);

/** Writes the mesh dims that cut tensor dim `dim`, in the order of the cuts; returns their
 * number. */
int rule_cuts(const rule_layout *layout, int dim, int *mesh_dims);

/** Writes the global indices along `dim` that a coordinate has after the first `cuts` cuts of the
 * dim; returns their number. */
int64_t rule_owned(const rule_layout *layout, const int64_t *coordinate, int dim, int cuts, int64_t *out);

/** Two layouts of one tensor, without mesh dims of size 1, and how the first is moved to the
 * second. */
typedef struct rule_move {
    rule_layout src, dst;
    bool same_mesh, shortcut;
    bool kept[RULE_DIMS]; /**< mesh dims whose Partial stays */
} rule_move;

void rule_move_make(const rule_layout *src, const rule_layout *dst, rule_move *out);

/** True if source and destination may be the same memory. */
bool rule_in_place(const rule_move *move);

/** How elements are drawn. */
typedef enum rule_drawing { RULE_ANY_BITS, RULE_SMALL_NUMBERS } rule_drawing;

typedef struct rule_values {
    uint64_t seed;
    rule_drawing drawing;
} rule_values;

/** Write what `rank` of the source mesh holds of the element with row-major index `global`, and
 * what `rank` of the destination mesh must hold. The rank is in the mesh and owns the element. */
void rule_source_value(const rule_move *move, rule_values values, int64_t rank, int64_t global, unsigned char *out);
void rule_expected_value(const rule_move *move, rule_values values, int64_t rank, int64_t global, unsigned char *out);

/* Values (rule_values.c). */
size_t rule_bytes(tsr_dtype dtype);
bool rule_has_op(tsr_dtype dtype, tsr_reduce_op op);
void rule_element(tsr_dtype dtype, rule_values values, int64_t global, int64_t term, unsigned char *out);
/** Writes the identity of the op: -0.0 (0 in integers) for sum, 1 for prod. */
void rule_fill(tsr_dtype dtype, tsr_reduce_op op, unsigned char *out);
/** Reduces `count` >= 2 contiguous terms; `divisor` is 1 unless the op is avg. */
void rule_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const unsigned char *terms, int64_t count,
                 unsigned char *out);

#endif
