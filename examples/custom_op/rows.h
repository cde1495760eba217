/** Ops of a program's own. */
#ifndef EXAMPLE_CUSTOM_OP_ROWS_H
#define EXAMPLE_CUSTOM_OP_ROWS_H

#include <tessera/sys/ops.h>

/** relu_squared (x): the square of the larger of x and 0, for f32. Its gradient is a formula over
 * the library's ops. */
extern const tsr_op example_relu_squared;

/** unit (x): each row (the last dim) divided by its Euclidean length, for f32. Where a mesh dim
 * cuts rows, ranks gather one f64 a row: the sums of squares of their parts. */
extern const tsr_op example_unit;

#endif
