#include "ops/eager/typed.h"

#include <tessera/reductions.h>

/* Settings, and the attributes that they are. */
#define DIMS_SETTING int count, const int64_t *dims, int keep,
#define DIMS         ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep))

UNARY_WITH(sum, "sum", DIMS_SETTING, DIMS)
UNARY_WITH(mean, "mean", DIMS_SETTING, DIMS)
