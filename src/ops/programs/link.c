/* Writes the addresses of a run's memory into the steps of an executable. */
#include "ops/programs/link.h"

#include "ops/eager/exchange.h"
#include "ops/programs/lengths.h"
#include "ops/programs/rooms.h"
#include "ops/programs/tiles.h"

#include <string.h>

/* A step's call. While nothing runs, memory stands in for several tensors at once, so results have
 * no address: they overlap no operand. */
static tsr_kernel_call call_of(const tsr_executable *x, const tsr_step *step, tsr_tensor outputs[TSR_OP_MOST_RESULTS])
{
    tsr_kernel_call call = step->call;
    if (!x->stands_in)
        return call;
    memcpy(outputs, step->outputs, sizeof step->outputs);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        outputs[i].data = NULL;
    call.outputs = outputs;
    return call;
}

tsr_status tsr_executable_find_way(const tsr_executable *x, tsr_step *step, size_t *bytes)
{
    tsr_tensor outputs[TSR_OP_MOST_RESULTS];
    tsr_launch launch;
    const tsr_kernel_call own = call_of(x, step, outputs), call = tsr_step_as_launched(step, &own);
    *bytes = 0;
    if (step->exchanged)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: a factor of the rule \"%s\" is cut, so ranks must exchange inside the op, which runs "
            "on the host alone; on device \"%s\" redistribute the operand so that this factor is whole",
            step->caller, step->c.op->rule, tsr_launch_name(x->device));
    TSR_TRY(tsr_launch_find(step->caller, step->c.op, x->device, &call, &launch));
    step->way = launch.way;
    *bytes = (size_t)launch.bytes;
    return TSR_OK;
}

tsr_status tsr_executable_find_scratch(const tsr_executable *x, tsr_step *step, size_t *bytes)
{
    tsr_tensor outputs[TSR_OP_MOST_RESULTS];
    if (!x->device.driver) {
        tsr_kernel_call call = call_of(x, step, outputs);
        *bytes = tsr_exchange_scratch(&step->c, step->exchanged, &call);
        return TSR_OK;
    }
    const tsr_status status = tsr_executable_find_way(x, step, bytes);
    return status == TSR_ERROR_UNSUPPORTED && x->stands_in ? TSR_OK : status;
}

/* The memory of a value that is no view. */
static void find_memory(tsr_executable *x, tsr_held *v, const tsr_tensor *inputs, const tsr_tensor *outputs,
                        void *workspace)
{
    switch (v->place) {
    case TSR_PLACE_INPUT:
        v->tensor = inputs[v->index];
        break;
    case TSR_PLACE_OUTPUT:
        v->tensor = outputs[v->index];
        break;
    case TSR_PLACE_BOUND:
    case TSR_PLACE_STATE:
        if (x->tensors[v->index])
            v->tensor = tsr_dtensor_to_local(x->tensors[v->index]);
        break;
    case TSR_PLACE_CONSTANT:
        v->tensor = x->forms[v->form].local;
        v->tensor.data = x->device.driver ? v->on_device.data : v->constant;
        v->tensor.device = x->device;
        break;
    case TSR_PLACE_WORKSPACE:
        v->tensor = x->forms[v->form].local;
        v->tensor.data = (char *)workspace + x->rooms[v->room].offset;
        v->tensor.device = x->device;
        break;
    case TSR_PLACE_TILE:
        v->tensor = x->forms[v->form].local;
        v->tensor.data = (char *)workspace + x->rooms[v->room].offset + v->index;
        break;
    case TSR_PLACE_UNREAD:
        /* Of one element, so that an op that reads it all the same reads nothing else. */
        v->tensor = x->forms[v->form].local;
        /* An address of no other value: kernels compare those of operands and results. */
        v->tensor.data = x->unread.data ? x->unread.data : x;
        v->tensor.device = x->device;
        memset(v->tensor.strides, 0, sizeof v->tensor.strides);
        break;
    default:
        break;
    }
}

/* Finds the strides of a view. */
static tsr_status link_view(const tsr_executable *x, const tsr_step *step, tsr_held *result)
{
    bool fits = true;
    tsr_tensor out = step->inputs[0];
    const tsr_tensor *const local = &x->forms[result->form].local;
    out.ndim = local->ndim;
    memcpy(out.shape, local->shape, sizeof out.shape);
    TSR_TRY(step->c.op->view(&step->call, &out, &fits));
    if (!fits)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: no strides over the operand's memory say the result; give the tensor from which it "
                              "comes in contiguous memory",
                              step->caller);
    result->tensor = out;
    return TSR_OK;
}

