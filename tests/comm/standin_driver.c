/* The GPUs as a device of the library: each entry enqueues a call of the host's table. */
#include "standin_world.h"

#include <tessera/sys/device.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef enum deed { COPY, COPY_BOXES, FILL, REDUCE, CONVERT, MULTIPLY } deed;

/* An enqueued operation, with its own copy of every list. */
typedef struct job {
    standin_work work;
    deed deed;
    tsr_status status;
    void *dst;
    const void *src;
    tsr_dtype dst_dtype, src_dtype;
    size_t count; /* number of bytes, boxes or elements */
    tsr_box_copy *boxes;
    tsr_box_fill fill;
    tsr_box_reduce reduce;
    tsr_gemm gemm;
} job;

static const tsr_device_table *host(void **self)
{
    return tsr_device_driver_table(NULL, self);
}

static void free_lists(standin_work *work)
{
    job *j = (job *)work;
    free(j->boxes);
    free((void *)j->reduce.src);
    free((void *)j->reduce.src_strides);
    free((void *)j->reduce.dst);
    free((void *)j->reduce.dst_strides);
}

/* Multiplies in f32, adding terms in ascending k. */
static void multiply(const tsr_gemm *g)
{
    const float *a = g->a, *b = g->b, *bias = g->bias;
    for (int64_t i = 0; i < g->m * g->n; i++) {
        const int64_t row = i / g->n, column = i % g->n;
        float *c = (float *)g->c + row * g->ldc + column, sum = 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += a[g->trans_a ? k * g->lda + row : row * g->lda + k] *
                   b[g->trans_b ? column * g->ldb + k : k * g->ldb + column];
        *c = (float)g->alpha * sum + (g->beta == 0 ? 0 : (float)g->beta * *c) + (bias ? bias[column] : 0);
    }
}

static bool run_job(standin_work *work)
{
    job *j = (job *)work;
    void *self;
    const tsr_device_table *table = host(&self);
    tsr_status status = TSR_OK;
    if (j->deed == COPY && j->count > 0)
        memmove(j->dst, j->src, j->count);
    else if (j->deed == COPY_BOXES)
        status = table->copy_boxes(self, 0, j->boxes, j->count, NULL);
    else if (j->deed == FILL)
        status = table->fill(self, 0, &j->fill, NULL);
    else if (j->deed == REDUCE)
        status = table->reduce(self, 0, &j->reduce, NULL);
    else if (j->deed == MULTIPLY)
        multiply(&j->gemm);
    else if (j->deed == CONVERT)
        status = table->convert(self, 0, j->dst, j->dst_dtype, j->src, j->src_dtype, (int64_t)j->count, NULL);
    if (status != TSR_OK)
        standin_complain("a job of a stream failed: %s", tsr_status_message());
    return true;
}

static void *copy_list(const void *list, size_t bytes)
{
    void *copy = list ? malloc(bytes + 1) : NULL;
    return bytes > 0 && list ? memcpy(copy, list, bytes) : copy;
}

static standin_work *clone_job(const standin_work *work)
{
    const job *j = (const job *)work;
    const size_t sources = (size_t)j->reduce.src_count, destinations = (size_t)j->reduce.dst_count;
    job *clone = copy_list(j, sizeof *j);
    clone->boxes = copy_list(j->boxes, j->count * sizeof *j->boxes);
    clone->reduce.src = copy_list(j->reduce.src, sources * sizeof *j->reduce.src);
    clone->reduce.src_strides = copy_list(j->reduce.src_strides, sources * sizeof *j->reduce.src_strides);
    clone->reduce.dst = copy_list(j->reduce.dst, destinations * sizeof *j->reduce.dst);
    clone->reduce.dst_strides = copy_list(j->reduce.dst_strides, destinations * sizeof *j->reduce.dst_strides);
    return &clone->work;
}

/* Enqueues an operation with copies of its lists, which the caller may reuse at once. */
static tsr_status submit(int index, const job *wanted, tsr_stream stream)
{
    standin_work *work = clone_job(&wanted->work);
    work->step = run_job;
    work->clone = clone_job;
    work->drop = free_lists;
    standin_lock();
    struct CUstream_st *known = standin_stream(stream, index, "the driver");
    if (known)
        standin_enqueue(known, work);
    standin_unlock();
    return known ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "no stream of device %d", index);
}

static tsr_status count(void *self, int *out, const char **reason)
{
    (void)self;
    *out = standin.devices;
    *reason = NULL;
    return TSR_OK;
}

static tsr_status alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    (void)self;
    (void)stream;
    standin_lock();
    void *made = standin_allocate(bytes, index);
    standin_unlock();
    if (!made)
        return tsr_status_set(TSR_ERROR_MEMORY, "no %zu bytes on device %d", bytes, index);
    *out = made;
    return TSR_OK;
}

