#include "ops/kernels/pointwise.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/pointwise_kernels.h"
#include "ops/kernels/stream.h"
#include "ops/kernels/walked.h"

#include <tessera/sys/device.h>

#include <string.h>

#define INPUTS 3
/* Elements that go through buffers at once, so that they stay in the first-level cache. */
#define CHUNK 512
/* Elements of a chunk that is streamed. */
#define STREAMED 64
/* Results of so many bytes stay in the cache, where they are wanted next. */
#define SMALL (INT64_C(32) << 10)

static const tsr_pointwise_kernels *const sets[] = TSR_KERNEL_SETS(tsr_pointwise_kernels);

const tsr_pointwise_kernels *tsr_pointwise_kernels_for(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

typedef struct walk {
    const tsr_pointwise_kernels *kernels;
    tsr_pointwise_loop *loop, *lines; /* `lines`: for direct rows that are streamed, or NULL */
    double parameters[TSR_POINTWISE_PARAMETERS];
    int count;                      /* the inputs, and the output behind them */
    tsr_walked tensors[INPUTS + 1]; /* strides are 0 where a tensor is repeated */
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    bool direct;  /* loops can read and write the tensors' own rows */
    bool streams; /* results go past the cache */
} walk;

tsr_dtype tsr_pointwise_computes_in(tsr_dtype dtype)
{
    switch (dtype) {
    case TSR_F64:
    case TSR_F32:
    case TSR_I64:
    case TSR_I32:
    case TSR_BOOL:
        return dtype;
    case TSR_F16:
    case TSR_BF16:
        return TSR_F32;
    default:
        return TSR_DTYPE_NONE;
    }
}

bool tsr_pointwise_takes(int code, tsr_dtype dtype)
{
    return tsr_pointwise_kernels_portable.loops[code][tsr_pointwise_computes_in(dtype)] != NULL;
}

/* Makes the walk's dims those of the output that have more than one element, `dims`. False: the
 * output has no element. */
static bool list_dims(walk *w, const tsr_tensor *out, int *dims)
{
    w->ndim = 0;
    for (int dim = 0; dim < out->ndim; dim++) {
        const int64_t size = out->shape[dim];
        if (size == 0)
            return false;
        if (size == 1)
            continue;
        dims[w->ndim] = dim;
        w->shape[w->ndim++] = size;
    }
    return true;
}

static void walk_along(const walk *w, const int *dims, const tsr_tensor *tensor, int ndim, tsr_walked *out)
{
    out->data = tensor->data;
    out->dtype = tensor->dtype;
    out->computed = tsr_pointwise_computes_in(tensor->dtype);
    out->bytes = (int64_t)tsr_dtype_bytes(tensor->dtype);
    for (int i = 0; i < w->ndim; i++) {
        const int own = dims[i] - (ndim - tensor->ndim);
        out->strides[i] = own < 0 || tensor->shape[own] != w->shape[i] ? 0 : tensor->strides[own];
    }
}

/* True if in all tensors dim `dim` goes on where dim `dim + 1` ends, so that they are one. */
static bool is_one_dim(const walk *w, int dim)
{
    for (int i = 0; i < w->count; i++) {
        if (w->tensors[i].strides[dim] != w->tensors[i].strides[dim + 1] * w->shape[dim + 1])
            return false;
    }
    return true;
}

static void remove_dim(walk *w, int dim)
{
    for (int next = dim; next + 1 < w->ndim; next++) {
        w->shape[next] = w->shape[next + 1];
        for (int i = 0; i < w->count; i++)
            w->tensors[i].strides[next] = w->tensors[i].strides[next + 1];
    }
    w->ndim--;
}

/* Joins dims that are one in all tensors. */
static void join_dims(walk *w)
{
    for (int dim = w->ndim - 2; dim >= 0; dim--) {
        if (is_one_dim(w, dim)) {
            w->shape[dim + 1] *= w->shape[dim];
            remove_dim(w, dim);
        }
    }
}

static bool is_direct(const tsr_walked *w, int64_t stride)
{
    return w->dtype == w->computed && stride == 1;
}

/* Elements between neighbours of a row; a single element is a row, too. */
static int64_t row_stride(const walk *w, int tensor)
{
    return w->ndim ? w->tensors[tensor].strides[w->ndim - 1] : 1;
}

/* Puts n results, which are an array of the dtype of the computation, into the output. */
static void write_chunk(const walk *w, void *array, char *to, int64_t n)
{
    _Alignas(STREAM_LINE) char narrow[CHUNK * sizeof(float)];
    const tsr_walked *const out = &w->tensors[w->count - 1];
    if (!w->streams) {
        w->kernels->scatter[out->dtype](array, to, n, row_stride(w, w->count - 1));
        return;
    }
    if (out->dtype != out->computed)
        w->kernels->scatter[out->dtype](array, narrow, n, 1);
    w->kernels->stream(out->dtype == out->computed ? array : narrow, to, n * out->bytes);
}

/* Fetches as many bytes as those at `at`, STREAM_AHEAD behind them. */
static inline void fetch_ahead(const char *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += STREAM_LINE)
        stream_fetch(at + i);
}

