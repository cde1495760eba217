/* Values of an executable, and where those lie that no step makes. */
#include "ops/programs/compile.h"
#include "ops/rows/lookup.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The local tensor of a layout, contiguous, without memory. */
static tsr_status describe(const tsr_held *v, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(v->layout, v->coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(v->layout), tsr_layout_ndim(v->layout), shape);
    return TSR_OK;
}

static tsr_status hold_value(tsr_executable *x, const tsr_program_value *from, tsr_held *v)
{
    int inside;
    v->layout = tsr_layout_retain(from->layout);
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(v->layout), x->rank, v->coordinate, &inside));
    v->inside = inside;
    if (inside)
        return describe(v, &v->tensor);
    v->tensor = (tsr_tensor){.ndim = -1};
    return TSR_OK;
}

/* Fills a constant's memory: the op "cast" of one f64 that is repeated by strides of 0. */
static tsr_status make_constant(tsr_executable *x, double value, tsr_held *v)
{
    size_t bytes;
    tsr_tensor source = v->tensor, made = v->tensor;
    const tsr_op *const cast = tsr_op_lookup(NULL, "cast", 4);
    const tsr_attribute attributes[] = {tsr_attribute_dtype("dtype", made.dtype), {.name = NULL}};
    v->place = TSR_PLACE_CONSTANT;
    TSR_TRY(tsr_layout_local_bytes(v->layout, v->coordinate, &bytes));
    TSR_TRY(tsr_allocate(x->context, bytes, &v->constant));
    made.data = v->constant;
    source.dtype = TSR_F64;
    source.data = &value;
    memset(source.strides, 0, sizeof source.strides);
    const tsr_kernel_call call = {.op = cast->name,
                                  .code = cast->code,
                                  .attributes = attributes,
                                  .kernels = tsr_context_kernels(x->context),
                                  .input_count = 1,
                                  .output_count = 1,
                                  .inputs = &source,
                                  .outputs = &made,
                                  .coordinate = v->coordinate,
                                  .stage = TSR_STAGE_WHOLE};
    return cast->host(&call);
}

/* Puts a value that no step makes where it lies. */
static tsr_status place_source(tsr_executable *x, const tsr_program_value *from, tsr_held *v)
{
    if (!v->inside)
        return TSR_OK;
    if (from->kind == TSR_VALUE_CONSTANT)
        return make_constant(x, from->constant, v);
    v->place = from->kind == TSR_VALUE_LIKE ? TSR_PLACE_UNREAD : TSR_PLACE_NOWHERE;
    return TSR_OK;
}

/* Lists the values of a kind, in the order of recording. */
static tsr_status list_kind(tsr_executable *x, const tsr_program *program, tsr_value_kind kind, int **list,
                            char ***names, size_t *count)
{
    void *memory;
    size_t found = 0;
    for (size_t i = 0; i < program->value_count; i++)
        found += program->values[i].kind == kind;
    TSR_TRY(tsr_executable_array(x->context, found, sizeof **list, &memory));
    *list = memory;
    TSR_TRY(tsr_executable_array(x->context, found, sizeof **names, &memory));
    *names = memory;
    for (size_t i = 0; i < program->value_count; i++) {
        if (program->values[i].kind != kind)
            continue;
        TSR_TRY(tsr_program_copy_text(x->context, program->values[i].name, &(*names)[*count]));
        (*list)[(*count)++] = (int)i;
    }
    return TSR_OK;
}

static tsr_status list_outputs(tsr_executable *x, const tsr_program *program)
{
    void *memory;
    TSR_TRY(tsr_executable_array(x->context, program->output_count, sizeof *x->outputs, &memory));
    x->outputs = memory;
    TSR_TRY(tsr_executable_array(x->context, program->output_count, sizeof *x->output_names, &memory));
    x->output_names = memory;
    for (size_t i = 0; i < program->output_count; i++) {
        TSR_TRY(tsr_program_copy_text(x->context, program->outputs[i].name, &x->output_names[i]));
        x->outputs[x->output_count++] = program->outputs[i].value;
    }
    return TSR_OK;
}

/* Marks the values that needed nodes and outputs have. */
static void mark_values(const tsr_program *program, const bool *needed, bool *used)
{
    for (size_t i = 0; i < program->node_count; i++) {
        for (int j = 0; needed[i] && j < TSR_OP_MOST_OPERANDS; j++)
            if (program->nodes[i].operands[j] != TSR_NONE)
                used[program->nodes[i].operands[j]] = true;
        for (int j = 0; needed[i] && j < TSR_OP_MOST_RESULTS; j++)
            if (program->nodes[i].results[j] != TSR_NONE)
                used[program->nodes[i].results[j]] = true;
    }
    for (size_t i = 0; i < program->output_count; i++)
        used[program->outputs[i].value] = true;
}

/* The places of inputs and parameters that are used. */
static void place_given(tsr_executable *x, const bool *used, const int *list, size_t count, tsr_place place)
{
    for (size_t i = 0; i < count; i++) {
        tsr_held *const v = &x->values[list[i]];
        v->index = i;
        if (used[list[i]] && v->inside)
            v->place = place;
    }
}

static tsr_status hold_values(const tsr_program *program, const bool *used, tsr_executable *x)
{
    for (size_t i = 0; i < program->value_count; i++) {
        tsr_held *const v = &x->values[i];
        v->room = -1;
        v->base = (int)i;
        const bool is_given =
            program->values[i].kind == TSR_VALUE_INPUT || program->values[i].kind == TSR_VALUE_PARAMETER;
        if (!used[i] && !is_given)
            continue;
        TSR_TRY(hold_value(x, &program->values[i], v));
        TSR_TRY(place_source(x, &program->values[i], v));
    }
    return TSR_OK;
}

tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, tsr_executable *x)
{
    void *memory;
    TSR_TRY(tsr_executable_array(x->context, program->value_count, sizeof *x->values, &memory));
    x->values = memory;
    x->value_count = program->value_count;
    TSR_TRY(list_kind(x, program, TSR_VALUE_INPUT, &x->inputs, &x->input_names, &x->input_count));
    TSR_TRY(list_kind(x, program, TSR_VALUE_PARAMETER, &x->bound, &x->bound_names, &x->bound_count));
    TSR_TRY(list_outputs(x, program));
    TSR_TRY(tsr_executable_array(x->context, x->bound_count, sizeof(tsr_dtensor *), &memory));
    x->tensors = memory;
    TSR_TRY(tsr_executable_array(x->context, x->input_count + x->output_count, sizeof(tsr_tensor), &memory));
    x->linked = memory;
    TSR_TRY(tsr_executable_array(x->context, program->value_count, sizeof(bool), &memory));
    bool *const used = memory;
    mark_values(program, needed, used);
    const tsr_status status = hold_values(program, used, x);
    place_given(x, used, x->inputs, x->input_count, TSR_PLACE_INPUT);
    place_given(x, used, x->bound, x->bound_count, TSR_PLACE_BOUND);
    tsr_release(x->context, used);
    return status;
}
