/** The ops that `bench ops` measures, with their operands. */
#ifndef TESSERA_TOOLS_BENCH_OPS_CASES_H
#define TESSERA_TOOLS_BENCH_OPS_CASES_H

#include <tessera/ops.h>

#include <stdbool.h>
#include <stdint.h>

/** The most operands of a case. */
enum { BENCH_OPERANDS = 7 };

/** The value that every rank gives element `index` of operand `operand`: small, and of few bits. */
double ops_bench_value(int operand, int64_t index);

/** Element `index` of ids below `below`. */
int64_t ops_bench_id(int64_t index, int64_t below);

/** Where a check finds the whole shapes of operands. */
typedef struct ops_bench_shapes {
    int ndim[BENCH_OPERANDS];
    int64_t shape[BENCH_OPERANDS][TSR_MAX_DIMS];
} ops_bench_shapes;

/** What element `index` (row-major) of the first result must be, computed in f64 by a plain
 * loop. */
typedef double ops_bench_oracle(const ops_bench_shapes *shapes, int64_t index);

/** What element `index` of the gradient of operand `operand` must be, likewise. The gradient of the
 * result has the values of operand BENCH_OPERANDS. */
typedef double ops_bench_gradient(const ops_bench_shapes *shapes, int operand, int64_t index);

/** The shapes that --shape may give a case. */
typedef enum ops_bench_form {
    BENCH_FIXED,    /**< none */
    BENCH_ELEMENTS, /**< of all operands, any */
    BENCH_ROWS,     /**< of the first operand; the others are as long as a row */
    BENCH_HEADS,    /**< of all operands: heads x tokens x dim */
    BENCH_CLASSES   /**< of the first operand: rows x classes; the second has an id for each row */
} ops_bench_form;

typedef struct ops_bench_operand {
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    tsr_dtype dtype;
    int cut;       /**< the dim that the last mesh dim cuts; -1: none */
    int64_t below; /**< of integers: ids are less than this */
    bool is_even;  /**< all elements are `number` */
    double number;
} ops_bench_operand;

typedef struct ops_bench_case {
    const char *op;
    const char *name;            /**< as it is printed: "gelu tanh" */
    tsr_attribute attributes[4]; /**< behind the last one no name */
    ops_bench_operand operands[BENCH_OPERANDS];
    int operand_count;
    ops_bench_form form;
    double products, backward_products; /**< in units of heads x queries x keys x dim operations */
    ops_bench_oracle *oracle;
    ops_bench_gradient *gradient; /**< NULL: the backward is not timed */
    bool updates;                 /**< results take the places of operands 0, 2, 3 and so on */
    int last_rows;                /**< gradients are checked in the last rows of a head; 0: in all */
    double tolerance;             /**< of results, relative to the largest of 1 and their size */
} ops_bench_case;

/** The cases; the last has no op. */
extern const ops_bench_case ops_bench_cases[];

/** True if the case can have a shape of `ndim` sizes. */
bool ops_bench_fits(const ops_bench_case *c, int ndim);

/** Gives the operands of a case that fits the shape. */
void ops_bench_reshape(ops_bench_case *c, int ndim, const int64_t *shape);

/** Floating-point operations of a case's products; 0: it is bound by memory. */
double ops_bench_flops(const ops_bench_case *c, bool backward);

#endif
