#include "ops/kernels/lines/moments.h"

#include "ops/kernels/lines/axes.h"

#include <math.h>
#include <string.h>

#define CHUNK 512

/* What is known of some elements. */
typedef struct moments {
    double count, mean, squares; /* squares: the sum of squared deviations from the mean */
} moments;

typedef struct measuring {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype dtype;
    int code;
    int64_t bytes;
    double correction;
    tsr_reductions all; /* of the result or its gradient, x, and of gradients the output */
} measuring;

static bool is_gradient(int code)
{
    return code == TSR_MOMENTS_VAR_GRADIENT || code == TSR_MOMENTS_STD_GRADIENT;
}

static void begin(const tsr_kernel_call *call, measuring *m)
{
    const bool gradient = is_gradient(call->code);
    const tsr_tensor *const x = &call->inputs[gradient];
    const tsr_tensor *const tensors[] = {gradient ? &call->inputs[0] : &call->outputs[0], x, &call->outputs[0]};
    *m = (measuring){.kernels = tsr_pointwise_kernels_for(call->kernels), .dtype = x->dtype, .code = call->code};
    m->bytes = (int64_t)tsr_dtype_bytes(x->dtype);
    m->correction = call->attributes[2].number;
    tsr_reductions_begin(&m->all, 2 + gradient, tensors, call->attributes);
}

static moments merge(moments a, moments b)
{
    const double count = a.count + b.count, apart = b.mean - a.mean;
    if (b.count == 0)
        return a;
    if (a.count == 0)
        return b;
    return (moments){count, a.mean + apart * (b.count / count),
                     a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

static moments of_values(const tsr_number *values, int64_t n)
{
    moments m = {(double)n, 0, 0};
    for (int64_t i = 0; i < n; i++)
        m.mean += values[i].real;
    m.mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        m.squares += (values[i].real - m.mean) * (values[i].real - m.mean);
    return m;
}

static double variance_of(const measuring *m, const moments *known)
{
    const double count = known->count - m->correction;
    return known->squares / (count > 0 ? count : 0);
}

/* What an element's deviation is multiplied by to be its gradient. */
static double slope_of(const measuring *m, const moments *known)
{
    const double count = known->count - m->correction, deviation = sqrt(variance_of(m, known));
    if (m->code == TSR_MOMENTS_VAR_GRADIENT)
        return 2 / (count > 0 ? count : 0);
    return deviation == 0 ? 0 : 1 / (count * deviation);
}

/* Visits the elements behind a result by chunks: merges them to `*known`, or else writes their
 * gradients: deviations times `slope`. */
static void visit(const measuring *m, bool writes, double slope, moments *known)
{
    tsr_number values[CHUNK];
    tsr_axes lines = m->all.outer;
    const int64_t in = m->all.step[1], out = m->all.step[2], length = m->all.length;
    memcpy(lines.at, m->all.kept.at, sizeof lines.at);
    do {
        for (int64_t done = 0; done < length; done += CHUNK) {
            const int64_t n = length - done < CHUNK ? length - done : CHUNK;
            tsr_numbers_read(m->kernels, m->dtype, lines.at[1] + done * in * m->bytes, in, n, values);
            if (!writes) {
                *known = merge(*known, of_values(values, n));
                continue;
            }
            for (int64_t i = 0; i < n; i++)
                values[i].real = (values[i].real - known->mean) * slope;
            tsr_numbers_write(m->kernels, m->dtype, values, n, lines.at[2] + done * out * m->bytes, out);
        }
    } while (tsr_axes_next(&lines));
}

/* Measures this rank's elements behind each result. */
static void measure_all(measuring *m, moments *known)
{
    for (int64_t i = 0; i < m->all.count; i++) {
        known[i] = (moments){0, 0, 0};
        if (m->all.elements)
            visit(m, false, 0, &known[i]);
        tsr_axes_next(&m->all.kept);
    }
}

static void merge_records(const tsr_kernel_call *call, const measuring *m, moments *known)
{
    for (int64_t i = 0; i < m->all.count; i++) {
        known[i] = (moments){0, 0, 0};
        for (int rank = 0; rank < call->record_count; rank++) {
            const moments *const found = (const void *)((const char *)call->records + rank * call->record_stride);
            known[i] = merge(known[i], found[i]);
        }
    }
}

static void write_all(measuring *m, moments *known)
{
    for (int64_t i = 0; i < m->all.count; i++) {
        tsr_number value;
        if (is_gradient(m->code)) {
            tsr_numbers_read(m->kernels, m->dtype, m->all.kept.at[0], 1, 1, &value);
            if (m->all.elements)
                visit(m, true, value.real * slope_of(m, &known[i]), &known[i]);
        } else {
            const double variance = variance_of(m, &known[i]);
            value.real = m->code == TSR_MOMENTS_STD ? sqrt(variance) : variance;
            tsr_numbers_write(m->kernels, m->dtype, &value, 1, m->all.kept.at[0], 1);
        }
        tsr_axes_next(&m->all.kept);
    }
}

tsr_status tsr_moments_run(const tsr_kernel_call *call)
{
    measuring m;
    begin(call, &m);
    if (call->stage == 0) {
        measure_all(&m, call->record);
        return TSR_OK;
    }
    if (call->stage == TSR_STAGE_WHOLE)
        measure_all(&m, call->workspace);
    else
        merge_records(call, &m, call->workspace);
    write_all(&m, call->workspace);
    return TSR_OK;
}

int64_t tsr_moments_record_bytes(const tsr_kernel_call *call)
{
    measuring m;
    begin(call, &m);
    return m.all.count * (int64_t)sizeof(moments);
}

int64_t tsr_moments_workspace_bytes(const tsr_kernel_call *call)
{
    return tsr_moments_record_bytes(call);
}
