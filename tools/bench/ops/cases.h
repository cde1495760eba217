/** The ops that `bench ops` measures, with their operands. */
#ifndef TESSERA_TOOLS_BENCH_OPS_CASES_H
#define TESSERA_TOOLS_BENCH_OPS_CASES_H

#include <tessera/ops.h>

#include <stdbool.h>
#include <stdint.h>

/** The most operands of a case. */
enum { BENCH_OPERANDS = 3 };

/** The value that every rank gives element `index` of operand `operand`: small, and of few bits. */
double ops_bench_value(int operand, int64_t index);

/** Where a check finds the whole shapes of operands. */
typedef struct ops_bench_shapes {
    int64_t shape[BENCH_OPERANDS][TSR_MAX_DIMS];
} ops_bench_shapes;

/** What element `index` (row-major) of the first result must be, computed in f64 by a plain
 * loop. */
typedef double ops_bench_oracle(const ops_bench_shapes *shapes, int64_t index);

typedef struct ops_bench_operand {
    int ndim;
    int64_t shape[4];
    tsr_dtype dtype;
    int cut;       /**< the dim that the last mesh dim cuts; -1: none */
    int64_t below; /**< of integers: ids are less than this */
} ops_bench_operand;

typedef struct ops_bench_case {
    const char *op;
    const char *name;            /**< as it is printed: "gelu tanh" */
    tsr_attribute attributes[3]; /**< behind the last one no name */
    ops_bench_operand operands[BENCH_OPERANDS];
    int operand_count;
    bool backward;                /**< also time the backward */
    double flops, backward_flops; /**< 0: it is bound by memory */
    ops_bench_oracle *oracle;
    double tolerance; /**< of results, relative to the largest of 1 and their size */
} ops_bench_case;

/** The cases; the last has no op. */
extern const ops_bench_case ops_bench_cases[];

#endif
