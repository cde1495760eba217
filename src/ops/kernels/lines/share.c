#include "ops/kernels/lines/share.h"

#include "ops/kernels/lines/axes.h"
#include "ops/kernels/reduce.h"

#include <math.h>
#include <string.h>

#define CHUNK 512

/* What a reduction of some elements is: the largest and how many there are of it, or the product of
 * those that are not 0 and how many are. */
typedef struct outcome {
    double value, count;
} outcome;

typedef struct sharing {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype dtype;
    int code;
    int64_t bytes;
    tsr_reductions all; /* of the gradient, x and the output */
} sharing;

static void begin(const tsr_kernel_call *call, sharing *s)
{
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->inputs[1], &call->outputs[0]};
    *s = (sharing){.kernels = tsr_pointwise_kernels_for(call->kernels), .code = call->code};
    s->dtype = call->inputs[1].dtype;
    s->bytes = (int64_t)tsr_dtype_bytes(s->dtype);
    tsr_reductions_begin(&s->all, 3, tensors, call->attributes);
}

static outcome nothing(int code)
{
    return (outcome){code == TSR_REDUCE_PROD ? 1 : code == TSR_REDUCE_MAX ? -INFINITY : INFINITY, 0};
}

static bool is_same(double x, double y)
{
    return x == y || (x != x && y != y);
}

/* Joins what two sets of elements are. */
static outcome join(int code, outcome a, outcome b)
{
    if (code == TSR_REDUCE_PROD)
        return (outcome){a.value * b.value, a.count + b.count};
    if (is_same(a.value, b.value))
        return (outcome){a.value, a.count + b.count};
    const bool second = b.value != b.value || (code == TSR_REDUCE_MAX ? b.value > a.value : b.value < a.value);
    return second && a.value == a.value ? b : a;
}

static outcome of_element(int code, double x)
{
    const bool is_zero = code == TSR_REDUCE_PROD && x == 0;
    return (outcome){is_zero ? 1 : x, code != TSR_REDUCE_PROD || is_zero};
}

/* The share of one element in a gradient d. */
static double share_of(int code, double x, double d, outcome all)
{
    if (code != TSR_REDUCE_PROD)
        return is_same(x, all.value) ? d / all.count : 0;
    if (all.count > 1 || (all.count == 1 && x != 0))
        return 0;
    return d * (x == 0 ? all.value : all.value / x);
}

/* Visits the elements behind the gradient at `s->all.kept`, by chunks: joins them to `*all`, or
 * else writes their shares of d. */
static void visit(const sharing *s, bool shares, double d, outcome *all)
{
    tsr_number values[CHUNK];
    tsr_axes lines = s->all.outer;
    memcpy(lines.at, s->all.kept.at, sizeof lines.at);
    do {
        for (int64_t done = 0; done < s->all.length; done += CHUNK) {
            const int64_t n = s->all.length - done < CHUNK ? s->all.length - done : CHUNK;
            tsr_numbers_read(s->kernels, s->dtype, lines.at[1] + done * s->all.step[1] * s->bytes, s->all.step[1], n,
                             values);
            for (int64_t i = 0; i < n; i++) {
                if (shares)
                    values[i].real = share_of(s->code, values[i].real, d, *all);
                else
                    *all = join(s->code, *all, of_element(s->code, values[i].real));
            }
            if (shares)
                tsr_numbers_write(s->kernels, s->dtype, values, n, lines.at[2] + done * s->all.step[2] * s->bytes,
                                  s->all.step[2]);
        }
    } while (tsr_axes_next(&lines));
}

/* Finds what each reduction of this rank's elements is. */
static void reduce_all(sharing *s, outcome *all)
{
    for (int64_t i = 0; i < s->all.count; i++) {
        all[i] = nothing(s->code);
        if (s->all.elements)
            visit(s, false, 0, &all[i]);
        tsr_axes_next(&s->all.kept);
    }
}

static void write_all(sharing *s, outcome *all)
{
    tsr_number d;
    for (int64_t i = 0; i < s->all.count && s->all.elements; i++) {
        tsr_numbers_read(s->kernels, s->dtype, s->all.kept.at[0], 1, 1, &d);
        visit(s, true, d.real, &all[i]);
        tsr_axes_next(&s->all.kept);
    }
}

/* Joins what all ranks found, in their order. */
static void join_records(const tsr_kernel_call *call, const sharing *s, outcome *all)
{
    for (int64_t i = 0; i < s->all.count; i++) {
        all[i] = nothing(s->code);
        for (int rank = 0; rank < call->record_count; rank++) {
            const outcome *const found = (const void *)((const char *)call->records + rank * call->record_stride);
            all[i] = join(s->code, all[i], found[i]);
        }
    }
}

tsr_status tsr_share_run(const tsr_kernel_call *call)
{
    sharing s;
    begin(call, &s);
    if (call->stage == 0) {
        reduce_all(&s, call->record);
        return TSR_OK;
    }
    if (call->stage == TSR_STAGE_WHOLE)
        reduce_all(&s, call->workspace);
    else
        join_records(call, &s, call->workspace);
    write_all(&s, call->workspace);
    return TSR_OK;
}

int64_t tsr_share_record_bytes(const tsr_kernel_call *call)
{
    sharing s;
    begin(call, &s);
    return s.all.count * (int64_t)sizeof(outcome);
}

int64_t tsr_share_workspace_bytes(const tsr_kernel_call *call)
{
    return tsr_share_record_bytes(call);
}
