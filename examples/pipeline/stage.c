#include "stage.h"

#include <tessera/mesh_comm.h>
#include <tessera/random.h>
#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <stdlib.h>
#include <string.h>

/* What random numbers are for. */
enum { FOR_WEIGHTS, FOR_FEATURES };

/* Random numbers follow from the number of a weight or of a micro-batch: they do not depend on
 * ranks. */
static tsr_random_key key_of(const stage *s, int purpose, int64_t number)
{
    const tsr_random_key key = tsr_random_key_fold_in(tsr_random_key_threefry(s->seed), (uint64_t)purpose);
    return tsr_random_key_fold_in(key, (uint64_t)number);
}

static tsr_status make_zeros(const tsr_layout *layout, tsr_dtensor **out)
{
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), out));
    return tsr_dtensor_fill(*out, 0, NULL);
}

static tsr_status make_weights(stage *s)
{
    s->weights = model_weight_count(&s->model);
    for (int i = 0; i < s->weights; i++) {
        const weight w = model_weight(&s->model, i);
        const tsr_random_key key = key_of(s, FOR_WEIGHTS, w.number);
        tsr_layout *layout;
        TSR_TRY(model_weight_layout(&s->model, &w, &layout));
        const tsr_status status = tsr_kaiming_uniform(layout, &key, 1, w.shape[1], &s->of[i]);
        tsr_layout_destroy(layout);
        TSR_TRY(status);
    }
    return TSR_OK;
}

/* Binds the stage's weights, and to what else a program asks for new zeros: the optimizer's states.
 */
static tsr_status bind(stage *s, tsr_executable *program)
{
    const size_t count = tsr_executable_binding_count(program);
    for (size_t i = 0; i < count; i++) {
        tsr_executable_binding b;
        TSR_TRY(tsr_executable_binding_at(program, i, &b));
        if (i < (size_t)s->weights) { /* recorded first, in their order */
            TSR_TRY(tsr_executable_bind(program, b.name, s->of[i]));
            continue;
        }
        TSR_TRY(make_zeros(b.layout, &s->states[s->state_count]));
        TSR_TRY(tsr_executable_bind(program, b.name, s->states[s->state_count++]));
    }
    return TSR_OK;
}

static tsr_status make_program(stage *s, stage_program which)
{
    static void (*const record[])(const model *, tsr_program *) = {model_record_forward, model_record_backward,
                                                                   model_record_update};
    tsr_executable **const out = &s->programs[which];
    tsr_program *p;
    TSR_TRY(tsr_program_create(tsr_mesh_context(s->mesh), &p));
    record[which](&s->model, p);
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    TSR_TRY(status);
    TSR_TRY(bind(s, *out));
    TSR_TRY(tsr_executable_prepare(*out, tsr_mesh_comm(s->mesh)));
    const size_t bytes = tsr_executable_workspace_bytes(*out);
    s->workspace_bytes = bytes > s->workspace_bytes ? bytes : s->workspace_bytes;
    return TSR_OK;
}

/* The backward's inputs say how sums lie; the last of them are these. */
static tsr_status make_sums(stage *s)
{
    const tsr_executable *const backward = s->programs[BACKWARD];
    const size_t first = tsr_executable_input_count(backward) - (size_t)s->weights;
    for (int i = 0; i < s->weights; i++)
        for (int k = 0; k < 2; k++)
            TSR_TRY(make_zeros(tsr_executable_input_layout(backward, first + (size_t)i), &s->sums[k][i]));
    return TSR_OK;
}

static tsr_status make(stage *s)
{
    s->model.mesh = s->mesh;
    s->states = calloc((size_t)2 * MOST_WEIGHTS, sizeof *s->states);
    if (!s->states)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a list of states");
    TSR_TRY(make_weights(s));
    if (!s->model.ends)
        TSR_TRY(make_program(s, FORWARD));
    TSR_TRY(make_program(s, BACKWARD));
    TSR_TRY(make_program(s, UPDATE));
    TSR_TRY(make_sums(s));
    if (s->model.begins || s->model.ends)
        TSR_TRY(make_zeros(tsr_executable_input_layout(s->programs[BACKWARD], 0), &s->x));
    return tsr_comm_alloc(tsr_mesh_comm(s->mesh), s->workspace_bytes, &s->workspace);
}