/* Computes `n` elements, CHUNK at most; `at` has the address of the first in each tensor. */
static void run_chunk(const walk *w, char *const *at, int64_t n)
{
    _Alignas(STREAM_LINE) char buffers[INPUTS + 1][CHUNK * sizeof(double)];
    const void *in[INPUTS] = {NULL};
    for (int i = 0; i < w->count - 1; i++) {
        const tsr_walked *const t = &w->tensors[i];
        in[i] = at[i];
        if (w->streams && row_stride(w, i) == 1)
            fetch_ahead(at[i], n * t->bytes);
        if (!is_direct(t, row_stride(w, i))) {
            w->kernels->gather[t->dtype](at[i], buffers[i], n, row_stride(w, i));
            in[i] = buffers[i];
        }
    }
    const int last = w->count - 1;
    if (!w->streams && is_direct(&w->tensors[last], row_stride(w, last))) {
        w->loop(in, at[last], n, w->parameters);
        return;
    }
    w->loop(in, buffers[INPUTS], n, w->parameters);
    write_chunk(w, buffers[INPUTS], at[last], n);
}

/* Elements of the next chunk, so that streamed ones but the first begin with a line. */
static int64_t chunk_length(const walk *w, const char *out, int64_t rest)
{
    const int64_t beyond = (int64_t)((uintptr_t)out % STREAM_LINE) / w->tensors[w->count - 1].bytes;
    const int64_t most = w->streams ? STREAMED - beyond : CHUNK;
    return rest < most ? rest : most;
}

/* Streams a chunk of `n` results: STREAMED at most. */
static void stream_chunk(const walk *w, const void *const *in, char *to, int64_t n)
{
    _Alignas(STREAM_LINE) char buffer[STREAMED * sizeof(double)];
    const int last = w->count - 1;
    for (int i = 0; i < last; i++)
        fetch_ahead(in[i], n * w->tensors[i].bytes);
    w->loop(in, buffer, n, w->parameters);
    w->kernels->stream(buffer, to, n * w->tensors[last].bytes);
}

/* Streams results up to the last whole line; returns how many: 0 if `to` is within a line. */
static int64_t stream_lines(const walk *w, const void *const *in, char *to, int64_t rest)
{
    if (!w->lines || (uintptr_t)to % STREAM_LINE)
        return 0;
    const int64_t n = rest - rest % (STREAM_LINE / (int64_t)sizeof(float));
    w->lines(in, to, n, w->parameters);
    return n;
}

/* run_row() for direct rows whose results are streamed. */
static void stream_row(const walk *w, char *const *begin, int64_t length)
{
    const int last = w->count - 1;
    const void *in[INPUTS] = {NULL};
    char *to = begin[last];
    for (int i = 0; i < last; i++)
        in[i] = begin[i];
    for (int64_t done = 0, n; done < length; done += n) {
        n = stream_lines(w, in, to, length - done);
        if (n == 0) {
            n = chunk_length(w, to, length - done);
            stream_chunk(w, in, to, n);
        }
        for (int i = 0; i < last; i++)
            in[i] = (const char *)in[i] + n * w->tensors[i].bytes;
        to += n * w->tensors[last].bytes;
    }
}

