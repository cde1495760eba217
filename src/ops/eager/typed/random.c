#include "ops/eager/typed/typed.h"
#include "ops/rows/table.h"

#include <tessera/random.h>
#include <tessera/sys/status.h>

#include <math.h>

/* Fills `out` by a row whose result has the rule's text of the same cuts: `out` is seen under that
 * layout. */
static tsr_status fill_as(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                          tsr_layout *layout, const tsr_dtensor *out)
{
    tsr_dtensor *seen;
    const tsr_tensor local = tsr_dtensor_to_local(out);
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &seen));
    const tsr_status status = tsr_eager_run_into(caller, op, count, attributes, OPERANDS(seen), &seen);
    tsr_dtensor_destroy(seen);
    return status;
}

static tsr_status fill(const char *caller, const char *name, const tsr_random_key *key, size_t count,
                       const tsr_attribute *attributes, tsr_dtensor *out)
{
    tsr_op_case c;
    tsr_op_inferred inferred;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", caller);
    TSR_TRY(tsr_settings_check_key(caller, key));
    const tsr_layout *const layouts[TSR_OP_MOST_OPERANDS] = {tsr_dtensor_layout(out)};
    TSR_TRY(tsr_settings_check_not_partial(caller, "out", layouts[0]));
    TSR_TRY(tsr_op_begin(caller, row_by(name, out), count, attributes, layouts, &c));
    TSR_TRY(tsr_op_infer(&c, &inferred));
    const tsr_status status = fill_as(caller, c.op, count, attributes, inferred.results[0], out);
    tsr_op_inferred_clear(&inferred);
    return status;
}

static tsr_status make(const char *caller, const char *name, const tsr_layout *layout, const tsr_random_key *key,
                       size_t count, const tsr_attribute *attributes, tsr_dtensor **out)
{
    tsr_dtensor *made;
    if (!layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, layout ? "out" : "layout");
    TSR_TRY(tsr_settings_check_key(caller, key));
    TSR_TRY(tsr_settings_check_not_partial(caller, "layout", layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    const tsr_status status = fill(caller, name, key, count, attributes, made);
    if (status == TSR_OK)
        *out = made;
    else
        tsr_dtensor_destroy(made);
    return status;
}

/* Both functions of an op that fills. */
#define FILLS(name, settings, attributes)                                                                              \
    tsr_status tsr_##name(const tsr_layout *layout, const tsr_random_key *key settings, tsr_dtensor **out)             \
    {                                                                                                                  \
        return make("tsr_" #name, #name, layout, key, attributes, out);                                                \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_random_key *key settings, tsr_dtensor *out)                                 \
    {                                                                                                                  \
        return fill("tsr_" #name "_into", #name, key, attributes, out);                                                \
    }

FILLS(uniform, UNIFORM_SETTING, UNIFORM)
FILLS(normal, NORMAL_SETTING, NORMAL)
FILLS(truncated_normal, TRUNCATED_NORMAL_SETTING, TRUNCATED_NORMAL)
FILLS(bernoulli, PROBABILITY_SETTING, PROBABILITY)
FILLS(bits, NO_SETTING, ATTRIBUTES(KEY))
FILLS(randint, INTEGERS_SETTING, INTEGERS)

tsr_status tsr_dropout(const tsr_dtensor *x, double p, const tsr_random_key *key, tsr_dtensor **out)
{
    TSR_TRY(tsr_settings_check_key("tsr_dropout", key));
    return tsr_eager_run("tsr_dropout", row_by("dropout", x), PROBABILITY, OPERANDS(x), out);
}

tsr_status tsr_dropout_into(const tsr_dtensor *x, double p, const tsr_random_key *key, tsr_dtensor *out)
{
    TSR_TRY(tsr_settings_check_key("tsr_dropout_into", key));
    return tsr_eager_run_into("tsr_dropout_into", row_by("dropout", x), PROBABILITY, OPERANDS(x), &out);
}

tsr_status tsr_dropout_backward(const tsr_dtensor *x, double p, const tsr_random_key *key, const tsr_dtensor *dout,
                                tsr_dtensor **dx)
{
    TSR_TRY(tsr_settings_check_key("tsr_dropout_backward", key));
    return tsr_eager_backward("tsr_dropout_backward", row_by("dropout", x), PROBABILITY, OPERANDS(x), dout, WANTED(dx));
}

/* Initial weights: checks the number of inputs or outputs, and the gain. */
static tsr_status check_fan(const char *caller, double gain, const char *name, int64_t fan)
{
    if (!(gain > 0) || !isfinite(gain))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: gain is %g, but must be above 0 and finite", caller, gain);
    if (fan > 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %lld, but must be above 0", caller, name, (long long)fan);
}

static tsr_status make_uniform(const char *caller, const tsr_layout *layout, const tsr_random_key *key, double bound,
                               tsr_dtensor **out)
{
    return make(caller, "uniform", layout, key,
                ATTRIBUTES(KEY, tsr_attribute_float("low", -bound), tsr_attribute_float("high", bound)), out);
}

static tsr_status make_normal(const char *caller, const tsr_layout *layout, const tsr_random_key *key, double deviation,
                              tsr_dtensor **out)
{
    return make(caller, "normal", layout, key, ATTRIBUTES(KEY, tsr_attribute_float("std", deviation)), out);
}

tsr_status tsr_xavier_uniform(const tsr_layout *layout, const tsr_random_key *key, double gain, int64_t fan_in,
                              int64_t fan_out, tsr_dtensor **out)
{
    TSR_TRY(check_fan("tsr_xavier_uniform", gain, "fan_in", fan_in));
    TSR_TRY(check_fan("tsr_xavier_uniform", gain, "fan_out", fan_out));
    return make_uniform("tsr_xavier_uniform", layout, key, gain * sqrt(6 / ((double)fan_in + (double)fan_out)), out);
}

tsr_status tsr_xavier_normal(const tsr_layout *layout, const tsr_random_key *key, double gain, int64_t fan_in,
                             int64_t fan_out, tsr_dtensor **out)
{
    TSR_TRY(check_fan("tsr_xavier_normal", gain, "fan_in", fan_in));
    TSR_TRY(check_fan("tsr_xavier_normal", gain, "fan_out", fan_out));
    return make_normal("tsr_xavier_normal", layout, key, gain * sqrt(2 / ((double)fan_in + (double)fan_out)), out);
}

tsr_status tsr_kaiming_uniform(const tsr_layout *layout, const tsr_random_key *key, double gain, int64_t fan,
                               tsr_dtensor **out)
{
    TSR_TRY(check_fan("tsr_kaiming_uniform", gain, "fan", fan));
    return make_uniform("tsr_kaiming_uniform", layout, key, gain * sqrt(3 / (double)fan), out);
}

tsr_status tsr_kaiming_normal(const tsr_layout *layout, const tsr_random_key *key, double gain, int64_t fan,
                              tsr_dtensor **out)
{
    TSR_TRY(check_fan("tsr_kaiming_normal", gain, "fan", fan));
    return make_normal("tsr_kaiming_normal", layout, key, gain / sqrt((double)fan), out);
}
