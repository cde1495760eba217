#include "ops/eager/typed.h"
#include "ops/rows/table.h"

#include <tessera/random.h>
#include <tessera/sys/status.h>

#include <math.h>

/* The attributes of a key. */
#define KEY(key)                                                                                                       \
    tsr_attribute_word("generator", (key)->generator == TSR_RANDOM_PHILOX ? "philox" : "threefry"),                    \
        tsr_attribute_ints("key", 2, (const int64_t[]){(int64_t)(key)->words[0], (int64_t)(key)->words[1]})

static tsr_status check_key(const char *caller, const tsr_random_key *key)
{
    if (!key)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: key is NULL", caller);
    if (key->generator == TSR_RANDOM_THREEFRY || key->generator == TSR_RANDOM_PHILOX)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: key has generator %d; make it by tsr_random_key_threefry() or tsr_random_key_philox()",
                          caller, (int)key->generator);
}

static tsr_status check_not_partial(const char *caller, const char *name, const tsr_layout *layout)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[k];
        if (p->kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %s is Partial(%s) on mesh dim %d, but random numbers are values and not terms; "
                                  "take Replicate there",
                                  caller, name, tsr_reduce_op_name(p->op), k);
    }
    return TSR_OK;
}

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
    TSR_TRY(check_key(caller, key));
    const tsr_layout *const layouts[TSR_OP_MOST_OPERANDS] = {tsr_dtensor_layout(out)};
    TSR_TRY(check_not_partial(caller, "out", layouts[0]));
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
    TSR_TRY(check_key(caller, key));
    TSR_TRY(check_not_partial(caller, "layout", layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    const tsr_status status = fill(caller, name, key, count, attributes, made);
    if (status == TSR_OK)
        *out = made;
    else
        tsr_dtensor_destroy(made);
    return status;
}

/* A key of any generator in the place of none, so that attributes can be listed before it is
 * checked. */
static const tsr_random_key *some(const tsr_random_key *key)
{
    static const tsr_random_key none;
    return key ? key : &none;
}

/* Both functions of an op that fills: `settings` is a list of parameters that ends in a comma. */
#define FILLS(name, settings, ...)                                                                                     \
    tsr_status tsr_##name(const tsr_layout *layout, const tsr_random_key *key, settings tsr_dtensor **out)             \
    {                                                                                                                  \
        return make("tsr_" #name, #name, layout, key, ATTRIBUTES(KEY(some(key)), __VA_ARGS__), out);                   \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_random_key *key, settings tsr_dtensor *out)                                 \
    {                                                                                                                  \
        return fill("tsr_" #name "_into", #name, key, ATTRIBUTES(KEY(some(key)), __VA_ARGS__), out);                   \
    }

/* Settings, and the attributes that they are. */
#define UNIFORM_SETTINGS          double low, double high,
#define NORMAL_SETTINGS           double mean, double std,
#define TRUNCATED_NORMAL_SETTINGS double mean, double std, double low, double high,
#define BERNOULLI_SETTINGS        double p,
#define RANDINT_SETTINGS          int64_t low, int64_t high,

FILLS(uniform, UNIFORM_SETTINGS, tsr_attribute_float("low", low), tsr_attribute_float("high", high))
FILLS(normal, NORMAL_SETTINGS, tsr_attribute_float("mean", mean), tsr_attribute_float("std", std))
FILLS(truncated_normal, TRUNCATED_NORMAL_SETTINGS, tsr_attribute_float("mean", mean), tsr_attribute_float("std", std),
      tsr_attribute_float("low", low), tsr_attribute_float("high", high))
FILLS(bernoulli, BERNOULLI_SETTINGS, tsr_attribute_float("p", p))
FILLS(randint, RANDINT_SETTINGS, tsr_attribute_int("low", low), tsr_attribute_int("high", high))

tsr_status tsr_bits(const tsr_layout *layout, const tsr_random_key *key, tsr_dtensor **out)
{
    return make("tsr_bits", "bits", layout, key, ATTRIBUTES(KEY(some(key))), out);
}

tsr_status tsr_bits_into(const tsr_random_key *key, tsr_dtensor *out)
{
    return fill("tsr_bits_into", "bits", key, ATTRIBUTES(KEY(some(key))), out);
}

#define DROPOUT ATTRIBUTES(KEY(key), tsr_attribute_float("p", p))

tsr_status tsr_dropout(const tsr_dtensor *x, double p, const tsr_random_key *key, tsr_dtensor **out)
{
    TSR_TRY(check_key("tsr_dropout", key));
    return tsr_eager_run("tsr_dropout", row_by("dropout", x), DROPOUT, OPERANDS(x), out);
}

tsr_status tsr_dropout_into(const tsr_dtensor *x, double p, const tsr_random_key *key, tsr_dtensor *out)
{
    TSR_TRY(check_key("tsr_dropout_into", key));
    return tsr_eager_run_into("tsr_dropout_into", row_by("dropout", x), DROPOUT, OPERANDS(x), &out);
}

tsr_status tsr_dropout_backward(const tsr_dtensor *x, double p, const tsr_random_key *key, const tsr_dtensor *dout,
                                tsr_dtensor **dx)
{
    TSR_TRY(check_key("tsr_dropout_backward", key));
    return tsr_eager_backward("tsr_dropout_backward", row_by("dropout", x), DROPOUT, OPERANDS(x), dout, WANTED(dx));
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
                ATTRIBUTES(KEY(some(key)), tsr_attribute_float("low", -bound), tsr_attribute_float("high", bound)),
                out);
}

static tsr_status make_normal(const char *caller, const tsr_layout *layout, const tsr_random_key *key, double deviation,
                              tsr_dtensor **out)
{
    return make(caller, "normal", layout, key, ATTRIBUTES(KEY(some(key)), tsr_attribute_float("std", deviation)), out);
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
