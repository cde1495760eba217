/** Draws what a proof tries: shapes and values that are equal on all ranks. */
#ifndef TESTS_OPS_PROOF_DRAW_H
#define TESTS_OPS_PROOF_DRAW_H

#include <tessera/tessera.h>

#include <stdbool.h>
#include <stdint.h>

/** The most elements of a whole tensor. */
#define ELEMENTS 512

/** A generator of numbers, equal on all ranks. */
typedef struct draw {
    uint64_t state;
    uint64_t salt; /**< of values: another one draws other values of the same shapes */
} draw;

/** A whole tensor. */
typedef struct whole {
    tsr_dtype dtype; /**< TSR_DTYPE_NONE: an optional operand that is left out */
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t count; /**< set by draw_values() and its relatives */
    double values[ELEMENTS];
} whole;

uint64_t draw_next(draw *d);

/** A number from 0 to bound - 1. */
int draw_below(draw *d, int bound);

/** Sets a shape. */
void set_shape(whole *out, int ndim, const int64_t *shape);

/** Draws a shape of at most 3 dims of sizes 1 to 7, seldom 0. */
void draw_full(draw *d, whole *full);

/** Draws an operand's shape that repeats to `full`, and is smaller in some dims unless `same`. */
void draw_repeated(draw *d, const whole *full, bool same, whole *out);

/** Small integers from -4 to 4; of a bool 0 and 1. */
void draw_values(draw *d, whole *w);

/** Powers of two from 1/2 to 4, by which sums and quotients stay exact. */
void draw_positive(draw *d, whole *w);

/** Integers from 0 to bound - 1, such as ids. */
void draw_ids(draw *d, whole *w, int64_t bound);

#endif