/* Frees memory, in stream order as all work. */
static bool run_free(standin_work *work)
{
    if (!standin_release(((job *)work)->dst))
        standin_complain("memory is freed that is none");
    return true;
}

static void release(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    (void)self;
    (void)bytes;
    job *j = calloc(1, sizeof *j);
    j->work.step = run_free;
    j->dst = memory;
    standin_lock();
    struct CUstream_st *known = standin_stream(stream, index, "free");
    standin_enqueue(known ? known : &standin.defaults[index], &j->work);
    standin_unlock();
}

static tsr_status copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                       tsr_stream stream)
{
    (void)self;
    (void)kind;
    return submit(index, &(job){.deed = COPY, .dst = dst, .src = src, .count = bytes}, stream);
}

static tsr_status copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t box_count, tsr_stream stream)
{
    (void)self;
    return submit(index, &(job){.deed = COPY_BOXES, .boxes = (tsr_box_copy *)(uintptr_t)boxes, .count = box_count},
                  stream);
}

static tsr_status fill(void *self, int index, const tsr_box_fill *box, tsr_stream stream)
{
    (void)self;
    return submit(index, &(job){.deed = FILL, .fill = *box}, stream);
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *box, tsr_stream stream)
{
    (void)self;
    return submit(index, &(job){.deed = REDUCE, .reduce = *box}, stream);
}

static tsr_status convert(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                          int64_t elements, tsr_stream stream)
{
    (void)self;
    const job wanted = {.deed = CONVERT,
                        .dst = dst,
                        .src = src,
                        .dst_dtype = dst_dtype,
                        .src_dtype = src_dtype,
                        .count = (size_t)elements};
    return submit(index, &wanted, stream);
}

static tsr_status gemm(void *self, int index, const tsr_gemm *product, tsr_stream stream)
{
    (void)self;
    if (product->c_dtype != TSR_F32)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the stand-in multiplies f32, not %s",
                              tsr_dtype_name(product->c_dtype));
    return submit(index, &(job){.deed = MULTIPLY, .gemm = *product}, stream);
}

static tsr_status say(cudaError_t error)
{
    return error == cudaSuccess ? TSR_OK : tsr_status_set(TSR_ERROR_DEVICE, "the stand-in's device fails");
}

/* Makes `index` this thread's device, and returns the one before, which leaving restores. */
static int enter(int index)
{
    const int previous = standin_device();
    standin_api.cuda_set_device(index);
    return previous;
}

static tsr_status leave(int previous, cudaError_t error)
{
    standin_api.cuda_set_device(previous);
    return say(error);
}

static tsr_status stream_create(void *self, int index, tsr_stream *out)
{
    (void)self;
    const int previous = enter(index);
    cudaStream_t made = NULL;
    const tsr_status status = leave(previous, standin_stream_create(&made, cudaStreamNonBlocking));
    if (status == TSR_OK)
        *out = made;
    return status;
}

static void stream_destroy(void *self, int index, tsr_stream stream)
{
    (void)self;
    (void)index;
    standin_stream_destroy(stream);
}

static tsr_status stream_synchronize(void *self, int index, tsr_stream stream)
{
    (void)self;
    const int previous = enter(index);
    cudaError_t error;
    while ((error = standin_stream_query(stream)) == cudaErrorNotReady)
        sched_yield();
    return leave(previous, error);
}

static tsr_status event_create(void *self, int index, void **out)
{
    (void)self;
    (void)index;
    cudaEvent_t made = NULL;
    const tsr_status status = say(standin_event_create(&made, cudaEventDisableTiming));
    if (status == TSR_OK)
        *out = made;
    return status;
}

static void event_destroy(void *self, int index, void *event)
{
    (void)self;
    (void)index;
    standin_event_destroy(event);
}

static tsr_status event_record(void *self, int index, void *event, tsr_stream stream)
{
    (void)self;
    const int previous = enter(index);
    return leave(previous, standin_event_record(event, stream));
}

static tsr_status event_wait(void *self, int index, void *event, tsr_stream stream)
{
    (void)self;
    const int previous = enter(index);
    return leave(previous, standin_stream_wait_event(stream, event, 0));
}

tsr_status standin_driver_create(tsr_device_driver **out)
{
    static const tsr_device_table table = {
        .size = sizeof table,
        .name = "standin",
        .count = count,
        .alloc = alloc,
        .free = release,
        .copy = copy,
        .copy_boxes = copy_boxes,
        .fill = fill,
        .reduce = reduce,
        .convert = convert,
        .gemm = gemm,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .stream_synchronize = stream_synchronize,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_wait = event_wait,
    };
    return tsr_device_driver_create(&table, NULL, out);
}
