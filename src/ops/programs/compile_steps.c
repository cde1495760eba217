/* Steps of an executable: kernels, moves, views, and copies into outputs. */
#include "ops/programs/compile_steps.h"

#include "ops/eager/attributes.h"
#include "ops/programs/lengths.h"
#include "ops/programs/plans.h"
#include "ops/rows/lookup.h"

#include <tessera/sys/memory.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Copies a node's attributes, whose texts go with the program. */
static tsr_status copy_attributes(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    const size_t bytes = tsr_attributes_text_bytes(node->attributes);
    void *room;
    size_t count = 0;
    memcpy(step->raw, node->attributes, sizeof step->raw);
    if (bytes) {
        TSR_TRY(tsr_allocate(x->context, bytes, &room));
        step->texts = room;
        tsr_attributes_keep_texts(step->raw, step->texts);
    }
    memcpy(step->c.attributes, step->raw, sizeof step->c.attributes);
    while (step->raw[count].name)
        count++;
    step->key = tsr_program_key_of(step->raw);
    if (step->key >= 0)
        x->keys[step->key].is_used = true;
    step->lengths = tsr_program_resolve(x->length_count, x->length, step->c.attributes, count);
    return TSR_OK;
}

/* Lists a step's values. */
static void list_values(tsr_executable *x, const tsr_program_node *node, int first, tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        const int operand = i ? node->operands[i] : first;
        step->operands[i] = operand;
        step->operand_count = operand >= 0 ? i + 1 : step->operand_count;
        step->layouts[i] = operand >= 0 ? tsr_form_of(x, operand)->layout : NULL;
        step->inputs[i] = operand >= 0 ? x->values[operand].tensor : (tsr_tensor){.ndim = -1};
        if (step->inputs[i].ndim >= 0 && !step->inputs[i].data)
            step->inputs[i].data = x; /* any address, from which views are found before memory is there */
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        step->results[i] = node->results[i];
        step->result_count = node->results[i] >= 0 ? i + 1 : step->result_count;
        step->result_layouts[i] = node->results[i] >= 0 ? tsr_form_of(x, node->results[i])->layout : NULL;
        step->outputs[i] = node->results[i] >= 0 ? x->values[node->results[i]].tensor : (tsr_tensor){.ndim = -1};
    }
}

static tsr_status name_step(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    char text[96];
    const char *const name = node->op ? node->op->name : node->stores ? "store" : "move";
    snprintf(text, sizeof text, "op %d, %.60s", step->node, name);
    TSR_TRY(tsr_program_copy_text(x->context, text, &step->caller));
    step->c.caller = step->caller;
    return TSR_OK;
}

/* Describes the call to the kernel. */
static void describe_call(const tsr_executable *x, tsr_step *step)
{
    const tsr_op *const op = step->c.op;
    int inputs = 0, outputs = 0;
    while (op->operands[inputs])
        inputs++;
    while (op->results[outputs])
        outputs++;
    const tsr_form *const first = tsr_form_of(x, step->results[0]);
    step->call = (tsr_kernel_call){.op = step->caller,
                                   .code = op->code,
                                   .attributes = step->c.attributes,
                                   .kernels = tsr_context_kernels(x->context),
                                   .input_count = inputs,
                                   .output_count = outputs,
                                   .inputs = step->inputs,
                                   .outputs = step->outputs,
                                   .layouts = step->layouts,
                                   .result_layouts = step->result_layouts,
                                   .coordinate = first->coordinate,
                                   .stage = TSR_STAGE_WHOLE};
    step->inside = first->inside;
}

/* The result as a view of the first operand; `*fits` false: no strides say it. */
static tsr_status try_view(const tsr_executable *x, tsr_step *step, tsr_tensor *out, bool *fits)
{
    *fits = false;
    if (!step->c.op->view || !step->inside)
        return TSR_OK;
    *out = step->inputs[0];
    const tsr_tensor *const result = &tsr_form_of(x, step->results[0])->local;
    out->ndim = result->ndim;
    memcpy(out->shape, result->shape, sizeof out->shape);
    *fits = true;
    return step->c.op->view(&step->call, out, fits);
}

/* Finds the place of the mesh on which ranks meet among the executable's. */
static tsr_status find_mesh(tsr_executable *x, tsr_step *step)
{
    void *items = x->meshes;
    const tsr_mesh *const mesh = tsr_layout_mesh(step->result_layouts[0]);
    for (size_t i = 0; i < x->mesh_count; i++) {
        if (tsr_op_are_on_one_mesh(x->meshes[i].given, mesh)) {
            step->mesh = (int)i;
            return TSR_OK;
        }
    }
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->meshes, x->mesh_count, &x->mesh_room, &items));
    x->meshes = items;
    step->mesh = (int)x->mesh_count;
    x->meshes[x->mesh_count++].given = tsr_mesh_retain((tsr_mesh *)mesh);
    return TSR_OK;
}

