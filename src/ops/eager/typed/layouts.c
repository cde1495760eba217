#include "ops/eager/typed/typed.h"

#include <tessera/varying.h>

UNARY_WITH(all_reduce, "all_reduce", GRADIENT_SETTING, GRADIENT)
UNARY(vary, "vary")
