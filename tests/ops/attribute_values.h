/** Attributes as initializers, for tables of cases. */
#ifndef TESTS_OPS_ATTRIBUTE_VALUES_H
#define TESTS_OPS_ATTRIBUTE_VALUES_H

#include <tessera/ops.h>

#define INT(attribute, value)                                                                                          \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_INT, .integer = value                                                 \
    }
#define INTS(attribute, n, ...)                                                                                        \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_INTS, .count = n, .list = { __VA_ARGS__ }                             \
    }
#define FLOAT(attribute, value)                                                                                        \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_FLOAT, .number = value                                                \
    }
#define WORD(attribute, value)                                                                                         \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_WORD, .words = value                                                  \
    }

#endif
