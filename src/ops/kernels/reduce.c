#include "ops/kernels/reduce.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/squares_kernels.h"

#include <math.h>
#include <string.h>

#define CHUNK 512

static const tsr_squares_kernels *const sets[] = TSR_KERNEL_SETS(tsr_squares_kernels);

/* A dim of the input, and how far apart its elements are in input and output. */
typedef struct axis {
    int64_t size, in, out;
} axis;

typedef struct reduction {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype memory, computed, summed; /* dtypes of elements in memory, in loops and of sums */
    tsr_dtype written;                  /* of results in memory */
    int64_t bytes, written_bytes;
    bool divides;
    double divisor;                     /* sums are divided by it if `divides` is set */
    tsr_pointwise_loop *combine;        /* of two operands; NULL: sums */
    tsr_pointwise_loop *test;           /* terms are whether elements pass it; NULL: they are elements */
    const tsr_squares_kernels *squares; /* terms are squares of elements times `factor`; NULL: they are not */
    double factor;
    int64_t identity; /* the bits of the reduction of no terms, in `summed` */
    axis kept[TSR_MAX_DIMS], reduced[TSR_MAX_DIMS];
    int kept_count, reduced_count;
} reduction;

bool tsr_reduce_mark(int count, const int64_t *dims, int ndim, bool marked[TSR_MAX_DIMS])
{
    memset(marked, count == 0, TSR_MAX_DIMS * sizeof *marked);
    for (int i = 0; i < count; i++) {
        if (dims[i] < 0 || dims[i] >= ndim || marked[dims[i]])
            return false;
        marked[dims[i]] = true;
    }
    return true;
}

/* Goes on to the next index over axes, and moves both addresses; false: that was the last. */
static bool advance(const reduction *r, const axis *axes, int count, int64_t *index, const char **in, char **out)
{
    for (int i = count - 1; i >= 0; i--) {
        const bool more = ++index[i] < axes[i].size;
        const int64_t steps = more ? 1 : 1 - axes[i].size;
        *in += steps * axes[i].in * r->bytes;
        *out += steps * axes[i].out * r->written_bytes;
        if (more)
            return true;
        index[i] = 0;
    }
    return false;
}

/* Reads n elements, CHUNK at most, in the dtype of the computation. */
static const void *read_elements(const reduction *r, const char *from, int64_t n, int64_t stride, void *array)
{
    if (r->memory == r->computed && stride == 1)
        return from;
    r->kernels->gather[r->memory](from, array, n, stride);
    return array;
}

/* Reads n elements as terms of sums. */
static const void *read_terms(const reduction *r, const char *from, int64_t n, int64_t stride, void *terms)
{
    _Alignas(64) char array[CHUNK * sizeof(double)], passed[CHUNK];
    if (r->squares) {
        r->squares->squares[r->computed](read_elements(r, from, n, stride, array), r->factor, terms, n);
        return terms;
    }
    if (r->test) {
        r->test((const void *const[]){read_elements(r, from, n, stride, array), NULL, NULL}, passed, n, NULL);
        r->kernels->convert[TSR_BOOL][r->summed]((const void *const[]){passed, NULL, NULL}, terms, n, NULL);
        return terms;
    }
    if (r->memory == r->summed && stride == 1)
        return from;
    if (r->computed == r->summed) {
        r->kernels->gather[r->memory](from, terms, n, stride);
        return terms;
    }
    r->kernels->gather[r->memory](from, array, n, stride);
    r->kernels->convert[r->computed][r->summed]((const void *const[]){array, NULL, NULL}, terms, n, 0);
    return terms;
}

static void write_sums(const reduction *r, void *sums, char *to, int64_t n, int64_t stride)
{
    _Alignas(64) char array[CHUNK * sizeof(double)];
    double *const floats = sums;
    for (int64_t i = 0; i < n && r->divides; i++)
        floats[i] /= r->divisor;
    r->kernels->convert[r->summed][tsr_pointwise_computes_in(r->written)]((const void *const[]){sums, NULL, NULL},
                                                                          array, n, 0);
    r->kernels->scatter[r->written](array, to, n, stride);
}

