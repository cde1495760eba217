#include "ops/programs/typed/typed.h"
#include "ops/rows/reductions_functions.h"