/* Describes the call that copies inputs[0] to outputs[0], by the kernel of "vary", whose result is
 * its operand. */
static void describe_copy(const tsr_executable *x, tsr_step *step)
{
    step->c.op = tsr_op_lookup(NULL, "vary", 4);
    step->call = (tsr_kernel_call){.op = step->c.op->name,
                                   .code = step->c.op->code,
                                   .attributes = step->c.op->attributes,
                                   .kernels = tsr_context_kernels(x->context),
                                   .input_count = 1,
                                   .output_count = 1,
                                   .inputs = step->inputs,
                                   .outputs = step->outputs,
                                   .stage = TSR_STAGE_WHOLE};
}

/* Makes the step's result lie over its first operand's memory. */
static void make_view(tsr_executable *x, tsr_step *step, const tsr_tensor *result)
{
    tsr_held *const made = &x->values[step->results[0]];
    const tsr_held *const base = &x->values[step->operands[0]];
    step->kind = step->c.op->passes ? TSR_DOES_SAME : TSR_DOES_VIEW;
    made->tensor = *result;
    made->place = step->inside ? TSR_PLACE_VIEW : TSR_PLACE_NOWHERE;
    made->base = base->base;
}

static tsr_status make_kernel(tsr_executable *x, const tsr_program_node *node, bool may_view, tsr_step *step)
{
    bool fits = node->op->passes;
    tsr_tensor view = step->inputs[0];
    step->kind = TSR_DOES_KERNEL;
    step->c.op = node->op;
    step->c.operands = step->layouts;
    step->exchanged = node->exchanged;
    step->is_apart = step->exchanged != 0;
    TSR_TRY(copy_attributes(x, node, step));
    describe_call(x, step);
    if (step->exchanged) {
        TSR_TRY(find_mesh(x, step));
        x->meets = true;
    }
    if (!fits)
        TSR_TRY(try_view(x, step, &view, &fits));
    if (fits && may_view)
        make_view(x, step, &view);
    return TSR_OK;
}

static tsr_status make_move(tsr_executable *x, const tsr_program_node *node, bool may_view, tsr_step *step)
{
    tsr_held *const from = &x->values[step->operands[0]], *const to = &x->values[step->results[0]];
    step->kind = TSR_DOES_MOVE;
    step->chosen = node->chosen;
    step->cause = node->cause;
    step->inside = true;
    TSR_TRY(tsr_executable_add_plan(x, 1, &from->form, &to->form, &step->plan));
    x->meets |= !x->plans[step->plan].local;
    if (!x->plans[step->plan].same || !may_view)
        return TSR_OK;
    step->kind = TSR_DOES_SAME;
    to->place = TSR_PLACE_VIEW;
    to->base = from->base;
    to->tensor = from->tensor;
    return TSR_OK;
}

/* Finds the dim in which a value is shorter than the state, or may be. */
static tsr_status find_dim(const tsr_executable *x, tsr_step *step)
{
    const tsr_form *const state = tsr_form_of(x, step->operands[0]), *const value = tsr_form_of(x, step->operands[1]);
    step->dim = -1;
    for (int dim = 0; dim < tsr_layout_ndim(state->largest); dim++) {
        if (state->base[dim] == value->base[dim] &&
            memcmp(state->factor[dim], value->factor[dim], sizeof state->factor[dim]) == 0)
            continue;
        if (step->dim >= 0 || step->operands[2] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: value must have the state's shape, but for one dim if there is a position",
                                  step->caller);
        step->dim = dim;
    }
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(state->largest)); k++) {
        const tsr_placement *const at = &tsr_layout_placements(state->largest)[k];
        if (at->kind == TSR_SHARD && at->dim == step->dim)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: dim %d, in which the position counts, is cut by mesh dim %d; it must be whole",
                                  step->caller, step->dim, k);
    }
    return TSR_OK;
}

static tsr_status make_store(tsr_executable *x, tsr_step *step)
{
    step->kind = TSR_DOES_STORE;
    step->inside = tsr_form_of(x, step->operands[0])->inside;
    describe_copy(x, step);
    return find_dim(x, step);
}

static tsr_status make_step(tsr_executable *x, const tsr_program_node *node, int index, int first, bool may_view)
{
    tsr_step *const step = &x->steps[x->step_count++];
    step->node = index;
    step->cause = -1;
    step->key = -1;
    step->scratch = -1;
    step->batch = -1;
    step->group = -1;
    list_values(x, node, first, step);
    TSR_TRY(name_step(x, node, step));
    if (node->stores)
        return make_store(x, step);
    return node->op ? make_kernel(x, node, may_view, step) : make_move(x, node, may_view, step);
}

