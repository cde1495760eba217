/** Products of tensors whose dims are factors of an equation, as gemms over their own memory where
 * strides allow that. */
#ifndef TSR_OPS_KERNELS_PRODUCTS_CONTRACT_H
#define TSR_OPS_KERNELS_PRODUCTS_CONTRACT_H

#include "ops/kernels/products/equation.h"
#include "ops/matmul.h"

/** A local tensor by factors: the size and the stride in elements of each factor that it has, else
 * 1 and 0. */
typedef struct tsr_factored {
    void *data;
    tsr_dtype dtype;
    unsigned factors; /**< those that it has, by bits */
    int64_t size[TSR_EQUATION_FACTORS], stride[TSR_EQUATION_FACTORS];
} tsr_factored;

/** Memory that is handed out front to back. A site that measures only counts: `base` is NULL. */
typedef struct tsr_arena {
    char *base;
    size_t used;
} tsr_arena;

/** The next `bytes`, aligned to 64; NULL from an arena that counts. */
void *tsr_arena_take(tsr_arena *arena, size_t bytes);

/** A tensor of `dtype` and these factors, which are ordered by `like`'s strides, in new memory;
 * sizes are `like`'s. */
tsr_factored tsr_factored_create(tsr_arena *arena, const tsr_factored *like, unsigned factors, tsr_dtype dtype);

/** A local tensor as the term of an equation says. */
tsr_factored tsr_factored_of(const tsr_tensor *tensor, const tsr_equation_term *term);

/**
 * c = a b, summed over the factors that c lacks; or measures that, as tsr_matrix_multiply(). A
 * factor of c alone repeats the product along it. Operands whose summed factors cannot be one dim
 * of a matrix are packed in the arena, so that each element of c is one sum, rounded once. c does
 * not overlap a or b.
 */
tsr_status tsr_contract(const tsr_matmul_site *site, tsr_arena *arena, const tsr_factored *a, const tsr_factored *b,
                        const tsr_factored *c);

/** Copies a tensor to another of the same dtype and factors. */
tsr_status tsr_factored_copy(const tsr_matmul_site *site, const tsr_factored *from, const tsr_factored *to);

#endif
