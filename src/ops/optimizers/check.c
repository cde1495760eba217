#include "ops/optimizers/check.h"

#include "ops/optimizers/values.h"

#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number of the options, and from where to where it may be; the ends may be open. */
typedef struct range {
    const char *name;
    double value, least, most;
    bool below; /* `most` itself is too large */
} range;

static tsr_status check_range(const char *call, const range *r)
{
    if (r->value >= r->least && (r->below ? r->value < r->most : r->value <= r->most) && isfinite(r->value))
        return TSR_OK;
    if (isinf(r->least))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g, but must be finite and at most %g", call, r->name,
                              r->value, r->most);
    if (isinf(r->most))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g, but must be finite and at least %g", call, r->name,
                              r->value, r->least);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g, but must be from %g to %s%g", call, r->name, r->value,
                          r->least, r->below ? "below " : "", r->most);
}

static tsr_status check_options(const char *call, const tsr_optimizer_options *o)
{
    if (o->kind < TSR_SGD || o->kind > TSR_MUON)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: kind is %d, but must be one of tsr_optimizer_kind", call,
                              (int)o->kind);
    const range ranges[] = {
        {"weight_decay", o->weight_decay, 0, INFINITY, false},
        {"momentum", o->momentum, 0, INFINITY, false},
        {"dampening", o->dampening, 0, INFINITY, false},
        {"beta1", o->beta1, 0, 1, true},
        {"beta2", o->beta2, 0, 1, true},
        {"epsilon", o->epsilon, 0, INFINITY, false},
        {"beta2_decay", o->beta2_decay, -INFINITY, 0, false},
        {"least_scale", o->least_scale, 0, INFINITY, false},
        {"threshold", o->threshold, 1, INFINITY, false},
        {"iterations", o->iterations, 1, 99, false},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        TSR_TRY(check_range(call, &ranges[i]));
    if (o->kind == TSR_SGD && o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: momentum is %g and dampening %g, but nesterov wants a momentum, and no dampening",
                              call, o->momentum, o->dampening);
    if (o->rate != TSR_MUON_ORIGINAL && o->rate != TSR_MUON_MATCH_RMS_ADAMW)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rate is %d, but must be one of tsr_muon_rate", call,
                              (int)o->rate);
    return TSR_OK;
}

/* Prints a shape as "6x5". */
static void print_shape(int ndim, const int64_t *shape, char *text, size_t room)
{
    size_t length = 0;
    for (int dim = 0; dim < ndim && length < room; dim++)
        length += (size_t)snprintf(text + length, room - length, "%s%lld", dim ? "x" : "", (long long)shape[dim]);
}

/* Checks the tensor of which a parameter is a view. */
static tsr_status check_view(const char *call, const tsr_optimizer_options *o, size_t at,
                             const tsr_program_value *value)
{
    const tsr_optimizer_view *const view = o->views ? &o->views[at] : NULL;
    const int ndim = tsr_layout_ndim(value->layout);
    int64_t count = 1;
    bool fits = true;
    char text[TSR_MAX_DIMS * 21 + 1];
    if (!view || view->ndim == 0)
        return TSR_OK;
    if (view->ndim < 0 || view->ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: views[%zu].ndim is %d, but must be from 0 to %d", call, at,
                              view->ndim, TSR_MAX_DIMS);
    if (ndim != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: views[%zu] is of \"%s\", which has %d dims, but a view is of a parameter of one dim",
                              call, at, value->name, ndim);
    for (int dim = 0; fits && dim < view->ndim; dim++)
        fits = view->shape[dim] >= 0 && !__builtin_mul_overflow(count, view->shape[dim], &count);
    if (fits && count == tsr_layout_shape(value->layout)[0])
        return TSR_OK;
    print_shape(view->ndim, view->shape, text, sizeof text);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: views[%zu].shape is %s, but must have the %lld elements of \"%s\"",
                          call, at, text, (long long)tsr_layout_shape(value->layout)[0], value->name);
}

/* Checks one parameter, and its gradient. */
static tsr_status check_parameter(const tsr_program *program, const char *call, const tsr_optimizer_options *o,
                                  size_t at, tsr_value parameter, tsr_value gradient)
{
    const tsr_program_value *const value = tsr_program_value_at(program, parameter);
    const tsr_layout *const of = tsr_value_layout(program, gradient);
    const int ndim = tsr_layout_ndim(value->layout);
    if (value->kind != TSR_VALUE_STATE)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: parameters[%zu] is not a state; an update is stored, so make it by tsr_state()",
                              call, at);
    if (ndim != tsr_layout_ndim(of) ||
        (ndim && memcmp(tsr_layout_shape(value->layout), tsr_layout_shape(of), (size_t)ndim * sizeof(int64_t)) != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: gradients[%zu] has not the shape of \"%s\"", call, at,
                              value->name);
    if (!tsr_mesh_congruent(tsr_layout_mesh(value->layout), tsr_layout_mesh(of)))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: gradients[%zu] is not on the mesh of \"%s\"", call, at,
                              value->name);
    TSR_TRY(check_view(call, o, at, value));
    const int seen = o->views && o->views[at].ndim > 0 ? o->views[at].ndim : ndim;
    if (o->kind == TSR_MUON && seen != 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: \"%s\" has %d dims, but Muon is for matrices; update it by another optimizer", call,
                              value->name, seen);
    return TSR_OK;
}

bool tsr_optimizer_check(tsr_program *program, const char *call, size_t count, const tsr_value *parameters,
                         const tsr_value *gradients, const tsr_optimizer_options *given, tsr_optimizer_options *out)
{
    static const tsr_optimizer_options defaults = TSR_SGD_INIT;
    *out = defaults;
    if (!tsr_values_hold(program, call, "parameters", count, parameters) ||
        !tsr_values_hold(program, call, "gradients", count, gradients))
        return false;
    tsr_status status = tsr_options_read(call, given, out, sizeof *out);
    if (status == TSR_OK)
        status = check_options(call, out);
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        status = check_parameter(program, call, out, i, parameters[i], gradients[i]);
    return status == TSR_OK || tsr_program_fail(program, status) != TSR_NONE;
}

static tsr_status check_inputs(const tsr_program *program, const char *call, const tsr_optimizer_options *o,
                               tsr_value rate, tsr_value step, tsr_value finite)
{
    const bool counts = o->kind == TSR_ADAMW || o->kind == TSR_ADAFACTOR || (o->kind == TSR_SGD && o->dampening != 0);
    const tsr_layout *const flag = tsr_value_layout(program, finite);
    if (!tsr_value_is_scalar(program, rate, false))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: learning_rate must be a float without dims that is Replicate",
                              call);
    if (step == TSR_NONE && counts)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: step is TSR_NONE, but this optimizer counts steps", call);
    if (step != TSR_NONE && !tsr_value_is_scalar(program, step, true))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: step must be a float or an integer without dims that is Replicate", call);
    if (finite != TSR_NONE && (!flag || tsr_layout_ndim(flag) != 0 || tsr_layout_dtype(flag) != TSR_BOOL))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: finite must be a bool without dims, as tsr_optimizer_unscale() gives, or TSR_NONE",
                              call);
    return TSR_OK;
}

bool tsr_optimizer_check_inputs(tsr_program *program, const char *call, const tsr_optimizer_options *options,
                                tsr_value rate, tsr_value step, tsr_value finite)
{
    const tsr_status status = check_inputs(program, call, options, rate, step, finite);
    return status == TSR_OK || tsr_program_fail(program, status) != TSR_NONE;
}
