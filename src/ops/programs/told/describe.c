/* What an executable does, and what it costs. */
#include "ops/eager/exchange.h"
#include "ops/programs/executable.h"
#include "ops/programs/told/work.h"

#include <tessera/explain.h>

#include <string.h>

size_t tsr_executable_step_count(const tsr_executable *executable)
{
    return executable ? executable->step_count : 0;
}

/* Bytes of a value's shard on this rank, with all lengths at their maxima. */
static size_t count_bytes(const tsr_executable *x, int value)
{
    return tsr_form_of(x, value)->bytes;
}

/* True if steps of the group before `step` have read or made a value. */
static bool is_cached(const tsr_executable *x, const tsr_step *step, int value)
{
    for (int at = x->groups[step->group].first; &x->steps[at] < step; at++) {
        for (int i = 0; i < x->steps[at].operand_count; i++)
            if (x->steps[at].operands[i] >= 0 && x->values[x->steps[at].operands[i]].base == x->values[value].base)
                return true;
        for (int i = 0; i < x->steps[at].result_count; i++)
            if (x->steps[at].results[i] >= 0 && x->values[x->steps[at].results[i]].base == x->values[value].base)
                return true;
    }
    return false;
}

/* The ranks that meet inside an op. */
static int64_t count_met(const tsr_executable *x, const tsr_step *step)
{
    int64_t ranks = 1;
    const tsr_mesh *const mesh = x->meshes[step->mesh].given;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        ranks *= step->exchanged >> k & 1 ? tsr_mesh_size(mesh, k) : 1;
    return ranks;
}

/* Bytes of a value's shard at the lengths of now. */
static int64_t count_now(const tsr_executable *x, int value)
{
    int64_t count;
    const tsr_tensor *const local = &tsr_form_of(x, value)->local;
    if (local->ndim < 0 || tsr_tensor_count(local, &count) != TSR_OK)
        return 0;
    return count * (int64_t)tsr_dtype_bytes(local->dtype);
}

/* Bytes of a value that a step has from memory, or writes there; `value` -1: none. */
static int64_t count_touched(const tsr_executable *x, const tsr_step *step, int value)
{
    if (value < 0 || x->values[x->values[value].base].place == TSR_PLACE_TILE ||
        x->values[value].place == TSR_PLACE_UNREAD)
        return 0;
    return step->group >= 0 && is_cached(x, step, value) ? 0 : count_now(x, value);
}

static tsr_status describe_kernel(const tsr_executable *x, const tsr_step *step, tsr_executable_step *out)
{
    tsr_kernel_call call = step->call;
    out->op = step->c.op->name;
    for (int i = 0; step->c.op->results[i]; i++)
        out->result_count++;
    for (int i = 0; step->c.op->operands[i]; i++)
        out->operand_count++;
    out->is_view = step->kind != TSR_DOES_KERNEL;
    if (out->is_view || !step->inside)
        return TSR_OK;
    for (int i = 0; i < out->operand_count; i++)
        out->bytes_touched += count_touched(x, step, step->operands[i]);
    for (int i = 0; i < out->result_count; i++)
        out->bytes_touched += count_touched(x, step, step->results[i]);
    const tsr_kernel_work work = tsr_count_work(x, step);
    out->flops = work.flops;
    out->seconds = tsr_kernel_seconds(x, step, &work, out->bytes_touched);
    if (step->exchanged) {
        out->bytes_received = tsr_exchange_received(&step->c, step->exchanged, &call);
        out->seconds += tsr_context_exchange_seconds(x->context, count_met(x, step), step->c.op->exchanges,
                                                     (double)out->bytes_received);
    }
    return TSR_OK;
}

/* The op of a node; "output" where there is none. */
static const char *find_cause(const tsr_executable *x, int node)
{
    for (size_t i = 0; node >= 0 && i < x->step_count; i++)
        if (x->steps[i].node == node && x->steps[i].c.op)
            return x->steps[i].kind == TSR_DOES_STORE ? "store" : x->steps[i].c.op->name;
    return "output";
}

/* Bytes that one move of a batch receives. */
typedef struct item_bytes {
    size_t item;
    int64_t bytes;
} item_bytes;

static tsr_status add_transfer(const tsr_plan_transfer *transfer, void *user)
{
    item_bytes *const of = user;
    of->bytes += transfer->item == of->item ? transfer->bytes : 0;
    return TSR_OK;
}

