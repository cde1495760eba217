/** What the op experts and its gradient share: tokens of one expert at a time, and products with
 * its matrices. */
#ifndef TSR_OPS_KERNELS_MIXTURE_EXPERT_PASS_H
#define TSR_OPS_KERNELS_MIXTURE_EXPERT_PASS_H

#include "ops/kernels/mixture/slots.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/products/contract.h"

/** A call. Memory comes from the arena; with a site that measures there is none, and no data are
 * read. */
typedef struct tsr_expert_pass {
    const tsr_kernel_call *call;
    int first; /**< the operand x; ids, gate_up and down are behind it */
    const tsr_tensor *x, *gate_up, *down;
    const tsr_pointwise_kernels *kernels;
    tsr_dtype computed; /**< the dtype of values between products */
    int64_t rows;       /**< the most tokens that are computed at a time */
    void *sorting;      /**< the memory of slots */
    tsr_slots slots;
    tsr_matrix tokens; /**< of one expert: rows of x */
    tsr_matrix values; /**< theirs: gates, then ups */
    tsr_arena arena;
    tsr_matmul_needs needs;
    tsr_matmul_site site;
    tsr_choice choice;
} tsr_expert_pass;

/** Takes the memory of a caller's own from the arena, as `own` keeps it, and measures its products
 * if the site measures. */
typedef tsr_status tsr_expert_plan(tsr_expert_pass *p, void *own);

/** The workspace of a pass; 0: the kernel fails, and says why. */
int64_t tsr_expert_pass_bytes(const tsr_kernel_call *call, int first, tsr_expert_plan *plan, void *own);

/** Plans a pass in the call's workspace, chooses by what products are computed, and sorts the
 * slots. tsr_expert_pass_end() goes with it, also after a failure. */
tsr_status tsr_expert_pass_begin(const tsr_kernel_call *call, int first, tsr_expert_plan *plan, void *own,
                                 tsr_expert_pass *p);
void tsr_expert_pass_end(tsr_expert_pass *p);

/** A matrix without gaps from the arena. */
tsr_matrix tsr_expert_take(tsr_expert_pass *p, int64_t rows, int64_t columns, tsr_dtype dtype);

/** `count` rows of a matrix from `first` on. */
tsr_matrix tsr_expert_rows(tsr_matrix m, int64_t first, int64_t count);

/** The first half of the columns of a matrix, or the second: gates, or ups. */
tsr_matrix tsr_expert_half(tsr_matrix values, int half);

/** Matrix `index` of a tensor of three dims. */
tsr_matrix tsr_expert_matrix(const tsr_tensor *tensor, int64_t index);

/** What a tensor (t, s, h) has of a slot, as one row. */
tsr_matrix tsr_expert_slot(const tsr_tensor *tensor, int64_t slot);

/** Copies one row to another of the same dtype. */
tsr_status tsr_expert_copy(const tsr_expert_pass *p, tsr_matrix from, tsr_matrix to);

/** Makes tokens and values of `count` slots of an expert, from place `begin` of the order on. */
tsr_status tsr_expert_values(tsr_expert_pass *p, int64_t expert, int64_t begin, int64_t count);

/** hidden = activation(gates) * ups, for `count` rows of the values. `hidden` may be the gates. */
void tsr_expert_activate(const tsr_expert_pass *p, tsr_matrix hidden, int64_t count);

/** The loop of the activation or, with `slope`, the one that multiplies its operand 0 by the
 * derivative at operand 1; and the loop's parameter. */
tsr_pointwise_loop *tsr_expert_loop(const tsr_expert_pass *p, bool slope, double *parameter);

/** c = a b, or c += a b. Where the site measures: the most that this needs, and products with fewer
 * rows or terms. */
tsr_status tsr_expert_multiply(tsr_expert_pass *p, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate);

#endif
