/* Steps of an executable: kernels, moves, views, and copies into outputs. */
#include "ops/programs/compile.h"
#include "ops/rows/lookup.h"

#include <tessera/sys/memory.h>

#include <stdio.h>
#include <string.h>

/* Any address, from which views are found before memory is there. */
static char somewhere[TSR_ROOM_ALIGNMENT];

tsr_status tsr_compile_move(const tsr_executable *x, const tsr_layout *from, const tsr_layout *to, tsr_plan **out)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = x->rank;
    return tsr_plan_create(from, to, &options, out);
}

/* Copies a node's attributes, whose texts go with the program. */
static tsr_status copy_attributes(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    size_t bytes = 0;
    void *room;
    memcpy(step->c.attributes, node->attributes, sizeof step->c.attributes);
    for (int i = 0; node->attributes[i].name; i++)
        bytes += node->attributes[i].kind == TSR_ATTRIBUTE_TEXT ? strlen(node->attributes[i].words) + 1 : 0;
    if (!bytes)
        return TSR_OK;
    TSR_TRY(tsr_allocate(x->context, bytes, &room));
    char *text = step->texts = room;
    for (int i = 0; node->attributes[i].name; i++) {
        if (node->attributes[i].kind != TSR_ATTRIBUTE_TEXT)
            continue;
        step->c.attributes[i].words = strcpy(text, node->attributes[i].words);
        text += strlen(text) + 1;
    }
    return TSR_OK;
}

/* Lists a step's values. */
static void list_values(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        step->operands[i] = node->operands[i];
        step->layouts[i] = node->operands[i] >= 0 ? x->values[node->operands[i]].layout : NULL;
        step->inputs[i] = node->operands[i] >= 0 ? x->values[node->operands[i]].tensor : (tsr_tensor){.ndim = -1};
        if (step->inputs[i].ndim >= 0 && !step->inputs[i].data)
            step->inputs[i].data = somewhere;
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        step->results[i] = node->results[i];
        step->result_layouts[i] = node->results[i] >= 0 ? x->values[node->results[i]].layout : NULL;
        step->outputs[i] = node->results[i] >= 0 ? x->values[node->results[i]].tensor : (tsr_tensor){.ndim = -1};
    }
}

static tsr_status name_step(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    char text[96];
    snprintf(text, sizeof text, "op %d, %.60s", step->node, node->op ? node->op->name : "move");
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
    const tsr_held *const first = &x->values[step->results[0]];
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

static bool is_named(const tsr_op *op, const char *name)
{
    return strcmp(op->name, name) == 0;
}

/* Tries to make the result a view of the first operand. */
static tsr_status try_view(tsr_executable *x, tsr_step *step)
{
    tsr_held *const result = &x->values[step->results[0]];
    bool fits = true;
    tsr_tensor out = step->inputs[0];
    if (!step->c.op->view || !step->inside)
        return TSR_OK;
    out.ndim = result->tensor.ndim;
    memcpy(out.shape, result->tensor.shape, sizeof out.shape);
    TSR_TRY(step->c.op->view(&step->call, &out, &fits));
    if (!fits)
        return TSR_OK;
    step->kind = TSR_DOES_VIEW;
    result->tensor = out;
    return TSR_OK;
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

static tsr_status make_kernel(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    step->kind = TSR_DOES_KERNEL;
    step->c.op = node->op;
    step->c.operands = step->layouts;
    step->exchanged = node->exchanged;
    TSR_TRY(copy_attributes(x, node, step));
    describe_call(x, step);
    if (is_named(node->op, "vary"))
        step->kind = TSR_DOES_SAME;
    else
        TSR_TRY(try_view(x, step));
    if (step->exchanged)
        TSR_TRY(find_mesh(x, step));
    x->meets |= step->exchanged != 0;
    tsr_held *const result = &x->values[step->results[0]];
    if (step->kind == TSR_DOES_SAME)
        result->tensor = step->inputs[0];
    if (step->kind == TSR_DOES_KERNEL)
        return TSR_OK;
    result->place = step->inside ? TSR_PLACE_VIEW : TSR_PLACE_NOWHERE;
    result->base = x->values[step->operands[0]].base;
    return TSR_OK;
}

static tsr_status make_move(tsr_executable *x, const tsr_program_node *node, tsr_step *step)
{
    step->kind = TSR_DOES_MOVE;
    step->chosen = node->chosen;
    step->cause = node->cause;
    step->inside = true;
    x->meets = true;
    TSR_TRY(tsr_compile_move(x, step->layouts[0], step->result_layouts[0], &step->plan));
    step->plan_bytes = tsr_plan_workspace_bytes(step->plan);
    return TSR_OK;
}

static tsr_status make_step(tsr_executable *x, const tsr_program_node *node, int index)
{
    tsr_step *const step = &x->steps[x->step_count++];
    step->node = index;
    step->cause = -1;
    step->scratch = -1;
    list_values(x, node, step);
    TSR_TRY(name_step(x, node, step));
    return node->op ? make_kernel(x, node, step) : make_move(x, node, step);
}

/* Adds a step that copies a value into an output, by the kernel of "vary", whose result is its
 * operand. */
static void add_copy(tsr_executable *x, int value, int output)
{
    tsr_step *const step = &x->steps[x->step_count++];
    for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
        step->operands[j] = -1;
    for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
        step->results[j] = -1;
    step->kind = TSR_DOES_COPY;
    step->node = step->cause = step->scratch = -1;
    step->inside = true;
    step->operands[0] = value;
    step->results[0] = output;
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

/* Places values in the outputs' memory where a kernel or move makes them, else copies them there. */
static void place_outputs(tsr_executable *x, const bool *made)
{
    for (size_t i = 0; i < x->output_count; i++) {
        tsr_held *const v = &x->values[x->outputs[i]];
        if (!v->inside)
            continue;
        if (made[x->outputs[i]] && v->place == TSR_PLACE_NOWHERE) {
            v->place = TSR_PLACE_OUTPUT;
            v->index = i;
            continue;
        }
        add_copy(x, x->outputs[i], (int)i);
    }
}

tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, tsr_executable *x)
{
    void *memory;
    size_t count = x->output_count;
    for (size_t i = 0; i < program->node_count; i++)
        count += needed[i];
    TSR_TRY(tsr_executable_array(x->context, count, sizeof *x->steps, &memory));
    x->steps = memory;
    for (size_t i = 0; i < program->node_count; i++)
        if (needed[i])
            TSR_TRY(make_step(x, &program->nodes[i], (int)i));
    TSR_TRY(tsr_executable_array(x->context, x->value_count, sizeof(bool), &memory));
    bool *const made = memory;
    for (size_t i = 0; i < x->step_count; i++)
        for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
            if (x->steps[i].results[j] >= 0 &&
                (x->steps[i].kind == TSR_DOES_KERNEL || x->steps[i].kind == TSR_DOES_MOVE))
                made[x->steps[i].results[j]] = true;
    place_outputs(x, made);
    tsr_release(x->context, made);
    return TSR_OK;
}
