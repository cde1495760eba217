/** How the public typed functions of ops are written: one line each. For the files typed_*.c. */
#ifndef TSR_OPS_EAGER_TYPED_H
#define TSR_OPS_EAGER_TYPED_H

#include "ops/eager/gradient.h"
#include "ops/eager/run.h"
#include "ops/rows/table.h"

#include <string.h>

/** The row of a name that the table has. */
static inline const tsr_op *row(const char *name)
{
    return tsr_op_lookup(name, strlen(name));
}

/** Lists of operands, attributes and wanted gradients. */
#define OPERANDS(...) ((const tsr_dtensor *const[]){__VA_ARGS__})
#define ATTRIBUTES(...)                                                                                                \
    (sizeof((const tsr_attribute[]){__VA_ARGS__}) / sizeof(tsr_attribute)), ((const tsr_attribute[]){__VA_ARGS__})
#define NO_ATTRIBUTES 0, NULL
#define WANTED(...)   ((tsr_dtensor **const[]){__VA_ARGS__})

/** The three functions of an op with one operand and, behind it, `settings`, a list of parameters
 * that ends in a comma. */
#define UNARY_WITH(name, op, settings, attributes)                                                                     \
    tsr_status tsr_##name(const tsr_dtensor *x, settings tsr_dtensor **out)                                            \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row(op), attributes, OPERANDS(x), out);                                     \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x, settings tsr_dtensor *out)                                      \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row(op), attributes, OPERANDS(x), &out);                       \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *x, settings const tsr_dtensor *dout, tsr_dtensor **dx)         \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row(op), attributes, OPERANDS(x), dout, WANTED(dx));       \
    }
#define UNARY(name, op) UNARY_WITH(name, op, , NO_ATTRIBUTES)

/** The three functions of an op with the operands `a` and `b`. */
#define BINARY(name, a, b)                                                                                             \
    tsr_status tsr_##name(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor **out)                               \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row(#name), NO_ATTRIBUTES, OPERANDS(a, b), out);                            \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor *out)                         \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row(#name), NO_ATTRIBUTES, OPERANDS(a, b), &out);              \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *a, const tsr_dtensor *b, const tsr_dtensor *dout,              \
                                     tsr_dtensor **d##a, tsr_dtensor **d##b)                                           \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row(#name), NO_ATTRIBUTES, OPERANDS(a, b), dout,           \
                                  WANTED(d##a, d##b));                                                                 \
    }

#endif
