/** The public views of one tensor, a line each, as in pointwise_functions.h. */

#include <tessera/views.h>

UNARY_WITH(reshape, "reshape", SHAPE_SETTING, SHAPE)
UNARY_WITH(transpose, "transpose", TWO_DIMS_SETTING, TWO_DIMS)
UNARY_WITH(permute, "permute", ORDER_SETTING, ORDER)
UNARY_WITH(expand, "expand", SHAPE_SETTING, SHAPE)
UNARY_WITH(squeeze, "squeeze", DIMS_SETTING, DIMS)
UNARY_WITH(unsqueeze, "unsqueeze", DIM_SETTING, DIM)
UNARY_WITH(slice, "slice", RANGE_SETTING, RANGE)
UNARY_WITH(narrow, "narrow", LENGTH_SETTING, LENGTH)
UNARY_WITH(pad, "pad", PADS_SETTING, PADS)
UNARY_WITH(flip, "flip", DIMS_SETTING, DIMS)
UNARY_WITH(roll, "roll", SHIFT_SETTING, SHIFT)
UNARY_WITH(tril, "tril", DIAGONAL_SETTING, DIAGONAL)
UNARY_WITH(triu, "triu", DIAGONAL_SETTING, DIAGONAL)