/* Puts the lengths and the key of now into a step's attributes. */
static void resolve(const tsr_executable *x, tsr_step *step)
{
    size_t count = 0;
    for (; step->raw[count].name; count++)
        step->c.attributes[count] = step->raw[count];
    if (step->key >= 0)
        tsr_program_resolve_key(x->keys[step->key].key, step->c.attributes);
    tsr_program_resolve(x->length_count, x->length, step->c.attributes, count);
}

static tsr_status link_step(tsr_executable *x, tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        if (step->operands[i] < 0)
            continue;
        step->inputs[i] = x->values[step->operands[i]].tensor;
        step->layouts[i] = tsr_form_of(x, step->operands[i])->layout;
    }
    if (step->lengths || step->key >= 0)
        resolve(x, step);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        if (step->results[i] >= 0)
            step->result_layouts[i] = tsr_form_of(x, step->results[i])->layout;
    if (step->kind == TSR_DOES_VIEW)
        TSR_TRY(link_view(x, step, &x->values[step->results[0]]));
    if (step->kind == TSR_DOES_SAME)
        x->values[step->results[0]].tensor = step->inputs[0];
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        if (step->results[i] >= 0)
            step->outputs[i] = x->values[step->results[i]].tensor;
    if (step->batch >= 0) {
        x->batches[step->batch].inputs[step->place] = step->inputs[0];
        x->batches[step->batch].outputs[step->place] = step->outputs[0];
    }
    return TSR_OK;
}

/* Makes a position that lies over a constant's memory on the device lie over that on the host. */
static void read_on_host(const tsr_executable *x, int position, tsr_tensor *at)
{
    const tsr_held *const base = &x->values[x->values[position].base];
    if (base->on_device.data && at->data)
        at->data = (char *)base->constant + ((char *)at->data - (char *)base->on_device.data);
}

/* A store copies its value to its place in the state, which a run finds. */
static void link_store(tsr_executable *x, tsr_step *step)
{
    step->inputs[0] = x->values[step->operands[1]].tensor;
    step->outputs[0] = x->values[step->operands[0]].tensor;
    if (step->operands[2] >= 0) {
        step->inputs[1] = x->values[step->operands[2]].tensor;
        read_on_host(x, step->operands[2], &step->inputs[1]);
    }
    if (step->dim < 0)
        return;
    step->state_size = step->outputs[0].shape[step->dim];
    step->outputs[0].shape[step->dim] = step->inputs[0].shape[step->dim];
}

/* What memory, sizes and attributes follow from, by bits: lengths (as in tsr_step.lengths), then
 * keys, inputs and outputs; the last bit stands for all those beyond it. */
#define SOURCES 32

static uint32_t bit_of(size_t source)
{
    return UINT32_C(1) << (source < SOURCES ? source : SOURCES - 1);
}

static uint32_t key_bit(size_t key)
{
    return bit_of(TSR_LENGTHS + key);
}

static uint32_t input_bit(const tsr_executable *x, size_t input)
{
    return bit_of(TSR_LENGTHS + x->key_count + input);
}

static uint32_t output_bit(const tsr_executable *x, size_t output)
{
    return input_bit(x, x->input_count + output);
}

/* The sources of a value's sizes, and of its memory where that is an input's or output's. */
static uint32_t find_sources(const tsr_executable *x, const tsr_held *v)
{
    uint32_t found = v->form >= 0 ? x->forms[v->form].lengths : 0;
    if (v->place == TSR_PLACE_INPUT)
        found |= input_bit(x, v->index);
    if (v->place == TSR_PLACE_OUTPUT)
        found |= output_bit(x, v->index);
    return found;
}

/* The sources of a step's tensors and attributes. Its results may lie over its operands. */
static uint32_t find_step_sources(tsr_executable *x, const tsr_step *step)
{
    uint32_t found = step->lengths | (step->key >= 0 ? key_bit((size_t)step->key) : 0);
    for (int i = 0; i < step->operand_count; i++)
        found |= step->operands[i] >= 0 ? x->sources[step->operands[i]] : 0;
    if (step->kind == TSR_DOES_COPY)
        return found | output_bit(x, (size_t)step->results[0]);
    if (step->kind == TSR_DOES_VIEW || step->kind == TSR_DOES_SAME)
        x->sources[step->results[0]] |= found;
    for (int i = 0; i < step->result_count; i++)
        found |= x->sources[step->results[i]];
    return found;
}

