/** How the public typed functions of ops are written: one line each. For the files of this
 * folder. */
#ifndef TSR_OPS_EAGER_TYPED_TYPED_H
#define TSR_OPS_EAGER_TYPED_TYPED_H

#include "ops/eager/gradient.h"
#include "ops/eager/run.h"
#include "ops/rows/lookup.h"
#include "ops/rows/settings.h"

#include <string.h>

/** The library's row of that name. `some` is an operand of the call, by whose context it is found
 * the faster; it may be NULL. */
static inline const tsr_op *row_by(const char *name, const tsr_dtensor *some)
{
    tsr_context *const context = some ? tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(some))) : NULL;
    return tsr_op_lookup(context, name, strlen(name));
}

/** The library's row of that name. */
static inline const tsr_op *row(const char *name)
{
    return row_by(name, NULL);
}

/** Lists of operands and wanted gradients. */
#define OPERANDS(...) ((const tsr_dtensor *const[]){__VA_ARGS__})
#define WANTED(...)   ((tsr_dtensor **const[]){__VA_ARGS__})

/** The functions of an op with one operand and, behind it, `settings` (settings.h): three with
 * gradients, two without. Neither is made of the other, because that would take the commas of
 * settings as its own. */
#define UNARY_WITH(name, op, settings, attributes)                                                                     \
    tsr_status tsr_##name(const tsr_dtensor *x settings, tsr_dtensor **out)                                            \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(op, x), attributes, OPERANDS(x), out);                               \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x settings, tsr_dtensor *out)                                      \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(op, x), attributes, OPERANDS(x), &out);                 \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *x settings, const tsr_dtensor *dout, tsr_dtensor **dx)         \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row_by(op, x), attributes, OPERANDS(x), dout, WANTED(dx)); \
    }
#define WITHOUT_GRADIENT(name, op, settings, attributes)                                                               \
    tsr_status tsr_##name(const tsr_dtensor *x settings, tsr_dtensor **out)                                            \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(op, x), attributes, OPERANDS(x), out);                               \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x settings, tsr_dtensor *out)                                      \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(op, x), attributes, OPERANDS(x), &out);                 \
    }
#define UNARY(name, op)   UNARY_WITH(name, op, NO_SETTING, NO_ATTRIBUTES)
#define UNARY_ALONE(name) WITHOUT_GRADIENT(name, #name, NO_SETTING, NO_ATTRIBUTES)

/** The functions of an op with the operands `a` and `b`: three with gradients, two without. */
#define BINARY_FORWARD(name, a, b)                                                                                     \
    tsr_status tsr_##name(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor **out)                               \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(#name, a), NO_ATTRIBUTES, OPERANDS(a, b), out);                      \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor *out)                         \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(#name, a), NO_ATTRIBUTES, OPERANDS(a, b), &out);        \
    }
#define BINARY(name, a, b)                                                                                             \
    BINARY_FORWARD(name, a, b)                                                                                         \
    tsr_status tsr_##name##_backward(const tsr_dtensor *a, const tsr_dtensor *b, const tsr_dtensor *dout,              \
                                     tsr_dtensor **d##a, tsr_dtensor **d##b)                                           \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row_by(#name, a), NO_ATTRIBUTES, OPERANDS(a, b), dout,     \
                                  WANTED(d##a, d##b));                                                                 \
    }
#define BINARY_ALONE(name) BINARY_FORWARD(name, x, y)

#endif
