/**
 * Computes what the MLP of bench linear must give from global indices alone: y1 = x w1^T, y2 = y1
 * w2^T, dy1 = dy w2, dx = dy1 w1, dw2 = dy^T y1 and dw1 = dy1^T x.
 *
 * Every element of the inputs is -1, 0 or 1, and so many elements of the weights and of dy are 0
 * that every partial sum, in any order, is an integer which the dtype holds exactly: results are
 * right bit for bit, or wrong. An element of a weight is not 0 in one of `weight_step` places along
 * each row and column, one of dy in one of `dy_step` along each column. With I = ceil(intermediate
 * / weight_step), H = ceil(hidden / weight_step) and T = ceil(tokens / dy_step), the absolute
 * values that a partial sum adds are at most H for y1, H I for y2, H for dy1, H I for dx, T H for
 * dw2 and T H for dw1. H I and T H are kept within the exact integers: 2^24 for f32 and f64, 2^11
 * for f16, 2^8 for bf16.
 *
 * Each result is a product of inputs A B C, so the weighted sums of its rows are A (B (C r)), which
 * costs no more than reading the inputs. r is a vector of 64-bit numbers that hash the column, and
 * sums are modulo 2^64. An element that is not an integer, or exceeds the bound, makes its row
 * wrong at once; any other wrong element is off by at most 2^25, so a wrong row goes unnoticed with
 * a probability of at most 2^-39, for r drawn at random. A wrong row is then computed whole, as
 * e_row A B C, and compared element by element.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_LINEAR_ORACLE_H
#define TESSERA_TOOLS_BENCH_CHECK_LINEAR_ORACLE_H

#include <tessera/dtype.h>
#include <tessera/status.h>

#include <stdint.h>

/** Upper bound of the wrong rows of a tile that are compared element by element; each further row
 * counts as one wrong element. */
#define LINEAR_ORACLE_ROWS 64

typedef enum linear_input { LINEAR_X, LINEAR_W1, LINEAR_W2, LINEAR_DY } linear_input;
typedef enum linear_result {
    LINEAR_Y1,
    LINEAR_Y2,
    LINEAR_DX,
    LINEAR_DW1,
    LINEAR_DY1,
    LINEAR_DW2,
    LINEAR_RESULTS
} linear_result;

typedef struct linear_oracle {
    int64_t tokens, hidden, intermediate;
    int64_t weight_step, dy_step;
    int64_t bound; /**< upper bound of the absolute value of every result */
} linear_oracle;

/** A part of a matrix that begins at `row` and `column` of the whole. */
typedef struct linear_tile {
    int64_t row, column, rows, columns;
} linear_tile;

/** The oracle for an MLP of f64, f32, f16 or bf16; sizes are below 2^31. */
linear_oracle linear_oracle_make(int64_t tokens, int64_t hidden, int64_t intermediate, tsr_dtype dtype);

/** Writes the elements of a tile of an input, row by row. */
void linear_oracle_fill(const linear_oracle *o, linear_input input, linear_tile tile, double *values);

/** Counts the wrong elements of a tile of a result, given row by row. TSR_ERROR_MEMORY. */
tsr_status linear_oracle_count_wrong(const linear_oracle *o, linear_result result, linear_tile tile,
                                     const double *values, int64_t *wrong);

#endif
