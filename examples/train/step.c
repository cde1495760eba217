#include "step.h"

#include <tessera/optimizer.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_gradients(tsr_program *p, const train_weights *weights, const tsr_value *gradients)
{
    for (size_t i = 0; i < weights->count; i++) {
        char name[136];
        snprintf(name, sizeof name, "d.%s", tsr_value_name(p, weights->values[i]));
        tsr_output(p, name, gradients[i], NULL);
    }
}

/* The state that has the terms of earlier parts of a step, and these with the terms of this part.
 * Both are in the dtype of the whole sum. */
static tsr_value add_part(tsr_program *p, const char *name, tsr_value terms, tsr_dtype dtype, tsr_value *state)
{
    char text[144];
    tsr_layout *layout;
    *state = TSR_NONE;
    if (tsr_program_status(p, NULL) != TSR_OK)
        return TSR_NONE;
    const tsr_layout *const own = tsr_value_layout(p, terms);
    if (tsr_layout_dtype(own) != dtype)
        terms = tsr_op_cast(p, terms, dtype);
    if (tsr_layout_create(tsr_layout_mesh(own), tsr_layout_placements(own), tsr_layout_ndim(own), tsr_layout_shape(own),
                          dtype, &layout) != TSR_OK)
        return TSR_NONE;
    snprintf(text, sizeof text, "%s%s", name, TRAIN_TERMS);
    *state = tsr_state(p, text, layout);
    tsr_layout_destroy(layout);
    return tsr_op_add(p, *state, terms);
}

/* add_part() of the gradient of a weight, under its name and in its dtype. */
static tsr_value add_gradient(tsr_program *p, tsr_value weight, tsr_value terms, tsr_value *state)
{
    *state = TSR_NONE;
    if (tsr_program_status(p, NULL) != TSR_OK)
        return TSR_NONE;
    return add_part(p, tsr_value_name(p, weight), terms, tsr_layout_dtype(tsr_value_layout(p, weight)), state);
}

/* Brings the terms of all parts to where the weight lies. */
static tsr_value sum_gradient(tsr_program *p, tsr_value weight, tsr_value terms)
{
    tsr_value state;
    const tsr_value sum = add_gradient(p, weight, terms, &state);
    return tsr_program_status(p, NULL) == TSR_OK ? tsr_op_to_mesh(p, sum, tsr_value_layout(p, weight)) : TSR_NONE;
}

/* True of a weight that Muon is for: a matrix, but for those with a row for each token of the
 * vocabulary. */
static bool is_for_muon(const tsr_program *p, tsr_value w, const tsr_optimizer_view *view)
{
    const char *const name = tsr_value_name(p, w);
    return (view->ndim == 2 || tsr_layout_ndim(tsr_value_layout(p, w)) == 2) && strncmp(name, "model.layers.", 13) == 0;
}

/* Puts the weights that Muon is for before the others, with their gradients. Returns how many there
 * are. */
static size_t sort_for_muon(const tsr_program *p, const train_weights *weights, tsr_value *gradients)
{
    size_t first = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const tsr_value w = weights->values[i], d = gradients[i];
        const tsr_optimizer_view view = weights->views[i];
        if (tsr_program_status(p, NULL) != TSR_OK || !is_for_muon(p, w, &view))
            continue;
        weights->values[i] = weights->values[first];
        weights->views[i] = weights->views[first];
        weights->views[first] = view;
        gradients[i] = gradients[first];
        weights->values[first] = w;
        gradients[first++] = d;
    }
    return first;
}

/* Updates weights by two optimizers, the first `first` by one. All gradients are clipped together,
 * and divided by the loss scale, unless it is TSR_NONE. */
static tsr_value update(const train_weights *weights, tsr_value *gradients, size_t first, tsr_optimizer_options of[2],
                        double clip, tsr_value scale, const tsr_mesh *mesh, tsr_program *p)
{
    tsr_value size, finite = TSR_NONE;
    const tsr_value rate = tsr_input(p, "rate", mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value step = tsr_input(p, "step", mesh, TSR_F64, 0, NULL, NULL);
    const size_t begins[] = {0, first, weights->count};
    for (int i = 0; i < 2; i++)
        of[i].views = weights->views + begins[i];
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_reduce(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i],
                                 &of[i]);
    if (scale != TSR_NONE) {
        tsr_optimizer_unscale(p, weights->count, gradients, scale, &finite);
        tsr_output(p, "finite", finite, NULL);
    }
    tsr_optimizer_clip(p, weights->count, gradients, clip, &size);
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_update(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i], rate,
                                 of[i].kind == TSR_MUON ? TSR_NONE : step, finite, &of[i]);
    return size;
}