tsr_status stage_create(tsr_comm *comm, const char *mesh, stage *out)
{
    tsr_mesh *whole;
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &whole));
    const tsr_status status = tsr_mesh_split(whole, NULL, &out->mesh);
    tsr_mesh_destroy(whole);
    TSR_TRY(status);
    return out->mesh ? make(out) : TSR_OK;
}

void stage_destroy(stage *s)
{
    if (s->workspace)
        tsr_comm_free(tsr_mesh_comm(s->mesh), s->workspace, s->workspace_bytes);
    for (int i = 0; i < STAGE_PROGRAMS; i++)
        tsr_executable_destroy(s->programs[i]);
    for (size_t i = 0; i < s->state_count; i++)
        tsr_dtensor_destroy(s->states[i]);
    free(s->states);
    tsr_dtensor_destroy(s->x);
    for (int i = 0; i < s->weights; i++) {
        tsr_dtensor_destroy(s->sums[0][i]);
        tsr_dtensor_destroy(s->sums[1][i]);
        tsr_dtensor_destroy(s->of[i]);
    }
    tsr_mesh_destroy(s->mesh);
}

static tsr_status run(stage *s, stage_program which, const tsr_tensor *inputs, const tsr_tensor *outputs)
{
    return tsr_executable_run(s->programs[which], tsr_mesh_comm(s->mesh), inputs, outputs, s->workspace,
                              s->workspace_bytes, NULL);
}

/* Draws the features of a micro-batch, the same on the first stage and on the last. */
static tsr_status draw(stage *s, int64_t number)
{
    const tsr_random_key key = key_of(s, FOR_FEATURES, number);
    return s->x ? tsr_uniform_into(&key, -1, 1, s->x) : TSR_OK;
}

/* Lists the sums behind `count` other tensors. */
static void list_sums(const stage *s, int which, tsr_tensor *list, int count)
{
    for (int i = 0; i < s->weights; i++)
        list[count + i] = tsr_dtensor_to_local(s->sums[which][i]);
}

tsr_status stage_forward(stage *s, int64_t number, tsr_tensor activation, tsr_tensor result)
{
    TSR_TRY(draw(s, number));
    if (s->model.begins)
        activation = tsr_dtensor_to_local(s->x);
    return run(s, FORWARD, &activation, &result);
}

tsr_status stage_backward(stage *s, int64_t number, tsr_tensor activation, tsr_tensor d_result, tsr_tensor d_activation,
                          double *loss)
{
    tsr_tensor inputs[MOST_WEIGHTS + 3], outputs[MOST_WEIGHTS + 2];
    float own = 0;
    int in = 0, out = 0;
    TSR_TRY(draw(s, number));
    if (s->x)
        inputs[in++] = tsr_dtensor_to_local(s->x);
    if (!s->model.begins)
        inputs[in++] = activation;
    if (!s->model.ends)
        inputs[in++] = d_result;
    if (s->model.ends)
        outputs[out++] = tsr_tensor_contiguous(&own, TSR_F32, 0, NULL);
    if (!s->model.begins)
        outputs[out++] = d_activation;
    list_sums(s, s->full, inputs, in);
    list_sums(s, !s->full, outputs, out);
    TSR_TRY(run(s, BACKWARD, inputs, outputs));
    s->full = !s->full;
    *loss += own;
    return TSR_OK;
}

tsr_status stage_update(stage *s, int64_t step)
{
    tsr_tensor inputs[MOST_WEIGHTS + 2];
    double number = (double)step + 1;
    list_sums(s, s->full, inputs, 0);
    inputs[s->weights] = tsr_tensor_contiguous(&s->rate, TSR_F64, 0, NULL);
    inputs[s->weights + 1] = tsr_tensor_contiguous(&number, TSR_F64, 0, NULL);
    TSR_TRY(run(s, UPDATE, inputs, NULL));
    for (int i = 0; i < s->weights; i++)
        TSR_TRY(tsr_dtensor_fill(s->sums[s->full][i], 0, NULL));
    return TSR_OK;
}