/* The seconds of a batch are those of its first move. */
static tsr_status describe_move(const tsr_executable *x, const tsr_step *step, tsr_executable_step *out)
{
    tsr_plan_figures figures;
    item_bytes of = {.item = (size_t)step->place};
    const tsr_plan *const plan = x->plans[step->plan].now;
    out->is_view = step->kind == TSR_DOES_SAME;
    TSR_TRY(tsr_plan_figures_of(plan, &figures));
    if (x->plans[step->plan].count == 1)
        of.bytes = figures.bytes_received;
    else
        TSR_TRY(tsr_plan_visit_receives(plan, add_transfer, &of));
    out->op = "move";
    out->operand_count = out->result_count = 1;
    out->bytes_received = of.bytes;
    out->bytes_touched = count_now(x, step->operands[0]) + count_now(x, step->results[0]);
    out->seconds = step->place == 0 ? figures.seconds : 0;
    out->shares = step->place > 0;
    if (step->chosen)
        out->cause = find_cause(x, step->cause);
    return TSR_OK;
}

static tsr_status describe_copy(const tsr_executable *x, const tsr_step *step, tsr_executable_step *out)
{
    out->op = "copy";
    out->operand_count = 1;
    out->bytes_touched = 2 * count_now(x, step->operands[0]);
    out->seconds = tsr_copy_seconds(x, out->bytes_touched / 2);
    return TSR_OK;
}

static tsr_status describe_store(const tsr_executable *x, const tsr_step *step, tsr_executable_step *out)
{
    out->op = "store";
    out->operand_count = 3;
    if (step->is_there)
        return TSR_OK;
    out->bytes_touched = count_touched(x, step, step->operands[1]) + count_now(x, step->operands[1]);
    out->seconds = tsr_copy_seconds(x, out->bytes_touched / 2);
    return TSR_OK;
}

/* Finds between which steps a step is at work, in the order in which steps are told: those around
 * it that all run meanwhile. */
static void find_times(const tsr_executable *x, const tsr_step *step, size_t index, tsr_executable_step *out)
{
    const bool moves = step->kind == TSR_DOES_MOVE;
    out->first = index;
    out->last = index + 1;
    while (moves && out->first > 0 && x->told[out->first - 1] >= step->first)
        out->first--;
    while (moves && out->last < x->step_count && x->told[out->last] < step->last)
        out->last++;
}

tsr_status tsr_executable_step_at(const tsr_executable *executable, size_t index, tsr_executable_step *out)
{
    if (!executable || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_step_at: %s is NULL",
                              executable ? "out" : "executable");
    if (index >= executable->step_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_step_at: index is %zu, but there are %zu steps",
                              index, executable->step_count);
    const tsr_step *const step = &executable->steps[executable->told[index]];
    memset(out, 0, sizeof *out);
    out->group = step->group;
    find_times(executable, step, index, out);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        out->operands[i] = step->operands[i];
        out->operand_layouts[i] = step->operands[i] >= 0 ? tsr_form_of(executable, step->operands[i])->layout : NULL;
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        const int value = step->kind == TSR_DOES_COPY ? TSR_NONE : step->results[i];
        out->results[i] = value;
        out->result_layouts[i] = value >= 0 ? tsr_form_of(executable, value)->layout : NULL;
    }
    if (!step->c.op)
        return describe_move(executable, step, out);
    if (step->kind == TSR_DOES_STORE)
        return describe_store(executable, step, out);
    if (step->kind == TSR_DOES_COPY)
        return describe_copy(executable, step, out);
    return describe_kernel(executable, step, out);
}

static size_t add_bytes(const tsr_executable *x, const int *values, size_t count, tsr_place place)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (place == TSR_PLACE_NOWHERE || x->values[values[i]].place == place)
            bytes += count_bytes(x, values[i]);
    return bytes;
}

tsr_status tsr_executable_figures_of(const tsr_executable *executable, tsr_executable_figures *out)
{
    tsr_executable_figures f = {0};
    if (!executable || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_figures_of: %s is NULL",
                              executable ? "out" : "executable");
    for (size_t i = 0; i < executable->step_count; i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(executable, i, &step));
        f.bytes_received += step.bytes_received;
        f.flops += step.flops;
        f.seconds += step.seconds;
    }
    f.workspace_bytes = executable->workspace_bytes;
    f.input_bytes = add_bytes(executable, executable->inputs, executable->input_count, TSR_PLACE_NOWHERE);
    f.output_bytes = add_bytes(executable, executable->outputs, executable->output_count, TSR_PLACE_NOWHERE);
    f.parameter_bytes = add_bytes(executable, executable->bound, executable->bound_count, TSR_PLACE_BOUND);
    for (size_t i = 0; i < executable->value_count; i++)
        if (executable->values[i].place == TSR_PLACE_CONSTANT)
            f.parameter_bytes += count_bytes(executable, (int)i);
    f.peak_bytes = f.workspace_bytes + f.input_bytes + f.output_bytes + f.parameter_bytes;
    *out = f;
    return TSR_OK;
}
