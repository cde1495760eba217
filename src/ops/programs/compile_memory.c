/* Memory of an executable: when each value is needed, and where it lies. */
#include "ops/programs/compile_memory.h"

#include "ops/kernels/pointwise.h"
#include "ops/kernels/updates/updates.h"
#include "ops/programs/link.h"
#include "ops/programs/rooms.h"
#include "ops/programs/tiles.h"

#include <tessera/sys/memory.h>

#include <limits.h>

/* Extends the time of a value, or of that over whose memory it is a view, to a step. */
static void use(tsr_executable *x, int value, int step)
{
    const tsr_held *const v = &x->values[x->values[value].base];
    if (v->room >= 0 && x->rooms[v->room].last < step)
        x->rooms[v->room].last = step;
}

/* True if some of the steps that run with one read a value's memory by strides of a view, which
 * say other elements. */
static bool is_viewed(const tsr_executable *x, int value, int at)
{
    for (int i = x->steps[at].first; i < x->steps[at].last; i++)
        for (int j = 0; j < x->steps[i].operand_count; j++) {
            const int operand = x->steps[i].operands[j];
            if (operand >= 0 && operand != value && x->values[operand].base == value)
                return true;
        }
    return false;
}

/* The operand of `step` over whose memory the result of the pointwise step `at` may lie, where both
 * run together: it has the result's form, and no later step reads it. -1: no operand is so. */
static int find_overwritten(const tsr_executable *x, const tsr_step *step, int at, const int *last)
{
    for (int i = 0; i < step->operand_count; i++) {
        const int operand = step->operands[i];
        if (operand < 0)
            continue;
        const tsr_held *const v = &x->values[operand];
        if (v->base == operand && v->place == TSR_PLACE_WORKSPACE && last[operand] <= at &&
            v->form == x->values[x->steps[at].results[0]].form && !is_viewed(x, operand, at))
            return operand;
    }
    return -1;
}

/* Takes the room of an operand for the result of the pointwise step `at`, so that no other result
 * gets this room. -1: the step must not overwrite any operand. */
static int take_operand_room(const tsr_executable *x, int at, int *last)
{
    const tsr_step *const step = &x->steps[at];
    if (step->kind != TSR_DOES_KERNEL || !step->inside || step->c.op->host != tsr_pointwise_run)
        return -1;
    for (int i = at; i >= step->first; i--) {
        const int operand = find_overwritten(x, &x->steps[i], at, last);
        if (operand < 0)
            continue;
        last[operand] = INT_MAX;
        return x->values[operand].room;
    }
    return -1;
}

/* Gives what a step makes room. Moves that share an exchange write as long as it is open. */
static tsr_status add_results(tsr_executable *x, const tsr_step *step, int at, int *last)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        if (step->results[i] < 0)
            continue;
        tsr_held *const v = &x->values[step->results[i]];
        if (!x->forms[v->form].inside || v->place != TSR_PLACE_NOWHERE)
            continue;
        v->room = take_operand_room(x, at, last);
        if (v->room < 0)
            TSR_TRY(tsr_executable_add_room(x, x->forms[v->form].bytes, step->first, step->last - 1, &v->room));
        v->place = TSR_PLACE_WORKSPACE;
    }
    return TSR_OK;
}

/* Places the values that only steps of a group read in its scratch. */
static tsr_status add_tiles(tsr_executable *x, tsr_group *g, const int *last)
{
    int room;
    tsr_group_place_values(x, g, last);
    if (!g->bytes)
        return TSR_OK;
    TSR_TRY(tsr_executable_add_room(x, g->bytes, g->first, g->last, &room));
    for (int i = g->first; i <= g->last; i++)
        for (int j = 0; j < x->steps[i].result_count; j++)
            if (x->steps[i].results[j] >= 0 && x->values[x->steps[i].results[j]].place == TSR_PLACE_TILE)
                x->values[x->steps[i].results[j]].room = room;
    return TSR_OK;
}

/* Gives a step's kernel or plan its scratch. */
static tsr_status add_scratch(tsr_executable *x, tsr_step *step)
{
    size_t bytes = 0;
    if (step->kind == TSR_DOES_MOVE && step->place == 0)
        bytes = x->plans[step->plan].bytes;
    if (step->kind == TSR_DOES_KERNEL && step->inside)
        TSR_TRY(tsr_executable_find_scratch(x, step, &bytes));
    return bytes ? tsr_executable_add_room(x, bytes, step->first, step->last - 1, &step->scratch) : TSR_OK;
}

/* The last step that reads each value, or a view of it; `last` has room for all values. What a move
 * reads, the step before which it is finished may overwrite. */
static void find_last_reads(const tsr_executable *x, int *last)
{
    for (size_t i = 0; i < x->value_count; i++)
        last[i] = -1;
    for (size_t i = 0; i < x->step_count; i++) {
        const tsr_step *const step = &x->steps[i];
        const int at = step->kind == TSR_DOES_MOVE ? step->last : (int)i;
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++) {
            int *const read = step->operands[j] >= 0 ? &last[x->values[step->operands[j]].base] : NULL;
            if (read && *read < at)
                *read = at;
        }
    }
}