/* run_row() for rows that a loop can read and write. */
static void run_direct_row(const walk *w, char *const *begin, int64_t length)
{
    const int last = w->count - 1;
    const void *in[INPUTS] = {NULL};
    if (w->streams) {
        stream_row(w, begin, length);
        return;
    }
    for (int i = 0; i < last; i++)
        in[i] = begin[i];
    w->loop(in, begin[last], length, w->parameters);
}

static void run_row(const walk *w, char *const *begin)
{
    const int64_t length = w->ndim ? w->shape[w->ndim - 1] : 1;
    if (w->direct) {
        run_direct_row(w, begin, length);
        return;
    }
    char *at[INPUTS + 1];
    for (int i = 0; i < w->count; i++)
        at[i] = begin[i];
    for (int64_t done = 0, n; done < length; done += n) {
        n = chunk_length(w, at[w->count - 1], length - done);
        run_chunk(w, at, n);
        for (int i = 0; i < w->count; i++)
            at[i] += n * row_stride(w, i) * w->tensors[i].bytes;
    }
}

bool tsr_pointwise_is_streamed(const tsr_kernel_choices *choices, int64_t run, int64_t bytes)
{
    if (bytes <= SMALL)
        return false;
    const char *way = tsr_kernel_choices_way(choices, "copy", (size_t)run, (size_t)bytes);
    if (!way)
        way = tsr_kernel_choices_way(NULL, "copy", (size_t)run, (size_t)bytes);
    return strncmp(way, "stream", strlen("stream")) == 0;
}

/* True if results go past the cache: into memory without gaps that is not also read, where copies
 * of as many bytes do, or with `is_part` at once. */
static bool is_streamed(const walk *w, const tsr_kernel_call *call, bool is_part)
{
    const tsr_walked *const out = &w->tensors[w->count - 1];
    int64_t bytes = out->bytes;
    for (int dim = 0; dim < w->ndim; dim++)
        bytes *= w->shape[dim];
    if (row_stride(w, w->count - 1) != 1)
        return false;
    for (int i = 0; i < w->count - 1; i++) {
        if (w->tensors[i].data == out->data)
            return false;
    }
    const int64_t run = w->ndim ? w->shape[w->ndim - 1] * out->bytes : out->bytes;
    return is_part || tsr_pointwise_is_streamed(call->choices, run, bytes);
}

static bool is_all_direct(const walk *w)
{
    bool direct = true;
    for (int i = 0; i < w->count; i++)
        direct = direct && is_direct(&w->tensors[i], row_stride(w, i));
    return direct;
}

static void run_walk(walk *w, const tsr_kernel_call *call, bool is_part)
{
    const tsr_tensor *const out = &call->outputs[0];
    int dims[TSR_MAX_DIMS];
    int64_t index[TSR_MAX_DIMS] = {0};
    char *at[INPUTS + 1];
    if (!list_dims(w, out, dims))
        return;
    w->count = call->input_count + 1;
    for (int i = 0; i < w->count; i++)
        walk_along(w, dims, i < call->input_count ? &call->inputs[i] : out, out->ndim, &w->tensors[i]);
    join_dims(w);
    w->streams = is_streamed(w, call, is_part);
    w->direct = is_all_direct(w);
    for (int i = 0; i < w->count; i++)
        at[i] = w->tensors[i].data;
    do
        run_row(w, at);
    while (tsr_walked_next_row(w->tensors, w->count, w->ndim, w->shape, index, at));
    if (w->streams)
        w->kernels->finish();
}

/* True if a tensor has the shape of `out`, which has no gaps, and lies as it does, in the dtype of
 * the computation. */
static bool is_array_like(const tsr_tensor *tensor, const tsr_tensor *out)
{
    if (tensor->ndim != out->ndim || tsr_pointwise_computes_in(tensor->dtype) != tensor->dtype)
        return false;
    for (int dim = 0; dim < out->ndim; dim++) {
        if (tensor->shape[dim] != out->shape[dim] ||
            (tensor->strides[dim] != out->strides[dim] && tensor->shape[dim] != 1))
            return false;
    }
    return true;
}

/* True if all tensors are alike arrays, of `*count` elements and SMALL: a loop takes them as they
 * are, and what a walk finds out would take longer than the loop. */
