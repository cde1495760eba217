#include "files/programs/read_optimizer.h"

#include <tessera/optimizer.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where sentences point. */
static const char where[] = "optimizer";

/* An optimizer as it is written. */
typedef struct written {
    tsr_optimizer_options options;
    tsr_value rate, step; /* step TSR_NONE: not given */
    double clip;          /* INFINITY: not */
} written;

/* Reads a number, where it is given. */
static tsr_status read_number(const tsr_program_reader *r, const json_t *object, const char *key, double *out)
{
    const json_t *const value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TSR_OK;
    if (!json_is_number(value))
        return tsr_program_refuse(r, where, "%s must be a number", key);
    *out = json_number_value(value);
    return TSR_OK;
}

static tsr_status read_flag(const tsr_program_reader *r, const json_t *object, const char *key, int *out)
{
    const json_t *const value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TSR_OK;
    if (!json_is_boolean(value))
        return tsr_program_refuse(r, where, "%s must be true or false", key);
    *out = json_is_true(value);
    return TSR_OK;
}

static tsr_status read_betas(const tsr_program_reader *r, const json_t *object, tsr_optimizer_options *out)
{
    const json_t *list;
    TSR_TRY(tsr_program_read_list(r, where, object, "betas", &list));
    if (!list)
        return TSR_OK;
    const json_t *const first = json_array_get(list, 0), *const second = json_array_get(list, 1);
    if (json_array_size(list) != 2 || !json_is_number(first) || !json_is_number(second))
        return tsr_program_refuse(r, where, "betas must be two numbers");
    out->beta1 = json_number_value(first);
    out->beta2 = json_number_value(second);
    return TSR_OK;
}

/* Reads the mesh dims along which states are cut, by name or by number. */
static tsr_status read_shard_over(const tsr_program_reader *r, const json_t *object, unsigned *out)
{
    const json_t *list;
    TSR_TRY(tsr_program_read_list(r, where, object, "shard_over", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const item = json_array_get(list, i);
        const char *const name = json_string_value(item);
        char text[48] = "";
        int dim = 0;
        for (; dim < tsr_mesh_ndim(r->mesh); dim++) {
            const char *const own = tsr_mesh_name(r->mesh, dim);
            if (name ? own && strcmp(own, name) == 0 : json_is_integer(item) && json_integer_value(item) == dim)
                break;
        }
        if (name)
            snprintf(text, sizeof text, " is \"%.32s\", but", name);
        else if (json_is_integer(item))
            snprintf(text, sizeof text, " is %lld, but", (long long)json_integer_value(item));
        if (dim == tsr_mesh_ndim(r->mesh))
            return tsr_program_refuse(r, where, "shard_over[%zu]%s must be the name or the number of a mesh dim", i,
                                      text);
        *out |= 1U << dim;
    }
    return TSR_OK;
}

static tsr_status read_kind(const tsr_program_reader *r, const json_t *object, tsr_optimizer_options *out)
{
    static const char *const names[] = {"sgd", "adamw", "lion", "adafactor", "muon"};
    static const tsr_optimizer_options all[] = {TSR_SGD_INIT, TSR_ADAMW_INIT, TSR_LION_INIT, TSR_ADAFACTOR_INIT,
                                                TSR_MUON_INIT};
    const char *name;
    TSR_TRY(tsr_program_read_text(r, where, object, "name", &name));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = all[i];
            return TSR_OK;
        }
    }
    return tsr_program_refuse(r, where, "name is \"%.40s\", but must be sgd, adamw, lion, adafactor or muon", name);
}

/* Refuses what other optimizers have, which would change nothing. */
static tsr_status check_kind(const tsr_program_reader *r, const json_t *object, const tsr_optimizer_options *o)
{
    enum {
        SGD = 1 << TSR_SGD,
        ADAMW = 1 << TSR_ADAMW,
        LION = 1 << TSR_LION,
        ADAFACTOR = 1 << TSR_ADAFACTOR,
        MUON = 1 << TSR_MUON
    };
    static const struct {
        const char *key;
        int kinds;
    } keys[] = {{"momentum", SGD | MUON},
                {"dampening", SGD},
                {"nesterov", SGD | MUON},
                {"betas", ADAMW | LION},
                {"epsilon", ADAMW | ADAFACTOR | MUON},
                {"beta2_decay", ADAFACTOR},
                {"least_scale", ADAFACTOR},
                {"threshold", ADAFACTOR}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *const given = json_object_get(object, keys[i].key);
        if (given && !json_is_null(given) && !(keys[i].kinds & 1 << o->kind))
            return tsr_program_refuse(r, where, "%s has no %s", json_string_value(json_object_get(object, "name")),
                                      keys[i].key);
    }
    return TSR_OK;
}

