#include "model.h"

#include <tessera/losses.h>
#include <tessera/optimizer.h>
#include <tessera/program_ops.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

void model_place(const tsr_mesh *mesh, const char *dp, const char *tp, char text[PLACEMENTS_BYTES])
{
    size_t used = 0;
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        const char *const name = tsr_mesh_name(mesh, dim);
        const char *const own = !name ? "R" : strcmp(name, "dp") == 0 ? dp : tp;
        used += (size_t)snprintf(text + used, PLACEMENTS_BYTES - used, "%s%s", dim > 0 ? "," : "", own);
    }
}

int model_weight_count(const model *m)
{
    return (int)(2 * m->count + m->ends);
}

weight model_weight(const model *m, int index)
{
    const long long layer = m->first + index / 2;
    weight w;
    if (index == 2 * m->count) {
        w = (weight){"head", {CLASSES, WIDTH}, "S(0)", 2 * MOST_LAYERS};
    } else if (index % 2 == 0) {
        w = (weight){"", {INNER, WIDTH}, "S(0)", (int)(2 * layer)};
        snprintf(w.name, sizeof w.name, "layers.%lld.up", layer);
    } else {
        w = (weight){"", {WIDTH, INNER}, "S(1)", (int)(2 * layer) + 1};
        snprintf(w.name, sizeof w.name, "layers.%lld.down", layer);
    }
    return w;
}

tsr_status model_weight_layout(const model *m, const weight *w, tsr_layout **out)
{
    char placements[PLACEMENTS_BYTES];
    model_place(m->mesh, "R", w->tp, placements);
    return tsr_layout_parse(m->mesh, placements, 2, w->shape, TSR_F32, out);
}

/* Records all weights of the stage, as states or as parameters. */
static void record_weights(const model *m, tsr_program *p, bool are_states, tsr_value *out)
{
    for (int i = 0; i < model_weight_count(m); i++) {
        const weight w = model_weight(m, i);
        tsr_layout *layout;
        out[i] = TSR_NONE;
        if (model_weight_layout(m, &w, &layout) != TSR_OK)
            continue;
        out[i] = are_states ? tsr_state(p, w.name, layout) : tsr_parameter(p, w.name, layout);
        tsr_layout_destroy(layout);
    }
}

/* Weights vary along dp: each rank has terms of their gradients, of its own rows. */
static void record_varying_weights(const model *m, tsr_program *p, tsr_value *out)
{
    record_weights(m, p, false, out);
    for (int i = 0; i < model_weight_count(m); i++)
        out[i] = tsr_op_vary(p, out[i]);
}

static tsr_value record_input(const model *m, tsr_program *p, const char *name)
{
    const int64_t shape[] = {m->rows, WIDTH};
    char placements[PLACEMENTS_BYTES];
    model_place(m->mesh, "S(0)", "R", placements);
    return tsr_input(p, name, m->mesh, TSR_F32, 2, shape, placements);
}

static tsr_value record_layers(const model *m, tsr_program *p, const tsr_value *weights, tsr_value x)
{
    for (int64_t i = 0; i < m->count; i++) {
        const tsr_value inner = tsr_op_relu(p, tsr_op_linear(p, tsr_op_vary(p, x), weights[2 * i], TSR_NONE));
        const tsr_value terms = tsr_op_linear(p, inner, weights[2 * i + 1], TSR_NONE);
        x = tsr_op_add(p, x, tsr_op_all_reduce(p, terms, 0));
    }
    return x;
}

void model_record_forward(const model *m, tsr_program *p)
{
    tsr_value weights[MOST_WEIGHTS];
    record_varying_weights(m, p, weights);
    const tsr_value x = record_input(m, p, m->begins ? "x" : "activation");
    tsr_output(p, "activation", record_layers(m, p, weights, x), NULL);
}

/* The mean over the batch of what its rows lose; here the terms of a micro-batch. A row's class is
 * the number of the largest of its first CLASSES features, whatever their signs. */
static tsr_value record_loss(const model *m, tsr_program *p, tsr_value y, tsr_value x, tsr_value head)
{
    tsr_cross_entropy_options options = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    options.reduction = TSR_LOSS_SUM;
    const tsr_value classes = tsr_op_argmax(p, tsr_op_abs(p, tsr_op_narrow(p, x, 1, 0, CLASSES)), 1);
    const tsr_value sum = tsr_op_linear_cross_entropy(p, tsr_op_vary(p, y), head, classes, &options);
    return tsr_op_scale(p, tsr_op_all_reduce(p, sum, 0), 1.0 / (double)m->batch);
}

static tsr_value record_sum(const model *m, tsr_program *p, int index)
{
    const weight w = model_weight(m, index);
    char name[40], placements[PLACEMENTS_BYTES];
    snprintf(name, sizeof name, "sum.%s", w.name);
    model_place(m->mesh, "P", w.tp, placements);
    return tsr_input(p, name, m->mesh, TSR_F32, 2, w.shape, placements);
}

static void record_sums(const model *m, tsr_program *p, const tsr_value *gradients)
{
    for (int i = 0; i < model_weight_count(m); i++) {
        const tsr_value before = record_sum(m, p, i);
        tsr_output(p, tsr_value_name(p, before), tsr_op_add(p, before, gradients[i]), NULL);
    }
}

/* Of a stage that is not the last, the gradient by its weights is that of the sum of its result
 * times the gradient by the result. */
void model_record_backward(const model *m, tsr_program *p)
{
    tsr_value of[MOST_WEIGHTS + 1], gradients[MOST_WEIGHTS + 1], loss;
    const int count = model_weight_count(m);
    record_varying_weights(m, p, of);
    const tsr_value x = m->begins || m->ends ? record_input(m, p, "x") : TSR_NONE;
    of[count] = m->begins ? x : record_input(m, p, "activation");
    const tsr_value y = record_layers(m, p, of, of[count]);
    if (m->ends)
        loss = record_loss(m, p, y, x, of[count - 1]);
    else
        loss = tsr_op_sum(p, tsr_op_mul(p, y, record_input(m, p, "gradient")), 0, NULL, 0);
    tsr_gradients(p, loss, (size_t)count + !m->begins, of, gradients);
    if (m->ends)
        tsr_output(p, "loss", loss, NULL);
    if (!m->begins)
        tsr_output(p, "gradient", gradients[count], NULL);
    record_sums(m, p, gradients);
}

void model_record_update(const model *m, tsr_program *p)
{
    tsr_value weights[MOST_WEIGHTS], sums[MOST_WEIGHTS];
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    const size_t count = (size_t)model_weight_count(m);
    record_weights(m, p, true, weights);
    for (int i = 0; i < (int)count; i++)
        sums[i] = record_sum(m, p, i);
    const tsr_value rate = tsr_input(p, "rate", m->mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value step = tsr_input(p, "step", m->mesh, TSR_F64, 0, NULL, NULL);
    tsr_optimizer_reduce(p, count, weights, sums, &adamw);
    tsr_optimizer_update(p, count, weights, sums, rate, step, TSR_NONE, &adamw);
}
