/* Memory of an executable: when each value is needed, and where it lies. */
#include "ops/programs/compile_memory.h"

#include "ops/eager/exchange.h"
#include "ops/programs/rooms.h"

/* Extends the time of a value, or of that over whose memory it is a view, to a step. */
static void use(tsr_executable *x, int value, int step)
{
    const tsr_held *const v = &x->values[x->values[value].base];
    if (v->room >= 0 && x->rooms[v->room].last < step)
        x->rooms[v->room].last = step;
}

/* Gives what a step makes room, from this step on, or from the first step of its batch, which runs
 * all moves of the batch. */
static tsr_status add_results(tsr_executable *x, const tsr_step *step, int at)
{
    const int first = step->kind == TSR_DOES_MOVE ? at - step->place : at;
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        if (step->results[i] < 0)
            continue;
        tsr_held *const v = &x->values[step->results[i]];
        if (!x->forms[v->form].inside || v->place != TSR_PLACE_NOWHERE)
            continue;
        TSR_TRY(tsr_executable_add_room(x, x->forms[v->form].bytes, first, at, &v->room));
        v->place = TSR_PLACE_WORKSPACE;
    }
    return TSR_OK;
}

/* Gives a step's kernel or plan its scratch. */
static tsr_status add_scratch(tsr_executable *x, tsr_step *step, int at)
{
    size_t bytes = 0;
    if (step->kind == TSR_DOES_MOVE && step->place == 0)
        bytes = x->plans[step->plan].bytes;
    if (step->kind == TSR_DOES_KERNEL && step->inside)
        bytes = tsr_exchange_scratch(&step->c, step->exchanged, &step->call);
    return bytes ? tsr_executable_add_room(x, bytes, at, at, &step->scratch) : TSR_OK;
}

tsr_status tsr_compile_memory(tsr_executable *x)
{
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
            if (step->operands[j] >= 0)
                use(x, step->operands[j], (int)i);
        if (step->kind == TSR_DOES_COPY)
            continue;
        if (step->kind == TSR_DOES_KERNEL || step->kind == TSR_DOES_MOVE)
            TSR_TRY(add_results(x, step, (int)i));
        TSR_TRY(add_scratch(x, step, (int)i));
    }
    return TSR_OK;
}

tsr_status tsr_compile_scratch(tsr_executable *x)
{
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind != TSR_DOES_MOVE || step->place > 0 || !x->plans[step->plan].bytes)
            continue;
        if (step->scratch < 0)
            TSR_TRY(tsr_executable_add_room(x, x->plans[step->plan].bytes, (int)i, (int)i, &step->scratch));
        else
            tsr_executable_resize_room(x, step->scratch, x->plans[step->plan].bytes);
    }
    TSR_TRY(tsr_executable_place_rooms(x));
    x->has_grown = false;
    return TSR_OK;
}