static tsr_status read_options(const tsr_program_reader *r, const json_t *object, written *w)
{
    tsr_optimizer_options *const o = &w->options;
    const struct {
        const char *key;
        double *number;
    } numbers[] = {{"weight_decay", &o->weight_decay}, {"momentum", &o->momentum},
                   {"dampening", &o->dampening},       {"epsilon", &o->epsilon},
                   {"beta2_decay", &o->beta2_decay},   {"least_scale", &o->least_scale},
                   {"threshold", &o->threshold},       {"clip", &w->clip}};
    TSR_TRY(read_kind(r, object, o));
    TSR_TRY(check_kind(r, object, o));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        TSR_TRY(read_number(r, object, numbers[i].key, numbers[i].number));
    TSR_TRY(read_betas(r, object, o));
    TSR_TRY(read_flag(r, object, "nesterov", &o->nesterov));
    TSR_TRY(read_flag(r, object, "masters", &o->masters));
    return read_shard_over(r, object, &o->shard_over);
}

/* Reads the values that each run gives. */
static tsr_status read_inputs(const tsr_program_reader *r, const json_t *object, written *w)
{
    const char *name;
    const json_t *const step = json_object_get(object, "step");
    TSR_TRY(tsr_program_read_text(r, where, object, "rate", &name));
    TSR_TRY(tsr_program_find(r, where, name, &w->rate));
    w->step = TSR_NONE;
    if (!step || json_is_null(step))
        return TSR_OK;
    TSR_TRY(tsr_program_read_text(r, where, object, "step", &name));
    return tsr_program_find(r, where, name, &w->step);
}

static tsr_status record(const tsr_program_reader *r, const written *w, const json_t *to, tsr_value *states,
                         tsr_value *gradients)
{
    const size_t count = json_array_size(to);
    for (size_t i = 0; i < count; i++) {
        char name[264];
        const char *const of = json_string_value(json_array_get(to, i));
        TSR_TRY(tsr_program_find_state(r, where, of, &states[i]));
        snprintf(name, sizeof name, "d.%.255s", of);
        TSR_TRY(tsr_program_find(r, where, name, &gradients[i]));
    }
    tsr_optimizer_reduce(r->program, count, states, gradients, &w->options);
    if (isfinite(w->clip))
        tsr_optimizer_clip(r->program, count, gradients, w->clip, NULL);
    tsr_optimizer_update(r->program, count, states, gradients, w->rate, w->step, TSR_NONE, &w->options);
    TSR_TRY(tsr_program_check(r, where));
    for (size_t i = 0; i < count; i++)
        TSR_TRY(tsr_program_renew_state(r, where, json_string_value(json_array_get(to, i))));
    return TSR_OK;
}

tsr_status tsr_program_read_optimizer(const tsr_program_reader *r, json_t *object, const json_t *gradients)
{
    static const char *const keys[] = {
        "name",        "rate",      "step",     "clip",      "shard_over", "masters",     "betas",        "epsilon",
        "beta2_decay", "threshold", "momentum", "dampening", "nesterov",   "least_scale", "weight_decay", NULL};
    const json_t *const to = json_object_get(gradients, "to");
    written w = {.clip = INFINITY};
    if (!object || json_is_null(object))
        return TSR_OK;
    TSR_TRY(tsr_program_check_keys(r, where, object, keys));
    if (json_array_size(to) == 0)
        return tsr_program_refuse(r, where, "it updates the states of gradients.to, but there are no gradients");
    TSR_TRY(read_options(r, object, &w));
    TSR_TRY(read_inputs(r, object, &w));
    tsr_value *const values = calloc(2 * json_array_size(to), sizeof *values);
    if (!values)
        return tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for the optimizer", r->name);
    const tsr_status status = record(r, &w, to, values, values + json_array_size(to));
    free(values);
    return status;
}
