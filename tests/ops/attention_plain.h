/** Attention and its gradients by plain loops in f64, and tensors of the values that tests give
 * it. */
#ifndef TESTS_OPS_ATTENTION_PLAIN_H
#define TESTS_OPS_ATTENTION_PLAIN_H

#include "elements.h"

#include <tessera/tessera.h>

enum { Q, K, V, DOUT, OUT, DQ, DK, DV, PLAIN_TENSORS };

/** Masks of a case: none, some bools, and a number for each query and key. */
enum { NO_MASK, BOOL_MASK, ADDED_MASK };

/** Sizes and options of a case, in one batch. */
typedef struct attention_shape {
    int64_t heads, kv_heads, queries, keys, dim, value_dim;
    int causal;
    int64_t window;
    double scale;
    int mask;
} attention_shape;

/** Whole tensors (heads, tokens, dim): q, k, v and dout between -1 and 1, of which the rest is
 * computed. */
typedef struct plain {
    attention_shape s;
    int64_t shapes[PLAIN_TENSORS][3], counts[PLAIN_TENSORS];
    double *values[PLAIN_TENSORS];
} plain;

/** Draws and computes a case; values of operands are rounded to `dtype`, which is f64, f32, f16 or
 * bf16. */
void plain_create(const attention_shape *s, tsr_dtype dtype, plain *out);
void plain_destroy(plain *p);

/** Computes OUT again from Q, K and V. */
void plain_attend(plain *p);

/** Bounds of the error of results, as attention.h gives it, and of gradients: unit roundoff `u` of
 * the computation, keys cut over `ranks`. */
double plain_bound(const plain *p, int tensor, double u, int ranks);

/** An operand as a dtensor; `placements` as tsr_distribute() reads them. */
tsr_status plain_distribute(const plain *p, int tensor, tsr_dtype dtype, const tsr_mesh *mesh, const char *placements,
                            tsr_dtensor **out);

/** The mask of a case, of dtype bool or `dtype`: (queries, keys), the same for all heads; NULL: it
 * has none. */
tsr_status plain_mask(const plain *p, tsr_dtype dtype, const tsr_mesh *mesh, const char *placements, tsr_dtensor **out);

/** Collective: compares a dtensor with values, up to `bound` and the rounding of its dtype. */
tsr_status plain_compare(const plain *p, int tensor, const tsr_dtensor *got, double bound);

/** The options of the case. */
tsr_attention_options plain_options(const plain *p);

#endif
