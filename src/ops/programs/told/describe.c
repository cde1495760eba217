/* What an executable does, and what it costs. */
#include "ops/eager/exchange.h"
#include "ops/programs/executable.h"

#include <tessera/cost.h>
#include <tessera/explain.h>

#include <math.h>
#include <string.h>

/* Floating operations a second that are assumed of products where nothing was measured: one core
 * with vectors of 512 bits. */
#define FLOPS_A_SECOND 1e11

size_t tsr_executable_step_count(const tsr_executable *executable)
{
    return executable ? executable->step_count : 0;
}

/* Bytes of a value's shard on this rank. */
static size_t count_bytes(const tsr_executable *x, int value)
{
    return tsr_form_of(x, value)->bytes;
}

/* Elements of a local tensor. */
static int64_t count_elements(const tsr_executable *x, int value)
{
    int64_t count = 1;
    const tsr_tensor *const t = &tsr_form_of(x, value)->local;
    for (int dim = 0; dim < t->ndim; dim++)
        count *= t->shape[dim];
    return t->ndim < 0 ? 0 : count;
}

/* Multiplications and additions of attention: each query meets each key twice, in the gradient five
 * times; masks are not looked at. */
static int64_t count_attention(const tsr_executable *x, const tsr_step *step)
{
    const bool is_gradient = strcmp(step->c.op->name, "attention_gradient") == 0;
    if (!is_gradient && strcmp(step->c.op->name, "attention") != 0)
        return 0;
    const tsr_tensor *const k = &tsr_form_of(x, step->operands[is_gradient ? 2 : 1])->local;
    return (is_gradient ? 10 : 4) * count_elements(x, step->operands[is_gradient ? 1 : 0]) * k->shape[k->ndim - 2];
}

/* Multiplications and additions of a product a..k, k..b: 2 * sqrt(|a| |b| |out|) for one contracted
 * group of dims; exact where each dim is in two of the three. */
static int64_t count_flops(const tsr_executable *x, const tsr_step *step)
{
    static const char *const products[] = {"linear",
                                           "matmul",
                                           "einsum",
                                           "linear_gradient_x",
                                           "linear_gradient_w",
                                           "matmul_gradient_a",
                                           "matmul_gradient_b",
                                           "linear_q8"};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (strcmp(step->c.op->name, products[i]) != 0 || step->operands[1] < 0)
            continue;
        const double a = (double)count_elements(x, step->operands[0]), b = (double)count_elements(x, step->operands[1]);
        const double out = (double)count_elements(x, step->results[0]);
        return (int64_t)(2 * sqrt(a * b * out) + 0.5);
    }
    return count_attention(x, step);
}

static tsr_status describe_kernel(const tsr_executable *x, const tsr_step *step, const tsr_cost_profile *cost,
                                  tsr_executable_step *out)
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
        out->bytes_touched += step->operands[i] >= 0 ? (int64_t)count_bytes(x, step->operands[i]) : 0;
    for (int i = 0; i < out->result_count; i++)
        out->bytes_touched += (int64_t)count_bytes(x, step->results[i]);
    out->flops = count_flops(x, step);
    const double memory = (double)out->bytes_touched / cost->inside.bandwidth,
                 work = (double)out->flops / FLOPS_A_SECOND;
    out->seconds = memory > work ? memory : work;
    if (step->exchanged) {
        out->bytes_received = tsr_exchange_received(&step->c, step->exchanged, &call);
        out->seconds +=
            cost->inside.latency * step->c.op->exchanges + (double)out->bytes_received / cost->inside.bandwidth;
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
    TSR_TRY(tsr_plan_visit_receives(plan, add_transfer, &of));
    out->op = "move";
    out->operand_count = out->result_count = 1;
    out->bytes_received = of.bytes;
    out->bytes_touched = (int64_t)(count_bytes(x, step->operands[0]) + count_bytes(x, step->results[0]));
    out->seconds = step->place == 0 ? figures.seconds : 0;
    out->shares = step->place > 0;
    if (step->chosen)
        out->cause = find_cause(x, step->cause);
    return TSR_OK;
}

static tsr_status describe_copy(const tsr_executable *x, const tsr_step *step, const tsr_cost_profile *cost,
                                tsr_executable_step *out)
{
    out->op = "copy";
    out->operand_count = 1;
    out->bytes_touched = 2 * (int64_t)count_bytes(x, step->operands[0]);
    out->seconds = (double)out->bytes_touched / cost->inside.bandwidth;
    return TSR_OK;
}

static tsr_status describe_store(const tsr_executable *x, const tsr_step *step, const tsr_cost_profile *cost,
                                 tsr_executable_step *out)
{
    out->op = "store";
    out->operand_count = 3;
    out->bytes_touched = 2 * (int64_t)count_bytes(x, step->operands[1]);
    out->seconds = (double)out->bytes_touched / cost->inside.bandwidth;
    return TSR_OK;
}

tsr_status tsr_executable_step_at(const tsr_executable *executable, size_t index, tsr_executable_step *out)
{
    if (!executable || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_step_at: %s is NULL",
                              executable ? "out" : "executable");
    if (index >= executable->step_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_step_at: index is %zu, but there are %zu steps",
                              index, executable->step_count);
    const tsr_step *const step = &executable->steps[index];
    const tsr_cost_profile cost = tsr_cost_default();
    memset(out, 0, sizeof *out);
    out->first = (size_t)step->first;
    out->last = (size_t)step->last;
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
        return describe_store(executable, step, &cost, out);
    if (step->kind == TSR_DOES_COPY)
        return describe_copy(executable, step, &cost, out);
    return describe_kernel(executable, step, &cost, out);
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