static bool are_small_arrays(const tsr_kernel_call *call, int64_t *count)
{
    const tsr_tensor *const out = &call->outputs[0];
    int64_t n = 1;
    for (int dim = out->ndim - 1; dim >= 0; dim--) {
        if (out->strides[dim] != n && out->shape[dim] != 1)
            return false;
        n *= out->shape[dim];
    }
    *count = n;
    for (int i = 0; i < call->input_count; i++) {
        if (!is_array_like(&call->inputs[i], out))
            return false;
    }
    return n <= SMALL / (int64_t)sizeof(double) && tsr_pointwise_computes_in(out->dtype) == out->dtype;
}

/* Computes all elements by a loop over rows. */
static void run_any(const tsr_kernel_call *call, const tsr_pointwise_kernels *kernels, tsr_pointwise_loop *loop,
                    const double *parameters, bool is_part)
{
    walk w;
    w.kernels = kernels;
    w.loop = loop;
    w.lines = loop == kernels->loops[call->code][TSR_F32] ? kernels->lines[call->code] : NULL;
    memcpy(w.parameters, parameters, sizeof w.parameters);
    run_walk(&w, call, is_part);
}

/* Computes all elements by a loop. */
static void run_loop(const tsr_kernel_call *call, const tsr_pointwise_kernels *kernels, tsr_pointwise_loop *loop,
                     const double *parameters)
{
    const void *in[INPUTS] = {NULL};
    int64_t count;
    if (are_small_arrays(call, &count)) {
        for (int i = 0; i < call->input_count; i++)
            in[i] = call->inputs[i].data;
        loop(in, call->outputs[0].data, count, parameters);
        return;
    }
    run_any(call, kernels, loop, parameters, false);
}

/* The parameters of a loop: the row's first attributes. */
static void read_parameters(const tsr_kernel_call *call, double *parameters)
{
    for (int i = 0; i < TSR_POINTWISE_PARAMETERS && call->attributes[i].name; i++) {
        const tsr_attribute *const a = &call->attributes[i];
        parameters[i] = a->kind == TSR_ATTRIBUTE_FLOAT ? a->number : (double)a->integer;
    }
}

static tsr_pointwise_loop *find_loop(const tsr_kernel_call *call, const tsr_pointwise_kernels *kernels)
{
    const tsr_tensor *const typed = call->code < TSR_POINTWISE_FIRST_TEST ? &call->outputs[0] : &call->inputs[0];
    return kernels->loops[call->code][tsr_pointwise_computes_in(typed->dtype)];
}

static tsr_pointwise_loop *find_conversion(const tsr_kernel_call *call, const tsr_pointwise_kernels *kernels)
{
    return kernels
        ->convert[tsr_pointwise_computes_in(call->inputs[0].dtype)][tsr_pointwise_computes_in(call->outputs[0].dtype)];
}

tsr_status tsr_pointwise_run(const tsr_kernel_call *call)
{
    const tsr_pointwise_kernels *const kernels = tsr_pointwise_kernels_for(call->kernels);
    double parameters[TSR_POINTWISE_PARAMETERS] = {0};
    read_parameters(call, parameters);
    run_loop(call, kernels, find_loop(call, kernels), parameters);
    return TSR_OK;
}

tsr_status tsr_pointwise_cast(const tsr_kernel_call *call)
{
    const tsr_pointwise_kernels *const kernels = tsr_pointwise_kernels_for(call->kernels);
    const double parameters[TSR_POINTWISE_PARAMETERS] = {0};
    run_loop(call, kernels, find_conversion(call, kernels), parameters);
    return TSR_OK;
}

void tsr_pointwise_stream(tsr_host_kernel *host, const tsr_kernel_call *call)
{
    const tsr_pointwise_kernels *const kernels = tsr_pointwise_kernels_for(call->kernels);
    const bool casts = host == tsr_pointwise_cast;
    double parameters[TSR_POINTWISE_PARAMETERS] = {0};
    if (!casts)
        read_parameters(call, parameters);
    run_any(call, kernels, casts ? find_conversion(call, kernels) : find_loop(call, kernels), parameters, true);
}
