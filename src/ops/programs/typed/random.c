#include "ops/programs/typed/typed.h"
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

/* A value of the layout that nobody reads: the one that is there, or a new one. */
static tsr_status find_like(tsr_program *program, const tsr_layout *layout, tsr_value *out)
{
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_program_value *const v = &program->values[i];
        if (v->kind == TSR_VALUE_LIKE && tsr_op_are_layouts_equal(v->layout, layout)) {
            *out = (tsr_value)i;
            return TSR_OK;
        }
    }
    return tsr_program_add_value(program, TSR_VALUE_LIKE, (tsr_layout *)layout, out);
}

static tsr_status check(const char *caller, const tsr_layout *layout, const tsr_random_key *key)
{
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: layout is NULL", caller);
    TSR_TRY(tsr_settings_check_recorded_key(caller, key));
    return tsr_settings_check_not_partial(caller, "layout", layout);
}

/* Ops that fill. */
#define FILLS(name, settings, attributes)                                                                              \
    tsr_value tsr_op_##name(tsr_program *program, const tsr_layout *layout, const tsr_random_key *key settings)        \
    {                                                                                                                  \
        tsr_value like;                                                                                                \
        BEGIN(#name);                                                                                                  \
        TRY(check(caller, layout, key));                                                                               \
        TRY(find_like(program, layout, &like));                                                                        \
        return tsr_program_apply(program, #name, attributes, &like, NULL);                                             \
    }

FILLS(uniform, UNIFORM_SETTING, UNIFORM)
FILLS(normal, NORMAL_SETTING, NORMAL)
FILLS(truncated_normal, TRUNCATED_NORMAL_SETTING, TRUNCATED_NORMAL)
FILLS(bernoulli, PROBABILITY_SETTING, PROBABILITY)
FILLS(bits, NO_SETTING, ATTRIBUTES(KEY))
FILLS(randint, INTEGERS_SETTING, INTEGERS)

tsr_value tsr_op_dropout(tsr_program *program, tsr_value x, double p, const tsr_random_key *key)
{
    BEGIN("dropout");
    TRY(tsr_settings_check_recorded_key(caller, key));
    return tsr_program_apply(program, "dropout", PROBABILITY, &x, NULL);
}
