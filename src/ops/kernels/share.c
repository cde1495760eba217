#include "ops/kernels/share.h"

#include "ops/kernels/axes.h"
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
    tsr_axes kept, outer;  /* of the gradient, x and the output; outer: the reduced dims but the last */
    int64_t length;        /* elements along the last reduced dim */
    int64_t x_step, step;  /* from one to the next of x and of the output, in elements */
    int64_t count, behind; /* reductions, and elements behind each */
} sharing;

static void begin(const tsr_kernel_call *call, sharing *s)
{
    bool marked[TSR_MAX_DIMS];
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->inputs[1], &call->outputs[0]};
    *s = (sharing){.kernels = tsr_pointwise_kernels_for(call->kernels), .code = call->code, .length = 1};
    s->dtype = call->inputs[1].dtype;
    s->bytes = (int64_t)tsr_dtype_bytes(s->dtype);
    tsr_reduce_mark(call->attributes[0].count, call->attributes[0].list, call->inputs[1].ndim, marked);
    tsr_axes_split(3, tensors, marked, call->attributes[1].integer != 0, &s->kept, &s->outer);
    s->count = tsr_axes_count(&s->kept);
    s->behind = tsr_axes_count(&s->outer);
    if (s->outer.count == 0)
        return;
    const int last = --s->outer.count;
    s->length = s->outer.size[last];
    s->x_step = s->outer.step[last][1] / s->bytes;
    s->step = s->outer.step[last][2] / s->bytes;
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

/* Visits the elements behind the gradient at `s->kept`, by chunks: joins them to `*all`, or else
 * writes their shares of d. */
static void visit(const sharing *s, bool shares, double d, outcome *all)
{
    tsr_number values[CHUNK];
    tsr_axes lines = s->outer;
    memcpy(lines.at, s->kept.at, sizeof lines.at);
    do {
        for (int64_t done = 0; done < s->length; done += CHUNK) {
            const int64_t n = s->length - done < CHUNK ? s->length - done : CHUNK;
            tsr_numbers_read(s->kernels, s->dtype, lines.at[1] + done * s->x_step * s->bytes, s->x_step, n, values);
            for (int64_t i = 0; i < n; i++) {
                if (shares)
                    values[i].real = share_of(s->code, values[i].real, d, *all);
                else
                    *all = join(s->code, *all, of_element(s->code, values[i].real));
            }
            if (shares)
                tsr_numbers_write(s->kernels, s->dtype, values, n, lines.at[2] + done * s->step * s->bytes, s->step);
        }
    } while (tsr_axes_next(&lines));
}

/* Finds what each reduction of this rank's elements is. */
static void reduce_all(sharing *s, outcome *all)
{
    for (int64_t i = 0; i < s->count; i++) {
        all[i] = nothing(s->code);
        if (s->behind)
            visit(s, false, 0, &all[i]);
        tsr_axes_next(&s->kept);
    }
}

static void write_all(sharing *s, outcome *all)
{
    tsr_number d;
    for (int64_t i = 0; i < s->count && s->behind; i++) {
        tsr_numbers_read(s->kernels, s->dtype, s->kept.at[0], 1, 1, &d);
        visit(s, true, d.real, &all[i]);
        tsr_axes_next(&s->kept);
    }
}

/* Joins what all ranks found, in their order. */
static void join_records(const tsr_kernel_call *call, const sharing *s, outcome *all)
{
    for (int64_t i = 0; i < s->count; i++) {
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
    return s.count * (int64_t)sizeof(outcome);
}

int64_t tsr_share_workspace_bytes(const tsr_kernel_call *call)
{
    return tsr_share_record_bytes(call);
}
