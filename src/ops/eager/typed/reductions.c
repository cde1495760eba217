#include "ops/eager/typed/typed.h"
#include "ops/rows/reductions_functions.h"