/* Adds a step that copies a value into an output. */
static void add_copy(tsr_executable *x, int value, int output)
{
    tsr_step *const step = &x->steps[x->step_count++];
    for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
        step->operands[j] = -1;
    for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
        step->results[j] = -1;
    step->kind = TSR_DOES_COPY;
    step->node = step->cause = step->key = step->scratch = step->batch = step->group = -1;
    step->inside = true;
    step->operands[0] = value;
    step->operand_count = 1;
    step->results[0] = output;
    describe_copy(x, step);
}

/* Places values in the outputs' memory where a kernel or move makes them, else copies them
 * there. */
static void place_outputs(tsr_executable *x, const bool *made)
{
    for (size_t i = 0; i < x->output_count; i++) {
        tsr_held *const v = &x->values[x->outputs[i]];
        if (!x->forms[v->form].inside)
            continue;
        if (made[x->outputs[i]] && v->place == TSR_PLACE_NOWHERE) {
            v->place = TSR_PLACE_OUTPUT;
            v->index = i;
            continue;
        }
        add_copy(x, x->outputs[i], (int)i);
    }
}

/* Finds the last node that reads each value, or what may be a view of it; `last` has -1 for
 * each. */
static void find_last_reads(const tsr_program *program, int *last)
{
    for (size_t i = 0; i < program->output_count; i++)
        last[program->outputs[i].value] = INT_MAX;
    for (size_t i = program->node_count; i > 0; i--) {
        const tsr_program_node *const node = &program->nodes[i - 1];
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++) {
            if (node->operands[j] == TSR_NONE)
                continue;
            int at = (int)i - 1;
            if (!node->stores && j == 0 && (!node->op || node->op->view || node->op->passes) &&
                last[node->results[0]] > at)
                at = last[node->results[0]];
            last[node->operands[j]] = at > last[node->operands[j]] ? at : last[node->operands[j]];
        }
    }
}

/* The node that stores into a state after it had this value; INT_MAX: none. */
static int find_store(const tsr_program *program, int value)
{
    for (size_t i = 0; program->values[value].kind == TSR_VALUE_STATE && i < program->node_count; i++)
        if (program->nodes[i].stores && program->nodes[i].operands[0] == value)
            return (int)i;
    return INT_MAX;
}

/* True if a node's result may be a view: nothing is stored below it while it is read. */
static bool may_view(const tsr_program *program, const tsr_executable *x, const tsr_program_node *node, int first,
                     const int *last)
{
    return node->stores || first == TSR_NONE || last[node->results[0]] < find_store(program, x->values[first].base);
}

/* Marks inputs that give stores their positions: they lie on the host, whatever the device, because
 * a run reads them. */
static void mark_lent(tsr_executable *x)
{
    for (size_t i = 0; i < x->step_count && x->device.driver; i++) {
        const tsr_step *const step = &x->steps[i];
        if (step->kind != TSR_DOES_STORE || step->dim < 0 || !step->inside)
            continue;
        tsr_held *const position = &x->values[x->values[step->operands[2]].base];
        position->is_lent = position->place == TSR_PLACE_INPUT;
    }
}

static tsr_status make_steps(const tsr_program *program, const bool *needed, const int *operand, const int *last,
                             bool *made, tsr_executable *x)
{
    for (size_t i = 0; i < program->node_count; i++)
        if (needed[i])
            TSR_TRY(make_step(x, &program->nodes[i], (int)i, operand[i],
                              may_view(program, x, &program->nodes[i], operand[i], last)));
    for (size_t i = 0; i < x->step_count; i++)
        for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
            if (x->steps[i].results[j] >= 0 &&
                (x->steps[i].kind == TSR_DOES_KERNEL || x->steps[i].kind == TSR_DOES_MOVE))
                made[x->steps[i].results[j]] = true;
    place_outputs(x, made);
    mark_lent(x);
    return TSR_OK;
}

tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, const int *operand, tsr_executable *x)
{
    void *memory, *made = NULL;
    size_t count = x->output_count;
    for (size_t i = 0; i < program->node_count; i++)
        count += needed[i];
    TSR_TRY(tsr_program_array(x->context, count, sizeof *x->steps, &memory));
    x->steps = memory;
    TSR_TRY(tsr_program_array(x->context, x->value_count, sizeof(int), &memory));
    int *const last = memory;
    for (size_t i = 0; i < x->value_count; i++)
        last[i] = -1;
    find_last_reads(program, last);
    tsr_status status = tsr_program_array(x->context, x->value_count, sizeof(bool), &made);
    if (status == TSR_OK)
        status = make_steps(program, needed, operand, last, made, x);
    tsr_release(x->context, made);
    tsr_release(x->context, memory);
    return status;
}
