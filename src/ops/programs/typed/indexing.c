#include "ops/programs/typed/typed.h"

BINARY(embedding, weight, ids)
BINARY_WITH(index_select, x, index, DIM_SETTING, DIM)
BINARY_WITH(gather, x, index, DIM_SETTING, DIM)
TERNARY_WITH(scatter_add, x, index, source, DIM_SETTING, DIM)
UNARY_WITH(one_hot, "one_hot", CLASSES_SETTING, CLASSES)
UNARY_WITH(bincount, "bincount", COUNTS_SETTING, COUNTS)
