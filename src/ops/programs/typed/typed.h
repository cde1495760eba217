/** How functions that record ops are written: one line each. */
#ifndef TSR_OPS_PROGRAMS_TYPED_TYPED_H
#define TSR_OPS_PROGRAMS_TYPED_TYPED_H

#include "ops/programs/program.h"
#include "ops/rows/settings.h"

#include <tessera/program_ops.h>

#include <stdio.h>

#define VALUES(...) ((const tsr_value[]){__VA_ARGS__})

/** Ends the function unless the program records, and names the op's place, for sentences. */
#define BEGIN(op)                                                                                                      \
    char caller[64];                                                                                                   \
    if (!tsr_program_records(program))                                                                                 \
        return TSR_NONE;                                                                                               \
    snprintf(caller, sizeof caller, "op %zu, " op, program->node_count)

/** Ends the function, and the program's recording, where a call fails. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const tsr_status status_of_call = (call);                                                                      \
        if (status_of_call != TSR_OK)                                                                                  \
            return tsr_program_fail(program, status_of_call);                                                          \
    } while (0)

/** Ops with one operand, or two, and `settings` behind. */
#define UNARY_WITH(name, op, settings, attributes)                                                                     \
    tsr_value tsr_op_##name(tsr_program *program, tsr_value x settings)                                                \
    {                                                                                                                  \
        return tsr_program_apply(program, op, attributes, VALUES(x), NULL);                                            \
    }
#define BINARY_WITH(name, a, b, settings, attributes)                                                                  \
    tsr_value tsr_op_##name(tsr_program *program, tsr_value a, tsr_value b settings)                                   \
    {                                                                                                                  \
        return tsr_program_apply(program, #name, attributes, VALUES(a, b), NULL);                                      \
    }
#define TERNARY_WITH(name, a, b, c, settings, attributes)                                                              \
    tsr_value tsr_op_##name(tsr_program *program, tsr_value a, tsr_value b, tsr_value c settings)                      \
    {                                                                                                                  \
        return tsr_program_apply(program, #name, attributes, VALUES(a, b, c), NULL);                                   \
    }
/** Ops that have no gradient are recorded like all others. */
#define WITHOUT_GRADIENT       UNARY_WITH
#define UNARY_ALONE(name)      UNARY(name, #name)
#define BINARY_ALONE(name)     BINARY(name, x, y)
#define UNARY(name, op)        UNARY_WITH(name, op, NO_SETTING, NO_ATTRIBUTES)
#define BINARY(name, a, b)     BINARY_WITH(name, a, b, NO_SETTING, NO_ATTRIBUTES)
#define TERNARY(name, a, b, c) TERNARY_WITH(name, a, b, c, NO_SETTING, NO_ATTRIBUTES)

#endif
