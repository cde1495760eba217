/**
 * What the MLP of bench linear must give, worked out from global indices alone: y1 = x w1^T, y2 = y1 w2^T, dy1 = dy w2, dx = dy1 w1,
 * dw2 = dy^T y1 and dw1 = dy1^T x.
 *
 * Every element of the inputs is -1, 0 or 1, and of the weights and of dy so many are 0 that no sum can leave the integers which the dtype
 * holds exactly, whatever it adds in whatever order: results are right bit for bit or wrong. With a weight's element other than 0 in one of
 * `weight_step` places along each row and each column, and dy's in one of `dy_step` along each column, and I = ceil(intermediate /
 * weight_step), H = ceil(hidden / weight_step), T = ceil(tokens / dy_step), the absolute values that any part of a sum adds are at most H
 * for y1, H I for y2, H for dy1, H I for dx, T H for dw2 and T H for dw1. Both products are kept within the dtype: 2^24 for f32 and f64,
 * 2^11 for f16, 2^8 for bf16.
 *
 * Each result is a product of inputs A B C, so its rows' weighted sums are A (B (C r)): as much work as reading the inputs. r are 64-bit
 * numbers that hash the column, and sums are modulo 2^64. What is no integer, or out of the bound, makes its row wrong at once; else a
 * wrong element is off by at most 2^25, so a wrong row goes unnoticed with a probability of at most 2^-39, for r drawn at random. Wrong
 * rows are worked out whole, by e_row A B C, and compared element by element.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_LINEAR_ORACLE_H
#define TESSERA_TOOLS_BENCH_CHECK_LINEAR_ORACLE_H

#include <stdint.h>
#include <tessera/dtype.h>
#include <tessera/status.h>

/** Wrong rows of a tile that are compared element by element; any more count as one wrong element each. */
#define LINEAR_ORACLE_ROWS 64

typedef enum linear_input { LINEAR_X, LINEAR_W1, LINEAR_W2, LINEAR_DY } linear_input;
typedef enum linear_result { LINEAR_Y1, LINEAR_Y2, LINEAR_DX, LINEAR_DW1, LINEAR_DY1, LINEAR_DW2, LINEAR_RESULTS } linear_result;

typedef struct linear_oracle {
    int64_t tokens, hidden, intermediate;
    int64_t weight_step, dy_step;
    int64_t bound; /**< of the absolute value of every result */
} linear_oracle;

/** A part of a matrix, at `row` and `column` of the whole. */
typedef struct linear_tile {
    int64_t row, column, rows, columns;
} linear_tile;

/** Of f64, f32, f16 or bf16, and sizes below 2^31. */
linear_oracle linear_oracle_make(int64_t tokens, int64_t hidden, int64_t intermediate, tsr_dtype dtype);

/** The tile's elements, row by row. */
void linear_oracle_fill(const linear_oracle *o, linear_input input, linear_tile tile, double *values);

/** Counts the elements of a tile that are not what they must be. */
tsr_status linear_oracle_count_wrong(const linear_oracle *o, linear_result result, linear_tile tile, const double *values, int64_t *wrong);

#endif