/* Sets n results to that of no terms. */
static void clear(const reduction *r, void *results, int64_t n)
{
    const size_t bytes = tsr_dtype_bytes(r->summed);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)results + (size_t)i * bytes, &r->identity, bytes);
}

/* Combines n results with one more term each. */
static void combine_rows(const reduction *r, const void *terms, void *results, int64_t n)
{
    if (r->combine)
        r->combine((const void *const[]){results, terms, NULL}, results, n, 0);
    else
        r->kernels->add_rows[r->summed](terms, results, n);
}

/* False where a reduced axis is empty, so that no result has a term. */
static bool has_terms(const reduction *r)
{
    bool some = true;
    for (int i = 0; i < r->reduced_count; i++)
        some = some && r->reduced[i].size > 0;
    return some;
}

/* Reduces n elements along `row`, a kept axis, over all reduced ones. */
static void reduce_row(const reduction *r, const axis *row, const char *in, char *out, int64_t n)
{
    _Alignas(64) char sums[CHUNK * sizeof(double)], terms[CHUNK * sizeof(double)];
    int64_t index[TSR_MAX_DIMS] = {0};
    const char *at = in;
    char *ignored = NULL;
    bool more = has_terms(r);
    clear(r, sums, n);
    while (more) {
        combine_rows(r, read_terms(r, at, n, row->in, terms), sums, n);
        more = advance(r, r->reduced, r->reduced_count, index, &at, &ignored);
    }
    write_sums(r, sums, out, n, row->out);
}

/* The number of results that a last axis of `size` is first reduced to: of sums 16, else a power of
 * two. */
static int64_t count_lanes(const reduction *r, int64_t size)
{
    int64_t count = r->combine ? 1 : TSR_POINTWISE_LANES;
    while (r->combine && count < size && count < CHUNK)
        count *= 2;
    return count;
}

/* Combines lanes: 16 sums in order, others by halves. */
static void fold(const reduction *r, char *lanes, int64_t count)
{
    const int64_t bytes = (int64_t)tsr_dtype_bytes(r->summed);
    if (!r->combine)
        for (int64_t i = 1; i < count; i++)
            combine_rows(r, lanes + i * bytes, lanes, 1);
    else
        for (int64_t half = count / 2; half > 0; half /= 2)
            combine_rows(r, lanes + half * bytes, lanes, half);
}

/* Reduces all elements along the reduced axes, the last of which is the tensor's last dim. */
static void reduce_lanes(const reduction *r, const char *in, char *out)
{
    _Alignas(64) char lanes[CHUNK * sizeof(double)], terms[CHUNK * sizeof(double)];
    const axis *const row = &r->reduced[r->reduced_count - 1];
    const int64_t count = count_lanes(r, row->size);
    int64_t index[TSR_MAX_DIMS] = {0};
    const char *at = in;
    char *ignored = NULL;
    bool more = has_terms(r);
    clear(r, lanes, count);
    while (more) {
        for (int64_t done = 0; done < row->size; done += CHUNK) {
            const int64_t n = row->size - done < CHUNK ? row->size - done : CHUNK;
            if (r->squares) {
                r->squares->add_squares[r->computed](
                    read_elements(r, at + done * row->in * r->bytes, n, row->in, terms), r->factor, (double *)lanes, n);
                continue;
            }
            const void *const read = read_terms(r, at + done * row->in * r->bytes, n, row->in, terms);
            if (r->combine)
                combine_rows(r, read, lanes, n);
            else
                r->kernels->add_lanes[r->summed](read, lanes, n);
        }
        more = advance(r, r->reduced, r->reduced_count - 1, index, &at, &ignored);
    }
    fold(r, lanes, count);
    write_sums(r, lanes, out, 1, 1);
}

