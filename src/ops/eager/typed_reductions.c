#include "ops/eager/typed.h"

#include <tessera/reductions.h>

/* Settings, and the attributes that they are. */
#define DIMS_SETTING      int count, const int64_t *dims, int keep,
#define DIMS              ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep))
#define CORRECTED_SETTING int count, const int64_t *dims, int keep, double correction,
#define CORRECTED                                                                                                      \
    ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep),                                \
               tsr_attribute_float("correction", correction))
#define DIM_SETTING int dim,
#define DIM         ATTRIBUTES(tsr_attribute_int("dim", dim))

UNARY_WITH(sum, "sum", DIMS_SETTING, DIMS)
UNARY_WITH(mean, "mean", DIMS_SETTING, DIMS)
UNARY_WITH(max, "max", DIMS_SETTING, DIMS)
UNARY_WITH(min, "min", DIMS_SETTING, DIMS)
UNARY_WITH(prod, "prod", DIMS_SETTING, DIMS)
UNARY_WITH(var, "var", CORRECTED_SETTING, CORRECTED)
UNARY_WITH(std, "std", CORRECTED_SETTING, CORRECTED)
WITHOUT_GRADIENT(any, "any", DIMS_SETTING, DIMS)
WITHOUT_GRADIENT(all, "all", DIMS_SETTING, DIMS)
WITHOUT_GRADIENT(argmax, "argmax", DIM_SETTING, DIM)
WITHOUT_GRADIENT(argmin, "argmin", DIM_SETTING, DIM)