void tsr_executable_find_sources(tsr_executable *x)
{
    for (size_t i = 0; i < x->value_count; i++)
        x->sources[i] = find_sources(x, &x->values[i]);
    for (size_t i = 0; i < x->step_count; i++)
        x->steps[i].sources = find_step_sources(x, &x->steps[i]);
}

/* The sources that are not those of the last link; all bits where that was over other memory. */
static uint32_t find_changed(const tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs,
                             const void *workspace)
{
    uint32_t changed = 0;
    if (!x->is_linked || x->linked_workspace != workspace)
        return UINT32_MAX;
    for (size_t i = 0; i < x->length_count; i++)
        changed |= x->changed[i] > x->linked_clock ? bit_of(i) : 0;
    for (size_t i = 0; i < x->key_count; i++)
        changed |= x->keys[i].changed > x->linked_clock ? key_bit(i) : 0;
    for (size_t i = 0; i < x->input_count; i++)
        changed |= memcmp(&x->linked[i], &inputs[i], sizeof *inputs) != 0 ? input_bit(x, i) : 0;
    for (size_t i = 0; i < x->output_count; i++)
        changed |= memcmp(&x->linked[x->input_count + i], &outputs[i], sizeof *outputs) != 0 ? output_bit(x, i) : 0;
    return changed;
}

/* Raises a kernel's room to what it wants: more, where strides are not those that compiling
 * assumed. */
static tsr_status raise_scratch(tsr_executable *x, tsr_step *step, int at)
{
    size_t bytes;
    if (step->kind != TSR_DOES_KERNEL || !step->inside)
        return TSR_OK;
    if (!x->device.driver && !step->c.op->workspace_bytes && !step->exchanged)
        return TSR_OK;
    TSR_TRY(tsr_executable_find_scratch(x, step, &bytes));
    if (bytes == 0)
        step->call.workspace = NULL; /* the room may be too small for these sizes */
    if (bytes == 0 || (step->scratch >= 0 && bytes <= x->rooms[step->scratch].bytes))
        return TSR_OK;
    x->has_grown = true;
    if (step->scratch < 0)
        return tsr_executable_add_room(x, bytes, at, at, &step->scratch);
    tsr_executable_resize_room(x, step->scratch, bytes);
    return TSR_OK;
}

static tsr_status link_any(tsr_executable *x, tsr_step *step, const tsr_tensor *outputs, void *workspace)
{
    if (step->kind == TSR_DOES_COPY) {
        step->inputs[0] = x->values[step->operands[0]].tensor;
        step->outputs[0] = outputs[step->results[0]];
    } else if (step->kind == TSR_DOES_STORE && step->inside)
        link_store(x, step);
    else if (step->inside)
        TSR_TRY(link_step(x, step));
    step->call.workspace = step->scratch >= 0 ? (char *)workspace + x->rooms[step->scratch].offset : NULL;
    if (step->group >= 0)
        x->groups[step->group].dirty = true;
    return TSR_OK;
}

tsr_status tsr_executable_link(tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs, void *workspace)
{
    const uint32_t changed = find_changed(x, inputs, outputs, workspace);
    const bool all = changed == UINT32_MAX;
    x->is_linked = false;
    for (size_t i = 0; i < x->value_count; i++)
        if (all || x->sources[i] & changed)
            find_memory(x, &x->values[i], inputs, outputs, workspace);
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step *const step = &x->steps[i];
        if (!all && !(step->sources & changed))
            continue;
        TSR_TRY(link_any(x, step, outputs, workspace));
        TSR_TRY(raise_scratch(x, step, (int)i));
    }
    for (size_t i = 0; i < x->group_count; i++)
        if (x->groups[i].dirty)
            tsr_group_link(x, &x->groups[i]);
    if (x->input_count)
        memcpy(x->linked, inputs, x->input_count * sizeof *inputs);
    if (x->output_count)
        memcpy(x->linked + x->input_count, outputs, x->output_count * sizeof *outputs);
    x->linked_workspace = workspace;
    x->linked_clock = x->clock;
    x->is_linked = true;
    return TSR_OK;
}