static void run_reduction(const reduction *r, bool last_reduced, const char *in, char *out)
{
    int64_t index[TSR_MAX_DIMS] = {0};
    const int outer = r->kept_count - !last_reduced;
    for (int i = 0; i < r->kept_count; i++) {
        if (r->kept[i].size == 0)
            return;
    }
    do {
        if (last_reduced) {
            reduce_lanes(r, in, out);
            continue;
        }
        const axis *const row = &r->kept[outer];
        for (int64_t done = 0; done < row->size; done += CHUNK)
            reduce_row(r, row, in + done * row->in * r->bytes, out + done * row->out * r->written_bytes,
                       row->size - done < CHUNK ? row->size - done : CHUNK);
    } while (advance(r, r->kept, outer, index, &in, &out));
}

/* The bits of an f64, f32, i64 or i32. */
static int64_t bits_of(tsr_dtype dtype, double value, int64_t integer)
{
    int64_t bits = integer;
    const float narrow = (float)value;
    if (dtype == TSR_F64)
        memcpy(&bits, &value, sizeof value);
    if (dtype == TSR_F32)
        memcpy(&bits, &narrow, sizeof narrow);
    if (dtype == TSR_I32)
        bits = 0, memcpy(&bits, &(int32_t){(int32_t)integer}, sizeof(int32_t));
    return bits;
}

/* Chooses how terms of elements of `memory` are combined. Bools are i32. */
static void choose_loop(reduction *r, int code)
{
    const bool is_bool = r->memory == TSR_BOOL || code == TSR_REDUCE_FINITE;
    const bool is_float = tsr_dtype_get(r->memory)->kind == TSR_CLASS_FLOAT;
    const bool wide = code == TSR_REDUCE_SUM || code == TSR_REDUCE_MEAN || code == TSR_REDUCE_PROD;
    const bool rises = code == TSR_REDUCE_MAX || code == TSR_REDUCE_ANY;
    r->computed = tsr_pointwise_computes_in(r->memory);
    r->summed = is_bool ? TSR_I32 : !wide ? r->computed : is_float ? TSR_F64 : TSR_I64;
    r->summed = code == TSR_REDUCE_SQUARES ? TSR_F64 : r->summed;
    r->test = code == TSR_REDUCE_FINITE ? r->kernels->loops[TSR_POINTWISE_ISFINITE][r->computed] : NULL;
    if (code == TSR_REDUCE_SUM || code == TSR_REDUCE_MEAN || code == TSR_REDUCE_SQUARES)
        return;
    const int64_t low = is_bool ? 0 : r->summed == TSR_I32 ? INT32_MIN : INT64_MIN;
    const int64_t high = is_bool ? 1 : r->summed == TSR_I32 ? INT32_MAX : INT64_MAX;
    const int loop = wide ? TSR_POINTWISE_MUL : rises ? TSR_POINTWISE_MAXIMUM : TSR_POINTWISE_MINIMUM;
    r->combine = r->kernels->loops[loop][r->summed];
    r->identity = wide    ? bits_of(r->summed, 1, 1)
                  : rises ? bits_of(r->summed, -INFINITY, low)
                          : bits_of(r->summed, INFINITY, high);
}

/* The number by which elements are multiplied before they are squared. */
static double read_factor(const tsr_kernel_call *call, int code)
{
    if (code != TSR_REDUCE_SQUARES || call->input_count < 2 || call->inputs[1].ndim < 0)
        return 1;
    const void *const at = call->inputs[1].data;
    return call->inputs[1].dtype == TSR_F64 ? *(const double *)at : (double)*(const float *)at;
}

/* Reduces over the marked dims of the input; `out_dim` says which of the output's dims each of the
 * others is. */
