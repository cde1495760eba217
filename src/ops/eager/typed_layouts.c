#include "ops/eager/typed.h"

#include <tessera/varying.h>

#define GRADIENT_SETTING int partial,
#define GRADIENT         ATTRIBUTES(tsr_attribute_word("gradient", partial ? "partial" : "replicate"))

UNARY_WITH(all_reduce, "all_reduce", GRADIENT_SETTING, GRADIENT)
UNARY(vary, "vary")
