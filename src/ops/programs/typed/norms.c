#include "ops/programs/typed/typed.h"

UNARY_WITH(softmax, "softmax", DIM_SETTING, DIM)
UNARY_WITH(log_softmax, "log_softmax", DIM_SETTING, DIM)
UNARY_WITH(logsumexp, "logsumexp", REDUCED_SETTING, REDUCED)
UNARY_WITH(norm, "norm", P_SETTING, P)
BINARY_WITH(rms_norm, x, weight, EPSILON_SETTING, EPSILON)
TERNARY_WITH(layer_norm, x, weight, bias, EPSILON_SETTING, EPSILON)
