#include "ops/kernels/random/random.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/functions.h"
#include "ops/kernels/lines/axes.h"
#include "ops/kernels/lines/positions.h"
#include "ops/kernels/random/generators.h"
#include "ops/kernels/random/random_kernels.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Elements that are made at once, with room for groups that begin before and end behind them. */
#define CHUNK 512
#define ROOM  (CHUNK + 2 * TSR_RANDOM_GROUP)

static const tsr_random_kernels *const sets[] = TSR_KERNEL_SETS(tsr_random_kernels);

typedef struct filling {
    const tsr_random_kernels *random;
    const tsr_pointwise_kernels *kernels;
    const tsr_attribute *settings; /* of the op itself */
    tsr_dtype dtype, computed;
    int code, generator;
    uint64_t key[2];
} filling;

/* Numbers of a group of elements, by dtype of the computation. */
typedef union numbers {
    _Alignas(64) float f32[ROOM];
    double f64[ROOM];
    uint32_t bits32[ROOM];
    uint64_t bits64[ROOM];
    uint8_t bools[ROOM];
} numbers;

static const tsr_random_kernels *find_kernels(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

/* Uniform numbers of f32, or with fewer digits of a narrower dtype. */
static void draw_f32(const filling *f, uint64_t first, int64_t n, double low, double high, float *to)
{
    uint32_t bits[ROOM];
    int shift = 9, digits = 23;
    const bool philox = f->generator == TSR_LOOPS_PHILOX;
    if (f->dtype == TSR_BF16)
        shift = 1, digits = 7;
    else if (f->dtype == TSR_F16)
        shift = 6, digits = 10;
    f->random->bits32[f->generator](f->key, first, n, bits);
    f->random->uniform_f32(bits, n, philox ? 0 : shift, digits + philox, (float)low, (float)high, to);
}

static void draw_f64(const filling *f, uint64_t first, int64_t n, double low, double high, double *to)
{
    uint64_t bits[ROOM];
    const bool philox = f->generator == TSR_LOOPS_PHILOX;
    f->random->bits64[f->generator](f->key, first, n, bits);
    f->random->uniform_f64(bits, n, philox ? 0 : 12, 52 + philox, low, high, to);
}

/* A filling that draws with all digits of f32. */
static filling widen_digits(const filling *f)
{
    filling wide = *f;
    wide.dtype = wide.dtype == TSR_F64 ? TSR_F64 : TSR_F32;
    return wide;
}

/* Multiplies and adds, one after the other, in the dtype of the computation. */
static void scale(const filling *f, int64_t n, double mean, double deviation, numbers *to)
{
    const float by = (float)deviation, add = (float)mean;
    for (int64_t i = 0; i < n; i++) {
        if (f->computed == TSR_F64)
            to->f64[i] = to->f64[i] * deviation + mean;
        else
            to->f32[i] = to->f32[i] * by + add;
    }
}

/* Normal numbers by the inverse error function of uniform ones between `low` and `high`. */
static void invert(const filling *f, uint64_t first, int64_t n, double low, double high, numbers *to)
{
    const filling wide = widen_digits(f);
    if (f->computed == TSR_F64) {
        draw_f64(&wide, first, n, low, high, to->f64);
        f->random->invert_f64(to->f64, n);
        return;
    }
    draw_f32(&wide, first, n, low, high, to->f32);
    f->random->invert_f32(to->f32, n);
}

static void fill_normal(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    numbers bits;
    const bool wide = f->computed == TSR_F64;
    if (f->generator == TSR_LOOPS_THREEFRY) {
        invert(f, first, n, wide ? -0x1.fffffffffffffp-1 : -0x1.fffffep-1, 1, to);
    } else if (wide) {
        f->random->bits64[f->generator](f->key, first, n, bits.bits64);
        f->random->box_muller_f64(bits.bits64, n, to->f64);
    } else {
        f->random->bits32[f->generator](f->key, first, n, bits.bits32);
        f->random->box_muller_f32(bits.bits32, n, to->f32);
    }
    scale(f, n, f->settings[0].number, f->settings[1].number, to);
}

static double error_function(double x)
{
    return x < 0 ? tsr_f64_erfc(-x) - 1 : 1 - tsr_f64_erfc(x);
}

/* Normal numbers between bounds, which rounding must not leave. */
static void fill_truncated(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    const double mean = f->settings[0].number, deviation = f->settings[1].number;
    const double low = f->settings[2].number, high = f->settings[3].number, root = 1.41421356237309504880 * deviation;
    invert(f, first, n, error_function((low - mean) / root), error_function((high - mean) / root), to);
    scale(f, n, mean, deviation, to);
    for (int64_t i = 0; i < n; i++) {
        if (f->computed == TSR_F64)
            to->f64[i] = to->f64[i] < low ? low : to->f64[i] > high ? high : to->f64[i];
        else
            to->f32[i] = to->f32[i] < low ? (float)low : to->f32[i] > high ? (float)high : to->f32[i];
    }
}

static void fill_uniform(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    const double low = f->settings[0].number, high = f->settings[1].number;
    if (f->computed == TSR_F64)
        draw_f64(f, first, n, low, high, to->f64);
    else
        draw_f32(f, first, n, low, high, to->f32);
}

static void fill_bernoulli(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    float draws[ROOM];
    const float p = (float)f->settings[0].number;
    draw_f32(f, first, n, 0, 1, draws);
    for (int64_t i = 0; i < n; i++)
        to->bools[i] = draws[i] < p;
}

static void fill_bits(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    if (tsr_dtype_bytes(f->dtype) == 8)
        f->random->bits64[f->generator](f->key, first, n, to->bits64);
    else
        f->random->bits32[f->generator](f->key, first, n, to->bits32);
}

/* Adds to the remainder of bits that of other, higher ones, as jax.random.randint() does. */
static void add_higher(const filling *f, uint64_t first, int64_t n, uint64_t span, numbers *to)
{
    numbers higher;
    filling other = *f;
    const bool wide = tsr_dtype_bytes(f->dtype) == 8;
    const uint64_t half = wide ? UINT64_C(1) << 32 : UINT64_C(1) << 16;
    const uint64_t factor = wide ? (half % span) * (half % span) % span
                                 : (uint32_t)((uint32_t)(half % span) * (uint32_t)(half % span)) % (uint32_t)span;
    for (int part = 0; part < 2; part++) {
        const uint64_t words = tsr_threefry((uint32_t)f->key[0], (uint32_t)f->key[1], (uint64_t)part);
        other.key[0] = words >> 32;
        other.key[1] = (uint32_t)words;
        fill_bits(&other, first, n, part ? to : &higher);
    }
    for (int64_t i = 0; i < n; i++) {
        if (wide)
            to->bits64[i] = higher.bits64[i] % span * factor + to->bits64[i] % span;
        else
            to->bits32[i] = higher.bits32[i] % (uint32_t)span * (uint32_t)factor + to->bits32[i] % (uint32_t)span;
    }
}

static void fill_integers(const filling *f, uint64_t first, int64_t n, numbers *to)
{
    const uint64_t low = (uint64_t)f->settings[0].integer, span = (uint64_t)f->settings[1].integer - low;
    if (f->generator == TSR_LOOPS_THREEFRY)
        add_higher(f, first, n, span, to);
    else
        fill_bits(f, first, n, to);
    for (int64_t i = 0; i < n; i++) {
        if (tsr_dtype_bytes(f->dtype) == 8)
            to->bits64[i] = to->bits64[i] % span + low;
        else
            to->bits32[i] = to->bits32[i] % (uint32_t)span + (uint32_t)low;
    }
}

/* Drops elements of the input, `lead` behind the first of the group. */
static void drop(const filling *f, uint64_t first, int64_t n, int64_t lead, numbers *to)
{
    float draws[ROOM];
    filling single = *f;
    single.dtype = TSR_F32;
    const float keep = (float)(1 - f->settings[0].number);
    draw_f32(&single, first, n, 0, 1, draws);
    if (f->computed == TSR_F64)
        f->random->drop_f64(draws + lead, n - lead, keep, to->f64 + lead);
    else
        f->random->drop_f32(draws + lead, n - lead, keep, to->f32 + lead);
}

/* Fills `n` elements whose indices in the whole tensor go on from `global`. */
static void fill_chunk(const filling *f, uint64_t global, int64_t n, const char *in, int64_t in_stride, char *out,
                       int64_t stride)
{
    static void (*const fills[])(const filling *, uint64_t, int64_t, numbers *) = {
        [TSR_RANDOM_UNIFORM] = fill_uniform,     [TSR_RANDOM_NORMAL] = fill_normal,
        [TSR_RANDOM_TRUNCATED] = fill_truncated, [TSR_RANDOM_BERNOULLI] = fill_bernoulli,
        [TSR_RANDOM_BITS] = fill_bits,           [TSR_RANDOM_INTEGERS] = fill_integers};
    numbers made;
    const int64_t lead = (int64_t)(global % TSR_RANDOM_GROUP), bytes = (int64_t)tsr_dtype_bytes(f->computed);
    const int64_t whole = (lead + n + TSR_RANDOM_GROUP - 1) / TSR_RANDOM_GROUP * TSR_RANDOM_GROUP;
    char *const begin = (char *)&made + lead * bytes;
    if (f->code == TSR_RANDOM_DROPOUT) {
        memset(&made, 0, (size_t)(whole * bytes));
        f->kernels->gather[f->dtype](in, begin, n, in_stride);
        drop(f, global - (uint64_t)lead, whole, lead, &made);
    } else {
        fills[f->code](f, global - (uint64_t)lead, whole, &made);
    }
    f->kernels->scatter[f->dtype](begin, out, n, stride);
}

/* A line of elements whose indices in the whole tensor follow one another within intervals. */
typedef struct line {
    tsr_positions positions;
    int64_t inner; /* elements of each position */
    int64_t in_stride, stride;
} line;

static void fill_line(const filling *f, const line *l, uint64_t base, const char *in, char *out)
{
    const int64_t bytes = (int64_t)tsr_dtype_bytes(f->dtype);
    for (int64_t i = 0, done = 0; i < l->positions.count; i++) {
        const int64_t end = l->positions.list[i].end * l->inner, first = done;
        const uint64_t global = base + (uint64_t)(l->positions.list[i].begin * l->inner);
        for (; done < end; done += CHUNK < end - done ? CHUNK : end - done)
            fill_chunk(f, global + (uint64_t)(done - first), CHUNK < end - done ? CHUNK : end - done,
                       in + done * l->in_stride * bytes, l->in_stride, out + done * l->stride * bytes, l->stride);
    }
}

/* True if both tensors have dim `dim` and those behind it without gaps, and no mesh dim cuts those
 * behind it. */
static bool is_one_line(const tsr_kernel_call *call, int dim)
{
    const tsr_tensor *const in = &call->inputs[0], *const out = &call->outputs[0];
    for (int k = dim; k + 1 < out->ndim; k++) {
        if (out->shape[k + 1] != tsr_layout_shape(call->result_layouts[0])[k + 1] ||
            out->strides[k] != out->strides[k + 1] * out->shape[k + 1] ||
            in->strides[k] != in->strides[k + 1] * in->shape[k + 1])
            return false;
    }
    return true;
}

/* Fills all lines along `dim` and the dims behind it. */
static void fill_lines(const filling *f, const tsr_kernel_call *call, const tsr_positions *positions, int dim)
{
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->outputs[0]};
    const int64_t *const shape = tsr_layout_shape(call->result_layouts[0]);
    const int last = tensors[1]->ndim - 1;
    line l = {positions[dim], 1, tensors[0]->strides[last], tensors[1]->strides[last]};
    int64_t steps[TSR_MAX_DIMS], step = 1;
    tsr_axes outer;
    for (int k = last; k >= 0; k--) {
        steps[k] = step;
        step *= shape[k];
    }
    l.inner = steps[dim];
    tsr_axes_begin(&outer, 2, tensors);
    for (int k = 0; k < dim; k++)
        tsr_axes_add(&outer, tensors, (const int[]){k, k}, tensors[1]->shape[k]);
    if (tsr_axes_count(&outer) == 0)
        return;
    do {
        uint64_t base = 0;
        for (int k = 0; k < dim; k++)
            base += (uint64_t)(tsr_positions_global(&positions[k], outer.index[k]) * steps[k]);
        fill_line(f, &l, base, outer.at[0], outer.at[1]);
    } while (tsr_axes_next(&outer));
}

