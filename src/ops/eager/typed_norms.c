#include "ops/eager/typed.h"

#include <tessera/norms.h>

/* Settings, and the attributes that they are. */
#define DIM_SETTING int dim,
#define DIM         ATTRIBUTES(tsr_attribute_int("dim", dim))

UNARY_WITH(softmax, "softmax", DIM_SETTING, DIM)
UNARY_WITH(log_softmax, "log_softmax", DIM_SETTING, DIM)
