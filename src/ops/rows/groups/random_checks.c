#include "ops/rows/groups/random_checks.h"

#include "ops/kernels/random/random.h"

#include <tessera/sys/status.h>

#include <math.h>

/* What an op makes. */
static const struct {
    const char *taken;
    tsr_dtype dtypes[5];
} kinds[] = {
    [TSR_RANDOM_UNIFORM] = {"f64, f32, f16, bf16", {TSR_F64, TSR_F32, TSR_F16, TSR_BF16}},
    [TSR_RANDOM_NORMAL] = {"f64, f32, f16, bf16", {TSR_F64, TSR_F32, TSR_F16, TSR_BF16}},
    [TSR_RANDOM_TRUNCATED] = {"f64, f32, f16, bf16", {TSR_F64, TSR_F32, TSR_F16, TSR_BF16}},
    [TSR_RANDOM_BERNOULLI] = {"bool", {TSR_BOOL}},
    [TSR_RANDOM_BITS] = {"i64, i32, u64, u32", {TSR_I64, TSR_I32, TSR_U64, TSR_U32}},
    [TSR_RANDOM_INTEGERS] = {"i64, i32", {TSR_I64, TSR_I32}},
    [TSR_RANDOM_DROPOUT] = {"f64, f32, f16, bf16", {TSR_F64, TSR_F32, TSR_F16, TSR_BF16}},
};

static tsr_status refuse_number(const tsr_op_case *c, int attribute, const char *wanted)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g, but must be %s", c->caller, c->attributes[attribute].name,
                          c->attributes[attribute].number, wanted);
}

static tsr_status check_range(const tsr_op_case *c, int low)
{
    if (!isfinite(c->attributes[low].number))
        return refuse_number(c, low, "finite");
    if (c->attributes[low + 1].number > c->attributes[low].number && isfinite(c->attributes[low + 1].number))
        return TSR_OK;
    return refuse_number(c, low + 1, "finite and above low");
}

static tsr_status check_deviation(const tsr_op_case *c)
{
    if (!isfinite(c->attributes[TSR_RANDOM_FIRST].number))
        return refuse_number(c, TSR_RANDOM_FIRST, "finite");
    if (c->attributes[TSR_RANDOM_FIRST + 1].number >= 0 && isfinite(c->attributes[TSR_RANDOM_FIRST + 1].number))
        return TSR_OK;
    return refuse_number(c, TSR_RANDOM_FIRST + 1, "0 or more, and finite");
}

static tsr_status check_integers(const tsr_op_case *c, tsr_dtype dtype)
{
    const int64_t low = c->attributes[TSR_RANDOM_FIRST].integer, high = c->attributes[TSR_RANDOM_FIRST + 1].integer;
    if (high <= low)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: high is %lld, but must be above low, %lld", c->caller,
                              (long long)high, (long long)low);
    if (dtype == TSR_I64 || (low >= INT32_MIN && high - 1 <= INT32_MAX))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: low is %lld and high is %lld, between which i32 lacks integers; use "
                          "i64",
                          c->caller, (long long)low, (long long)high);
}

static tsr_status check_settings(const tsr_op_case *c, tsr_dtype dtype)
{
    switch (c->op->code) {
    case TSR_RANDOM_UNIFORM:
        return check_range(c, TSR_RANDOM_FIRST);
    case TSR_RANDOM_NORMAL:
        return check_deviation(c);
    case TSR_RANDOM_TRUNCATED:
        TSR_TRY(check_deviation(c));
        if (c->attributes[TSR_RANDOM_FIRST + 1].number == 0)
            return refuse_number(c, TSR_RANDOM_FIRST + 1, "above 0");
        return check_range(c, TSR_RANDOM_FIRST + 2);
    case TSR_RANDOM_INTEGERS:
        return check_integers(c, dtype);
    case TSR_RANDOM_BITS:
        return TSR_OK;
    default:
        if (c->attributes[TSR_RANDOM_FIRST].number >= 0 && c->attributes[TSR_RANDOM_FIRST].number <= 1)
            return TSR_OK;
        return refuse_number(c, TSR_RANDOM_FIRST, "a probability, from 0 to 1");
    }
}

tsr_status tsr_check_random(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[0]);
    int at = 0;
    while (kinds[c->op->code].dtypes[at] && kinds[c->op->code].dtypes[at] != dtype)
        at++;
    if (!kinds[c->op->code].dtypes[at])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes %s", c->caller, c->op->operands[0],
                              tsr_dtype_name(dtype), c->op->name, kinds[c->op->code].taken);
    if (c->attributes[TSR_RANDOM_KEY].count != 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: key has %d numbers, but must have 2", c->caller,
                              c->attributes[TSR_RANDOM_KEY].count);
    results[0] = dtype;
    return check_settings(c, dtype);
}
