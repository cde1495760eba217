/* Values of an executable, and where those lie that no step makes. */
#include "ops/programs/compile_values.h"

#include "ops/programs/forms.h"
#include "ops/programs/shapes.h"
#include "ops/rows/lookup.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* Fills a constant's memory: the op "cast" of one f64 that is repeated by strides of 0. */
static tsr_status make_constant(tsr_executable *x, double value, tsr_held *v)
{
    const tsr_form *const form = &x->forms[v->form];
    tsr_tensor source = form->local, made = form->local;
    const tsr_op *const cast = tsr_op_lookup(NULL, "cast", 4);
    const tsr_attribute attributes[] = {tsr_attribute_dtype("dtype", made.dtype), {.name = NULL}};
    v->place = TSR_PLACE_CONSTANT;
    TSR_TRY(tsr_allocate(x->context, form->bytes, &v->constant));
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
                                  .coordinate = form->coordinate,
                                  .stage = TSR_STAGE_WHOLE};
    return cast->host(&call);
}

/* Puts a value that no step makes where it lies. */
static tsr_status place_source(tsr_executable *x, const tsr_program_value *from, tsr_held *v)
{
    if (!x->forms[v->form].inside)
        return TSR_OK;
    if (from->kind == TSR_VALUE_CONSTANT)
        return make_constant(x, from->constant, v);
    v->place = from->kind == TSR_VALUE_LIKE ? TSR_PLACE_UNREAD : TSR_PLACE_NOWHERE;
    return TSR_OK;
}

static bool is_input(const tsr_program_value *v)
{
    return v->kind == TSR_VALUE_INPUT;
}

/* True of parameters, and of states as runs find them. */
static bool is_bound(const tsr_program_value *v)
{
    return v->kind == TSR_VALUE_PARAMETER || (v->kind == TSR_VALUE_STATE && v->node < 0);
}

/* Lists the values of a kind, in the order of recording. */
static tsr_status list_kind(tsr_executable *x, const tsr_program *program, bool (*is_kind)(const tsr_program_value *v),
                            int **list, char ***names, size_t *count)
{
    void *memory;
    size_t found = 0;
    for (size_t i = 0; i < program->value_count; i++)
        found += is_kind(&program->values[i]);
    TSR_TRY(tsr_program_array(x->context, found, sizeof **list, &memory));
    *list = memory;
    TSR_TRY(tsr_program_array(x->context, found, sizeof **names, &memory));
    *names = memory;
    for (size_t i = 0; i < program->value_count; i++) {
        if (!is_kind(&program->values[i]))
            continue;
        TSR_TRY(tsr_program_copy_text(x->context, program->values[i].name, &(*names)[*count]));
        (*list)[(*count)++] = (int)i;
    }
    return TSR_OK;
}

static tsr_status list_outputs(tsr_executable *x, const tsr_program *program)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, program->output_count, sizeof *x->outputs, &memory));
    x->outputs = memory;
    TSR_TRY(tsr_program_array(x->context, program->output_count, sizeof *x->output_names, &memory));
    x->output_names = memory;
    for (size_t i = 0; i < program->output_count; i++) {
        TSR_TRY(tsr_program_copy_text(x->context, program->outputs[i].name, &x->output_names[i]));
        x->outputs[x->output_count++] = program->outputs[i].value;
    }
    return TSR_OK;
}

/* Marks the values that needed nodes and outputs have. */
static void mark_values(const tsr_program *program, const bool *needed, const int *operand, bool *used)
{
    for (size_t i = 0; i < program->node_count; i++) {
        if (needed[i] && operand[i] != TSR_NONE)
            used[operand[i]] = true;
        for (int j = 1; needed[i] && j < TSR_OP_MOST_OPERANDS; j++)
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
        if (used[list[i]] && x->forms[v->form].inside)
            v->place = place;
    }
}

static tsr_status hold_values(const tsr_program *program, const bool *used, const tsr_factors *factors,
                              tsr_executable *x)
{
    for (size_t i = 0; i < program->value_count; i++) {
        tsr_held *const v = &x->values[i];
        const tsr_program_value *const from = &program->values[i];
        v->form = v->room = -1;
        v->base = (int)i;
        v->is_state = from->kind == TSR_VALUE_STATE;
        v->is_used = used[i];
        if (!used[i] && !is_input(from) && !is_bound(from))
            continue;
        TSR_TRY(tsr_executable_add_form(x, from->layout, factors[i].of, &v->form));
        v->tensor = x->forms[v->form].local;
        TSR_TRY(place_source(x, from, v));
    }
    return TSR_OK;
}

