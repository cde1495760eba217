/** Rows of numbers, and what a model does to them, with bounds of what rows lack (number.h). Where
 * a function is of a gradient, dy is that of its result. Callers free what is returned. */
#ifndef TESTS_TRAIN_ROWS_H
#define TESTS_TRAIN_ROWS_H

#include "number.h"

#include <stdbool.h>

/** Rows with a bound of each one's error. */
typedef struct rows {
    int64_t count, width;
    double *v, *e;
} rows;

/** A linear layer: w (out, in); b NULL: none. */
typedef struct dense {
    int64_t in, out;
    number *w, *dw, *b, *db;
    double norm; /**< at least the spectral norm of w */
} dense;

/** What a gated layer keeps: h = silu(g) u. */
typedef struct gated {
    dense gate, up, down;
    rows g, u, h;
} gated;

rows rows_make(int64_t count, int64_t width);
void rows_free(rows x);

/** One of the rows, borrowed. */
rows rows_one(rows x, int64_t row);

/** Rows of heads of rows of tokens, and rows of tokens of rows of heads, as copies. */
rows rows_of_heads(rows x, int64_t heads);
rows rows_of_tokens(rows x, int64_t heads);

/** The 2-norm of n elements. */
double rows_size(int64_t n, const double *x);
void rows_add(rows sum, rows term);

/** A linear layer without bias. */
dense dense_with(number *w, number *dw, int64_t out, int64_t in);
rows dense_forward(const dense *d, rows x);

/** Returns the gradient of x, and adds to those of the layer's weights. */
rows dense_backward(const dense *d, rows x, rows dy);

/** Root mean square norms. */
rows rows_norm(const number *w, double epsilon, rows x);
rows rows_norm_backward(const number *w, number *dw, double epsilon, rows x, rows dy);

/** Turns rows of heads to the positions of their tokens, or back, in place. */
void rows_rope(double theta, int64_t length, int64_t heads, bool back, rows x);

/** Softmax in place; and, in place of the gradient of its result, that of what it was made of. */
void number_softmax(int64_t n, number *x);
void number_softmax_backward(int64_t n, const number *y, number *dy);

/** The product of row i of a and row j of b. */
number rows_inner(rows a, int64_t i, rows b, int64_t j);

/** Adds f times row j of x to row i of a sum of at most `terms` such. */
void rows_add_scaled(rows sum, int64_t i, number f, rows x, int64_t j, int64_t terms);

/** down (silu(gate x) * (up x)), of which l->g, u and h are kept until gated_free(). */
rows gated_forward(gated *l, rows x);
rows gated_backward(const gated *l, rows x, rows dy);
void gated_free(const gated *l);
void number_add_to(number *sum, number term);

#endif