static void reduce_marked(const tsr_kernel_call *call, int code, const bool *marked, const int *out_dim, double divisor)
{
    const tsr_tensor *const in = &call->inputs[0], *const out = &call->outputs[0];
    reduction r = {.kernels = tsr_pointwise_kernels_for(call->kernels),
                   .memory = in->dtype,
                   .divisor = divisor,
                   .written = out->dtype,
                   .factor = read_factor(call, code)};
    r.divides = code == TSR_REDUCE_MEAN;
    if (code == TSR_REDUCE_SQUARES)
        r.squares = sets[tsr_kernel_set(call->kernels)];
    choose_loop(&r, code);
    r.bytes = (int64_t)tsr_dtype_bytes(in->dtype);
    r.written_bytes = (int64_t)tsr_dtype_bytes(out->dtype);
    for (int dim = 0; dim < in->ndim; dim++) {
        if (marked[dim])
            r.reduced[r.reduced_count++] = (axis){in->shape[dim], in->strides[dim], 0};
        else
            r.kept[r.kept_count++] = (axis){in->shape[dim], in->strides[dim], out->strides[out_dim[dim]]};
    }
    if (in->ndim == 0)
        r.kept[r.kept_count++] = (axis){1, 1, 1};
    run_reduction(&r, in->ndim > 0 && marked[in->ndim - 1], in->data, out->data);
}

/* The product of the sizes of the whole tensor's marked dims. */
static double repetitions(const tsr_layout *whole, const bool *marked)
{
    double count = 1;
    for (int dim = 0; dim < tsr_layout_ndim(whole); dim++)
        count *= marked[dim] ? (double)tsr_layout_shape(whole)[dim] : 1;
    return count;
}

tsr_status tsr_reduce_run(const tsr_kernel_call *call)
{
    bool marked[TSR_MAX_DIMS];
    int out_dim[TSR_MAX_DIMS], used = 0;
    const int ndim = call->inputs[0].ndim;
    tsr_reduce_mark(call->attributes[0].count, call->attributes[0].list, ndim, marked);
    for (int dim = 0; dim < ndim; dim++) {
        out_dim[dim] = used;
        used += !marked[dim] || call->attributes[1].integer;
    }
    reduce_marked(call, call->code, marked, out_dim, repetitions(call->layouts[0], marked));
    return TSR_OK;
}

tsr_status tsr_reduce_sum_to(const tsr_kernel_call *call)
{
    bool marked[TSR_MAX_DIMS];
    int out_dim[TSR_MAX_DIMS];
    const int missing = call->inputs[0].ndim - call->attributes[0].count;
    for (int dim = 0; dim < call->inputs[0].ndim; dim++) {
        out_dim[dim] = dim - missing;
        marked[dim] = dim < missing ||
                      (call->attributes[0].list[dim - missing] == 1 && tsr_layout_shape(call->layouts[0])[dim] != 1);
    }
    reduce_marked(call, TSR_REDUCE_SUM, marked, out_dim, 1);
    return TSR_OK;
}

tsr_status tsr_reduce_spread(const tsr_kernel_call *call)
{
    bool marked[TSR_MAX_DIMS];
    tsr_tensor spread = call->inputs[0];
    const tsr_tensor *const out = &call->outputs[0];
    tsr_reduce_mark(call->attributes[0].count, call->attributes[0].list, out->ndim, marked);
    for (int dim = 0, used = 0; dim < out->ndim; dim++) {
        spread.shape[dim] = out->shape[dim];
        spread.strides[dim] = marked[dim] ? 0 : call->inputs[0].strides[used];
        used += !marked[dim] || call->attributes[1].integer;
    }
    spread.ndim = out->ndim;
    const double factor = call->code ? 1 / repetitions(call->layouts[1], marked) : 1;
    const tsr_attribute attributes[] = {{.name = "factor", .kind = TSR_ATTRIBUTE_FLOAT, .number = factor}, {NULL}};
    tsr_kernel_call copy = *call;
    copy.code = call->code ? TSR_POINTWISE_SCALE : TSR_POINTWISE_COPY;
    copy.attributes = attributes;
    copy.inputs = &spread;
    copy.input_count = 1;
    return tsr_pointwise_run(&copy);
}