/* A state that a store leaves lies where the state does. */
static void place_stored(const tsr_program *program, tsr_executable *x)
{
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_program_value *const from = &program->values[i];
        if (from->kind != TSR_VALUE_STATE || from->node < 0 || x->values[i].form < 0)
            continue;
        x->values[i].place = x->values[from->first].place;
        x->values[i].index = x->values[from->first].index;
    }
}

/* The values that may have a role while roles are found. */
typedef struct roles {
    const tsr_program *program;
    tsr_held *values;
    bool *read;      /* by value: by what the loss, or another output, depends on */
    bool has_losses; /* gradients were recorded */
} roles;

/* The constant from which a backward begins. */
static bool is_seed(const tsr_program_value *v)
{
    return v->kind == TSR_VALUE_CONSTANT && v->like != TSR_NONE;
}

/* Finds the roles of results from those of operands. */
static void pass_roles(const roles *r)
{
    for (size_t i = 0; i < r->program->node_count; i++) {
        const tsr_program_node *const node = &r->program->nodes[i];
        tsr_role role = TSR_ROLE_PARAMETER;
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
            if (node->operands[j] != TSR_NONE && r->values[node->operands[j]].role > role)
                role = r->values[node->operands[j]].role;
        for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
            if (node->results[j] != TSR_NONE)
                r->values[node->results[j]].role = role > TSR_ROLE_GRADIENT ? TSR_ROLE_GRADIENT : role;
    }
}

/* Marks what the loss and outputs depend on. */
static void mark_read(const roles *r)
{
    for (size_t i = 0; i < r->program->output_count; i++)
        r->read[r->program->outputs[i].value] |= r->values[r->program->outputs[i].value].role < TSR_ROLE_GRADIENT;
    for (size_t i = 0; i < r->program->value_count; i++)
        if (is_seed(&r->program->values[i]))
            r->read[r->program->values[i].like] = true;
    for (size_t i = r->program->node_count; i > 0; i--) {
        const tsr_program_node *const node = &r->program->nodes[i - 1];
        bool read = false;
        for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
            read |= node->results[j] != TSR_NONE && r->read[node->results[j]];
        for (int j = 0; read && j < TSR_OP_MOST_OPERANDS; j++)
            if (node->operands[j] != TSR_NONE)
                r->read[node->operands[j]] = true;
    }
}

/* Finds the roles of values; states that the loss does not depend on are an optimizer's. */
static tsr_status find_roles(const tsr_program *program, tsr_executable *x)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, program->value_count, sizeof(bool), &memory));
    roles r = {.program = program, .values = x->values, .read = memory};
    for (size_t i = 0; i < program->value_count; i++) {
        r.has_losses |= is_seed(&program->values[i]);
        x->values[i].role = is_seed(&program->values[i])    ? TSR_ROLE_GRADIENT
                            : is_input(&program->values[i]) ? TSR_ROLE_ACTIVATION
                                                            : TSR_ROLE_PARAMETER;
    }
    pass_roles(&r);
    mark_read(&r);
    for (size_t i = 0; i < x->bound_count && r.has_losses; i++)
        if (x->values[x->bound[i]].is_state && !r.read[x->bound[i]])
            x->values[x->bound[i]].role = TSR_ROLE_OPTIMIZER;
    pass_roles(&r);
    tsr_release(x->context, memory);
    return TSR_OK;
}

tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, const int *operand,
                              const tsr_factors *factors, tsr_executable *x)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, program->value_count, sizeof *x->values, &memory));
    x->values = memory;
    x->value_count = program->value_count;
    TSR_TRY(tsr_program_array(x->context, program->value_count, sizeof *x->sources, &memory));
    x->sources = memory;
    TSR_TRY(list_kind(x, program, is_input, &x->inputs, &x->input_names, &x->input_count));
    TSR_TRY(list_kind(x, program, is_bound, &x->bound, &x->bound_names, &x->bound_count));
    TSR_TRY(list_outputs(x, program));
    TSR_TRY(tsr_program_array(x->context, x->bound_count, sizeof(tsr_dtensor *), &memory));
    x->tensors = memory;
    TSR_TRY(tsr_program_array(x->context, x->input_count + x->output_count, sizeof(tsr_tensor), &memory));
    x->linked = memory;
    TSR_TRY(tsr_program_array(x->context, program->value_count, sizeof(bool), &memory));
    bool *const used = memory;
    mark_values(program, needed, operand, used);
    const tsr_status status = hold_values(program, used, factors, x);
    if (status == TSR_OK) {
        place_given(x, used, x->inputs, x->input_count, TSR_PLACE_INPUT);
        place_given(x, used, x->bound, x->bound_count, TSR_PLACE_BOUND);
        place_stored(program, x);
    }
    tsr_release(x->context, used);
    return status == TSR_OK ? find_roles(program, x) : status;
}