/* The loss scale of a run, TSR_NONE: none; and the loss by which gradients are taken. */
static tsr_value scale_loss(const train_model *model, bool scales, tsr_value *loss, tsr_program *p)
{
    if (!scales)
        return TSR_NONE;
    const tsr_value scale = tsr_input(p, "scale", model->layouts->mesh, train_kept_dtype(model), 0, NULL, NULL);
    *loss = tsr_op_mul(p, *loss, scale);
    return scale;
}

/* The loss of this part, with that which balances experts, where `router` is one. */
static tsr_value loss_of_part(const train_model *model, tsr_value terms, tsr_value router, tsr_program *p)
{
    const tsr_value loss = tsr_op_all_reduce(p, terms, 0);
    return router == TSR_NONE ? loss : tsr_op_add(p, loss, tsr_op_scale(p, router, model->config->mixture.balance));
}

static void record_step(const train_weights *weights, tsr_value terms, tsr_value router, const train_model *model,
                        const train_update *u, tsr_program *p, tsr_value *gradients)
{
    tsr_value state, loss = tsr_op_all_reduce(p, terms, 0), scaled = loss_of_part(model, terms, router, p);
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    tsr_optimizer_options of[] = {u->optimizer, adamw};
    const tsr_value scale = scale_loss(model, u->scales_loss, &scaled, p);
    const bool is_part = train_is_part(model);
    of[1].shard_over = u->optimizer.shard_over;
    tsr_gradients(p, scaled, weights->count, is_part ? weights->used : weights->values, gradients);
    for (size_t i = 0; i < weights->count && is_part; i++)
        gradients[i] = sum_gradient(p, weights->values[i], gradients[i]);
    if (is_part)
        loss = tsr_op_all_reduce(p, add_part(p, "loss", terms, TSR_F64, &state), 0);
    if (is_part && router != TSR_NONE)
        router = add_part(p, "router", router, TSR_F64, &state);
    if (u->keeps_gradients)
        keep_gradients(p, weights, gradients);
    const size_t first = u->optimizer.kind == TSR_MUON ? sort_for_muon(p, weights, gradients) : weights->count;
    const tsr_value size = update(weights, gradients, first, of, u->clip, scale, model->layouts->mesh, p);
    if (router != TSR_NONE)
        tsr_output(p, "router_loss", tsr_op_cast(p, router, TSR_F64), NULL);
    tsr_output(p, "loss", tsr_op_cast(p, loss, TSR_F64), NULL);
    tsr_output(p, "norm", size, NULL);
}

/* Adds the terms of the loss and of all gradients to those of earlier parts. */
static void record_part(const train_weights *weights, tsr_value terms, tsr_value router, const train_model *model,
                        const train_update *u, tsr_program *p, tsr_value *gradients)
{
    tsr_value scaled = loss_of_part(model, terms, router, p), state, sum;
    (void)scale_loss(model, u->scales_loss, &scaled, p);
    tsr_gradients(p, scaled, weights->count, weights->used, gradients);
    for (size_t i = 0; i < weights->count; i++) {
        sum = add_gradient(p, weights->values[i], gradients[i], &state);
        tsr_op_store(p, state, sum, TSR_NONE);
    }
    sum = add_part(p, "loss", terms, TSR_F64, &state);
    tsr_op_store(p, state, sum, TSR_NONE);
    if (router == TSR_NONE)
        return;
    sum = add_part(p, "router", router, TSR_F64, &state);
    tsr_op_store(p, state, sum, TSR_NONE);
}

/* A recorder of what follows the forward. */
typedef void record_behind(const train_weights *weights, tsr_value terms, tsr_value router, const train_model *model,
                           const train_update *u, tsr_program *p, tsr_value *gradients);

static tsr_status state(const train_model *model, const train_update *u, record_behind *behind, tsr_program *p)
{
    train_weights weights = {0};
    tsr_value router = TSR_NONE;
    const tsr_value terms = train_state_loss(model, true, p, &weights, &router);
    tsr_value *const gradients = calloc(weights.count + 1, sizeof *gradients);
    tsr_status status = train_weights_check(&weights, p);
    if (status == TSR_OK && !gradients)
        status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for the gradients of %zu weights", weights.count);
    if (status == TSR_OK) {
        behind(&weights, terms, router, model, u, p, gradients);
        status = train_weights_check(&weights, p);
    }
    free(gradients);
    train_weights_finish(&weights);
    return status;
}

tsr_status train_state_step(const train_model *model, const train_update *u, tsr_program *p)
{
    return state(model, u, record_step, p);
}

tsr_status train_state_part(const train_model *model, const train_update *u, tsr_program *p)
{
    return state(model, u, record_part, p);
}
