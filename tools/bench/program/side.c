#include "bench/program/side.h"

#include "bench/check/elements.h"
#include "place/move.h"
#include "place/wholes.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a result, relative to the largest of 1 and its size. Sums of f32 over at most 2^14 terms of
 * random signs, a dozen one after the other, round by less than 2^-24 * 2^7 * 12; whatever lies in
 * a wrong place is off by about 1. */
#define TOLERANCE 0x1p-12

/* What a tensor of a program is filled with. */
typedef struct filling {
    const model_sizes *sizes;
    int given; /* which one it is */
} filling;

static double value_at(const void *arg, int64_t index)
{
    const filling *const f = arg;
    return model_value(f->sizes, f->given, index);
}

static double index_itself(const void *arg, int64_t index)
{
    (void)arg;
    return (double)index;
}

static tsr_status fill(const program_side *s, const tsr_dtensor *x, int given)
{
    const bool is_index = tsr_layout_dtype(tsr_dtensor_layout(x)) == TSR_I64;
    return elements_fill(x, is_index ? index_itself : value_at, &(filling){&s->c->sizes, given});
}

static tsr_status compile(program_side *s)
{
    TSR_TRY(tsr_program_create(tsr_mesh_context(s->mesh), &s->program));
    s->m = (model){.program = s->program, .mesh = s->mesh, .sizes = s->c->sizes};
    const double begin = clock_seconds();
    s->c->record(&s->m);
    TSR_TRY(tsr_compile(s->program, NULL, &s->x));
    s->compile_seconds = clock_seconds() - begin;
    return TSR_OK;
}

static bool is_input(int given)
{
    return given == MODEL_X || given == MODEL_POSITIONS;
}

/* Makes what the program takes, and gives it. */
static tsr_status give(program_side *s)
{
    size_t input = 0;
    for (int i = 0; i < MODEL_GIVEN; i++) {
        const tsr_value value = s->m.given[i];
        if (value == TSR_NONE)
            continue;
        TSR_TRY(tsr_dtensor_create(tsr_value_layout(s->program, value), tsr_device_host(), &s->given[i]));
        TSR_TRY(fill(s, s->given[i], i));
        if (is_input(i))
            s->inputs[input++] = tsr_dtensor_to_local(s->given[i]);
        else
            TSR_TRY(tsr_executable_bind(s->x, tsr_value_name(s->program, value), s->given[i]));
    }
    return TSR_OK;
}

static tsr_status make_program(program_side *s)
{
    TSR_TRY(compile(s));
    TSR_TRY(give(s));
    TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(s->x, 0), tsr_device_host(), &s->y));
    s->output = tsr_dtensor_to_local(s->y);
    TSR_TRY(tsr_executable_prepare(s->x, s->comm));
    return tsr_allocate_data(tsr_mesh_context(s->mesh), tsr_executable_workspace_bytes(s->x), &s->workspace);
}

/* Which of the values that are given it is; MODEL_X for others. */
static int find_given(const program_side *s, tsr_value value)
{
    int given = 0;
    while (given < MODEL_GIVEN && s->m.given[given] != value)
        given++;
    return given == MODEL_GIVEN ? MODEL_X : given;
}

/* A tensor of a value's local shape, on this rank alone. Its values are of the size of the value's:
 * others might be so small that processors are slow. */
static tsr_status make_local(program_side *s, tsr_value value)
{
    int64_t shape[TSR_MAX_DIMS];
    const tsr_placement whole[] = {tsr_replicate()};
    tsr_layout *layout;
    const tsr_layout *const like = tsr_value_layout(s->program, value);
    TSR_TRY(tsr_layout_local(like, NULL, shape, NULL));
    TSR_TRY(tsr_layout_create(s->alone, whole, tsr_layout_ndim(like), shape, tsr_layout_dtype(like), &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &s->locals[value]);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    return fill(s, s->locals[value], find_given(s, value));
}

static tsr_status make_locals(program_side *s)
{
    while (tsr_value_layout(s->program, (tsr_value)s->local_count))
        s->local_count++;
    s->locals = calloc(s->local_count + 1, sizeof(tsr_dtensor *));
    if (!s->locals)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the tensors of kernels");
    for (size_t i = 0; i < s->local_count; i++)
        TSR_TRY(make_local(s, (tsr_value)i));
    return TSR_OK;
}

tsr_status program_side_make(const program_case *c, tsr_comm *comm, const tsr_mesh *like, bool kernels,
                             program_side *out)
{
    *out = (program_side){.c = c, .comm = comm};
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm), 0, &out->self));
    TSR_TRY(tsr_mesh_parse(out->self, NULL, "1", &out->alone));
    TSR_TRY(wholes_mesh(comm, NULL, like, &out->mesh));
    TSR_TRY(make_program(out));
    return kernels ? make_locals(out) : TSR_OK;
}

void program_side_finish(program_side *s)
{
    for (size_t i = 0; s->locals && i < s->local_count; i++)
        tsr_dtensor_destroy(s->locals[i]);
    for (int i = 0; i < MODEL_GIVEN; i++)
        tsr_dtensor_destroy(s->given[i]);
    tsr_dtensor_destroy(s->y);
    if (s->mesh)
        tsr_release(tsr_mesh_context(s->mesh), s->workspace);
    tsr_executable_destroy(s->x);
    tsr_program_destroy(s->program);
    tsr_mesh_destroy(s->mesh);
    tsr_mesh_destroy(s->alone);
    tsr_comm_destroy(s->self);
    free(s->locals);
}

tsr_status program_side_run(program_side *s)
{
    return tsr_executable_run(s->x, s->comm, s->inputs, &s->output, s->workspace, tsr_executable_workspace_bytes(s->x),
                              NULL);
}

tsr_status program_side_call(program_side *s)
{
    for (int i = 0; i < s->m.call_count; i++) {
        const model_call *const call = &s->m.calls[i];
        const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
        const tsr_op *op;
        if (!call->computes)
            continue;
        for (int k = 0; k < TSR_OP_MOST_OPERANDS; k++)
            operands[k] = call->operands[k] == TSR_NONE ? NULL : s->locals[call->operands[k]];
        TSR_TRY(tsr_op_find(NULL, call->op, &op));
        TSR_TRY(tsr_op_call_into(op, call->count, call->attributes, operands, &s->locals[call->result]));
    }
    return TSR_OK;
}

static tsr_status compare(const program_side *s, int64_t sequence, const float *found, int64_t *wrong)
{
    double *const row = calloc((size_t)s->c->sizes.hidden, sizeof *row);
    if (!row)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the reference");
    const tsr_status status = s->c->reference(&s->c->sizes, sequence, row);
    for (int64_t i = 0; i < s->c->sizes.hidden && status == TSR_OK; i++)
        *wrong += !(fabs(found[i] - row[i]) <= TOLERANCE * fmax(1, fabs(row[i])));
    free(row);
    return status;
}

tsr_status program_side_check(const program_side *s, int64_t *wrong)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate_of(s->mesh, tsr_comm_rank(s->comm), coordinate, &inside));
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(s->y), NULL, shape, offset));
    /* The others along the last dim hold the same. */
    if (coordinate[tsr_mesh_ndim(s->mesh) - 1] != 0)
        return TSR_OK;
    return compare(s, offset[0] + shape[0] - 1,
                   (const float *)s->output.data + (shape[0] * shape[1] - 1) * s->c->sizes.hidden, wrong);
}
