/** Sparse optimizers by plain loops over a whole table, element by element. */
#ifndef TESTS_TENSOR_SPARSE_ORACLE_H
#define TESTS_TENSOR_SPARSE_ORACLE_H

#include <tessera/dtype.h>
#include <tessera/sparse.h>

#include <stdbool.h>

/** The most elements, and the most rows, of a whole table. */
enum { DENSE_ELEMENTS = 256, DENSE_ROWS = 32 };

/** A whole table and its states, in the order of their names; numbers are doubles that `dtype`, or
 * the dtype of its states, holds exactly. */
typedef struct dense_table {
    tsr_sparse_options options; /**< epsilon is not -1 */
    tsr_dtype dtype;
    int64_t rows, width;
    double table[DENSE_ELEMENTS], states[2][DENSE_ELEMENTS];
    int64_t steps[DENSE_ROWS]; /**< of each row; by global steps all are equal */

    /* A step's gradient: the sums of rows, and how many they are. */
    double gradient[DENSE_ELEMENTS];
    int64_t named[DENSE_ROWS];
} dense_table;

/** Sets states as an optimizer begins. */
void dense_begin(dense_table *dense);

/** Adds a row to the gradient of the next step. Rows of equal ids come in the order in which they
 * act. */
void dense_bring(dense_table *dense, int64_t id, const double *row);

/** Takes a step, and clears the gradient. */
void dense_step(dense_table *dense);

/** An element that follows from `salt` and `i`: a multiple of 1/16 from -2 to 2. */
double dense_number(unsigned salt, int64_t i);

/** Reads and writes an element of a float dtype. */
double dense_load(tsr_dtype dtype, const void *from);
void dense_store(tsr_dtype dtype, double value, void *to);

#endif
