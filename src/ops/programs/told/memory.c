/* What the memory of a run is for. */
#include "ops/programs/executable.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The role of rooms that no value has: scratch. */
enum { SCRATCH = -1 };

/* The step at which most of the workspace is in use. `rises` has room for all steps, and one. */
static size_t find_fullest(const tsr_executable *x, int64_t *rises)
{
    size_t fullest = 0;
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < x->room_count; i++) {
        rises[x->rooms[i].first] += (int64_t)x->rooms[i].bytes;
        rises[x->rooms[i].last + 1] -= (int64_t)x->rooms[i].bytes;
    }
    for (size_t i = 0; i < x->step_count; i++) {
        now += rises[i];
        if (now > most) {
            most = now;
            fullest = i;
        }
    }
    return fullest;
}

/* Finds of each room the role of the first value that lies there. */
static void find_roles(const tsr_executable *x, int *roles)
{
    for (size_t i = 0; i < x->room_count; i++)
        roles[i] = SCRATCH;
    for (size_t i = x->step_count; i > 0; i--) {
        const tsr_step *const step = &x->steps[i - 1];
        for (int j = 0; j < TSR_OP_MOST_RESULTS && step->kind != TSR_DOES_COPY; j++) {
            const tsr_held *const v = step->results[j] >= 0 ? &x->values[step->results[j]] : NULL;
            if (v && v->place == TSR_PLACE_WORKSPACE && v->room >= 0)
                roles[v->room] = (int)v->role;
        }
    }
}

/* Adds up rooms that are in use at a step. */
static void add_rooms(const tsr_executable *x, const int *roles, size_t at, tsr_executable_memory *m)
{
    size_t *const by_role[] = {&m->gathered, &m->activations, &m->gradients};
    for (size_t i = 0; i < x->room_count; i++) {
        const tsr_room *const room = &x->rooms[i];
        if (room->first <= (int)at && room->last >= (int)at)
            *(roles[i] == SCRATCH ? &m->scratch : by_role[roles[i]]) += room->bytes;
    }
    m->gaps = x->workspace_bytes - m->gathered - m->activations - m->gradients - m->scratch;
}

static tsr_status divide_workspace(const tsr_executable *x, tsr_executable_memory *m)
{
    void *rises, *roles = NULL;
    TSR_TRY(tsr_program_array(x->context, x->step_count + 1, sizeof(int64_t), &rises));
    const tsr_status status = tsr_program_array(x->context, x->room_count, sizeof(int), &roles);
    if (status == TSR_OK) {
        find_roles(x, roles);
        add_rooms(x, roles, find_fullest(x, rises), m);
    }
    tsr_release(x->context, roles);
    tsr_release(x->context, rises);
    return status;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Bytes of the executable's own lists. */
static size_t count_kept(const tsr_executable *x)
{
    size_t bytes = sizeof *x + x->step_count * (sizeof *x->steps + sizeof *x->told + sizeof *x->early) +
                   x->value_count * (sizeof *x->values + sizeof *x->sources) + x->saved_bytes +
                   x->form_room * sizeof *x->forms + x->plan_room * sizeof *x->plans +
                   x->group_room * sizeof *x->groups + x->room_room * sizeof *x->rooms +
                   x->batch_room * sizeof *x->batches;
    for (size_t i = 0; i < x->step_count; i++)
        bytes += text_bytes(x->steps[i].caller);
    for (size_t i = 0; i < x->group_count; i++)
        bytes += (size_t)x->groups[i].cursor_count * sizeof *x->groups[i].cursors;
    return bytes;
}

/* Bytes of this rank's shards of values that lie in a place. */
static size_t add_values(const tsr_executable *x, const int *values, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += x->forms[x->values[values[i]].form].bytes;
    return bytes;
}

tsr_status tsr_executable_memory_of(const tsr_executable *executable, tsr_executable_memory *out)
{
    tsr_executable_memory m = {0};
    const tsr_executable *const x = executable;
    if (!x || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_memory_of: %s is NULL", x ? "out" : "executable");
    for (size_t i = 0; i < x->value_count; i++) {
        const tsr_held *const v = &x->values[i];
        if (v->place == TSR_PLACE_CONSTANT)
            m.parameters += x->forms[v->form].bytes;
    }
    for (size_t i = 0; i < x->bound_count; i++) {
        const tsr_held *const v = &x->values[x->bound[i]];
        if (v->place == TSR_PLACE_BOUND)
            *(v->role == TSR_ROLE_OPTIMIZER ? &m.optimizer_states : &m.parameters) += x->forms[v->form].bytes;
    }
    m.inputs = add_values(x, x->inputs, x->input_count);
    m.outputs = add_values(x, x->outputs, x->output_count);
    TSR_TRY(divide_workspace(x, &m));
    m.peak = m.parameters + m.optimizer_states + m.inputs + m.outputs + x->workspace_bytes;
    m.kept = count_kept(x);
    *out = m;
    return TSR_OK;
}