static tsr_status add_rooms(tsr_executable *x, int *last)
{
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->group >= 0 && x->groups[step->group].first == (int)i)
            TSR_TRY(add_tiles(x, &x->groups[step->group], last));
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
            if (step->operands[j] >= 0)
                use(x, step->operands[j], step->last - 1);
        if (step->kind == TSR_DOES_COPY)
            continue;
        if (step->kind == TSR_DOES_KERNEL || step->kind == TSR_DOES_MOVE)
            TSR_TRY(add_results(x, step, (int)i, last));
        TSR_TRY(add_scratch(x, step));
    }
    return TSR_OK;
}

/* Takes back what was assigned before. */
static void take_back(tsr_executable *x)
{
    for (size_t i = 0; i < x->value_count; i++) {
        tsr_held *const v = &x->values[i];
        if (v->place == TSR_PLACE_WORKSPACE || v->place == TSR_PLACE_TILE || v->place == TSR_PLACE_STATE)
            v->place = TSR_PLACE_NOWHERE;
        v->room = -1;
    }
    for (size_t i = 0; i < x->step_count; i++) {
        x->steps[i].scratch = -1;
        x->steps[i].is_there = false;
    }
    x->room_count = 0;
}

/* True if a step computes elements from those in the same place of its operands, so that a result
 * may lie over an operand. */
static bool is_elementwise(const tsr_step *step)
{
    return step->kind == TSR_DOES_KERNEL && step->inside && !step->exchanged &&
           (step->c.op->host == tsr_pointwise_run || step->c.op->host == tsr_update_run);
}

/* True if a value, or that over which it lies, is a state's `index`. */
static bool is_of_state(const tsr_executable *x, int value, size_t index)
{
    const tsr_held *const base = value >= 0 ? &x->values[x->values[value].base] : NULL;
    return base && (base->place == TSR_PLACE_BOUND || base->place == TSR_PLACE_STATE) && base->index == index;
}

/* True if a step reads a state, or with `views` if it does by strides of a view. A store reads what
 * follows the state into which it writes. */
static bool reads_state(const tsr_executable *x, const tsr_step *step, size_t index, bool views)
{
    for (int i = step->kind == TSR_DOES_STORE; i < step->operand_count; i++)
        if (is_of_state(x, step->operands[i], index) &&
            (!views || x->values[step->operands[i]].base != step->operands[i]))
            return true;
    return false;
}

/* True if the state may be written by step `maker` in place of the store `at`: nobody reads what it
 * was in between, as moves that are open do. */
static bool is_free_from(const tsr_executable *x, size_t index, int maker, int at)
{
    if (reads_state(x, &x->steps[maker], index, true))
        return false;
    for (int i = 0; i < at; i++) {
        const tsr_step *const step = &x->steps[i];
        const bool meanwhile = i > maker || (step->kind == TSR_DOES_MOVE && step->last > maker);
        if (meanwhile && reads_state(x, step, index, false))
            return false;
        if (i > maker && step->kind == TSR_DOES_STORE && is_of_state(x, step->operands[0], index))
            return false;
    }
    return true;
}

/* The step that makes a value, from step `at` on backwards; -1: none. */
static int find_maker(const tsr_executable *x, int value, int at)
{
    for (int i = at - 1; i >= 0; i--)
        for (int j = 0; j < x->steps[i].result_count && x->steps[i].kind == TSR_DOES_KERNEL; j++)
            if (x->steps[i].results[j] == value)
                return i;
    return -1;
}

/* Makes a value in the memory of the state that the store `at` copies it to, where an elementwise
 * step makes it and no step reads it behind the store. So an update writes states once. */
static void place_over_state(tsr_executable *x, int at, const int *last)
{
    tsr_step *const store = &x->steps[at];
    if (store->kind != TSR_DOES_STORE || !store->inside || store->dim >= 0 || store->operands[2] >= 0)
        return;
    const int value = store->operands[1];
    tsr_held *const v = &x->values[value], *const state = &x->values[store->operands[0]];
    if (v->place != TSR_PLACE_NOWHERE || v->base != value || state->place != TSR_PLACE_BOUND || last[value] > at ||
        v->form != state->form)
        return;
    const int maker = find_maker(x, value, at);
    if (maker < 0 || !is_elementwise(&x->steps[maker]) || x->steps[maker].group != store->group ||
        !is_free_from(x, state->index, maker, at))
        return;
    v->place = TSR_PLACE_STATE;
    v->index = state->index;
    store->is_there = true;
}

tsr_status tsr_compile_memory(tsr_executable *x)
{
    void *last;
    take_back(x);
    TSR_TRY(tsr_program_array(x->context, x->value_count, sizeof(int), &last));
    find_last_reads(x, last);
    for (int i = 0; i < (int)x->step_count; i++)
        place_over_state(x, i, last);
    const tsr_status status = add_rooms(x, last);
    tsr_release(x->context, last);
    x->has_rooms = status == TSR_OK;
    return status;
}

tsr_status tsr_compile_scratch(tsr_executable *x)
{
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (step->kind != TSR_DOES_MOVE || step->place > 0 || !x->plans[step->plan].bytes)
            continue;
        if (step->scratch < 0)
            TSR_TRY(
                tsr_executable_add_room(x, x->plans[step->plan].bytes, step->first, step->last - 1, &step->scratch));
        else
            tsr_executable_resize_room(x, step->scratch, x->plans[step->plan].bytes);
    }
    TSR_TRY(tsr_executable_place_rooms(x));
    x->has_grown = false;
    return TSR_OK;
}
