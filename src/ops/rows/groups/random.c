#include "ops/kernels/random/random.h"

#include "ops/rows/groups/random_checks.h"
#include "ops/rows/rows.h"

/* Rows share these parts. `like` gives shape, layout and dtype; only dropout reads values. */
#define GENERATOR                                                                                                      \
    {                                                                                                                  \
        .name = "generator", .kind = TSR_ATTRIBUTE_WORD, .words = "threefry|philox"                                    \
    }
#define KEY                                                                                                            \
    {                                                                                                                  \
        .name = "key", .kind = TSR_ATTRIBUTE_INTS, .count = 2                                                          \
    }
#define NUMBER(which, value)                                                                                           \
    {                                                                                                                  \
        .name = which, .kind = TSR_ATTRIBUTE_FLOAT, .number = value                                                    \
    }
#define INTEGER(which)                                                                                                 \
    {                                                                                                                  \
        .name = which, .kind = TSR_ATTRIBUTE_INT                                                                       \
    }
#define FILLS(what)                                                                                                    \
    .results = {"out"}, .check = tsr_check_random, .host = tsr_random_run,                                             \
    .workspace_bytes = tsr_random_workspace_bytes, .code = TSR_RANDOM_##what

const tsr_op tsr_rows_random[] = {
    {.name = "uniform",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY, NUMBER("low", 0), NUMBER("high", 1)},
     FILLS(UNIFORM)},
    {.name = "normal",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY, NUMBER("mean", 0), NUMBER("std", 1)},
     FILLS(NORMAL)},
    {.name = "truncated_normal",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY, NUMBER("mean", 0), NUMBER("std", 1), NUMBER("low", -2), NUMBER("high", 2)},
     FILLS(TRUNCATED)},
    {.name = "bernoulli",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY, NUMBER("p", 0.5)},
     FILLS(BERNOULLI)},
    {.name = "bits",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY},
     FILLS(BITS)},
    {.name = "randint",
     .rule = "... -> ... | ... positional",
     .operands = {"like"},
     .attributes = {GENERATOR, KEY, INTEGER("low"), INTEGER("high")},
     FILLS(INTEGERS)},
    {.name = "dropout",
     .rule = "... -> ... | ... positional | linear {0}",
     .operands = {"x"},
     .attributes = {GENERATOR, KEY, NUMBER("p", 0.5)},
     FILLS(DROPOUT),
     .gradients = {"dropout(dout)"}},
    {.name = NULL},
};