tsr_status tsr_random_run(const tsr_kernel_call *call)
{
    const tsr_tensor *const out = &call->outputs[0];
    const int64_t *const key = call->attributes[TSR_RANDOM_KEY].list;
    filling f = {.random = find_kernels(call->kernels), .kernels = tsr_pointwise_kernels_for(call->kernels)};
    f.settings = &call->attributes[TSR_RANDOM_FIRST];
    /* Bits are written as signed integers are. */
    f.dtype = out->dtype == TSR_U32 ? TSR_I32 : out->dtype == TSR_U64 ? TSR_I64 : out->dtype;
    f.computed = tsr_pointwise_computes_in(f.dtype);
    f.code = call->code;
    f.generator = (int)call->attributes[TSR_RANDOM_GENERATOR].integer;
    f.key[0] = (uint64_t)key[0];
    f.key[1] = (uint64_t)key[1];
    if (out->ndim == 0) {
        fill_chunk(&f, 0, 1, call->inputs[0].data, 1, out->data, 1);
        return TSR_OK;
    }
    tsr_positions positions[TSR_MAX_DIMS];
    tsr_interval *list = call->workspace;
    for (int dim = 0; dim < out->ndim; dim++) {
        TSR_TRY(tsr_positions_read(call->result_layouts[0], call->coordinate, dim, list, &positions[dim]));
        list += positions[dim].count;
    }
    int dim = out->ndim - 1;
    while (dim > 0 && is_one_line(call, dim - 1))
        dim--;
    fill_lines(&f, call, positions, dim);
    return TSR_OK;
}

int64_t tsr_random_workspace_bytes(const tsr_kernel_call *call)
{
    int64_t count = 0;
    for (int dim = 0; dim < call->outputs[0].ndim; dim++)
        count += tsr_positions_count(call->result_layouts[0], call->coordinate, dim);
    return count * (int64_t)sizeof(tsr_interval);
}
