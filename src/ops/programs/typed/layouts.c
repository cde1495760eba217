#include "ops/programs/recorded/record.h"
#include "ops/programs/typed/typed.h"

#include <tessera/sys/status.h>

UNARY_WITH(all_reduce, "all_reduce", GRADIENT_SETTING, GRADIENT)
UNARY(vary, "vary")

/* The layout that x has under other placements. */
static tsr_status parse(const char *caller, const tsr_layout *x, const char *placements, tsr_layout **out)
{
    if (!x || !placements)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s", caller,
                              x ? "placements is NULL" : "x is not one of the program's values");
    const tsr_status status = tsr_layout_parse(tsr_layout_mesh(x), placements, tsr_layout_ndim(x), tsr_layout_shape(x),
                                               tsr_layout_dtype(x), out);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "%s: %s", caller, kept.text);
}

/* Not by the op, which takes no lists in placements. */
tsr_value tsr_op_redistribute(tsr_program *program, tsr_value x, const char *placements)
{
    tsr_layout *layout;
    tsr_value out = TSR_NONE;
    BEGIN("redistribute");
    TRY(parse(caller, tsr_value_layout(program, x), placements, &layout));
    const tsr_status status =
        tsr_program_move(program, tsr_program_now(program, x), layout, (tsr_move_reason){false, -1}, &out);
    tsr_layout_destroy(layout);
    TRY(status);
    return out;
}
