#include "ops/programs/typed/typed.h"
#include "ops/rows/pointwise_functions.h"

BINARY_WITH(masked_fill, x, mask, VALUE_SETTING, VALUE)
TERNARY(where, condition, x, y)
