/* The table: every entry checks its arguments, copies them, and enqueues. */
#include "async_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ASYNC_CALLS] = {
    "alloc",        "free",          "copy",         "copy_boxes",    "fill",
    "reduce",       "convert",       "gemm",         "stream_create", "stream_synchronize",
    "event_create", "event_destroy", "event_record", "event_wait",    "reaches",
    "capture",      "launch"};

static _Thread_local int64_t held_up;

int64_t async_held_up(void)
{
    return held_up;
}

tsr_status async_enter(async_machine *machine, async_call call)
{
    held_up += call == ASYNC_ALLOC || call == ASYNC_FREE || call == ASYNC_SYNCHRONIZE || call == ASYNC_EVENT_CREATE;
    pthread_mutex_lock(&machine->lock);
    machine->counts[call]++;
    if (machine->failing[call] == 0 || --machine->failing[call] > 0)
        return TSR_OK;
    return tsr_status_set(call == ASYNC_ALLOC || call == ASYNC_EVENT_CREATE ? TSR_ERROR_MEMORY : TSR_ERROR_DEVICE,
                          "async: this %s was told to fail", names[call]);
}

tsr_status async_take_trouble(async_stream *stream)
{
    if (!stream->trouble[0])
        return TSR_OK;
    tsr_status_set(TSR_ERROR_STATE, "%s", stream->trouble);
    stream->trouble[0] = '\0';
    return TSR_ERROR_STATE;
}

static tsr_status leave(async_machine *machine, tsr_status status)
{
    pthread_mutex_unlock(&machine->lock);
    return status;
}

static tsr_status say_full(async_machine *machine)
{
    return leave(machine, tsr_status_set(TSR_ERROR_MEMORY, "async: no memory"));
}

/* An operation on its way to a stream. */
typedef struct job {
    async_stream *stream;
    async_op *op;
    void *arguments;
} job;

/* Begins a call and takes the lock, which finish() releases; after a failure it is released
 * here. */
static tsr_status begin(async_machine *machine, async_call call, int index, tsr_stream handle, size_t bytes,
                        void (*run)(async_machine *machine, const async_op *op), job *out)
{
    const tsr_status status = async_enter(machine, call);
    if (status != TSR_OK)
        return leave(machine, status);
    out->op = async_op_create(bytes, run);
    if (!out->op)
        return say_full(machine);
    out->arguments = async_arguments(out->op);
    out->stream = async_find(machine, index, handle);
    async_tick(machine, out->stream);
    return TSR_OK;
}

/* Enqueues the operation, unless misuse was found: that is a fault, but no error for the
 * library. */
static tsr_status finish(async_machine *machine, const job *j, bool reached)
{
    if (reached)
        async_enqueue(machine, j->stream, j->op);
    else
        free(j->op);
    return leave(machine, TSR_OK);
}

static tsr_status count_devices(void *self, int *count, const char **reason)
{
    const async_machine *machine = self;
    *count = machine->options.devices;
    *reason = NULL;
    return TSR_OK;
}

static tsr_status allocate(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    async_machine *machine = self;
    const tsr_status status = async_enter(machine, ASYNC_ALLOC);
    if (status != TSR_OK)
        return leave(machine, status);
    (void)stream;
    void *made = async_block_create(machine, index, bytes);
    if (!made) {
        async_drain(machine, NULL); /* finishes frees in stream order, so that their memory is available */
        made = async_block_create(machine, index, bytes);
    }
    if (!made)
        return say_full(machine);
    *out = made;
    return leave(machine, TSR_OK);
}

static void run_free(async_machine *machine, const async_op *op)
{
    void *memory;
    memcpy(&memory, async_arguments(op), sizeof memory);
    pthread_mutex_lock(&machine->lock);
    async_block_destroy(machine, memory);
    pthread_mutex_unlock(&machine->lock);
}

static void release(void *self, int index, void *memory, size_t bytes, tsr_stream handle)
{
    async_machine *machine = self;
    async_enter(machine, ASYNC_FREE);
    if (!handle)
        async_drain(machine, NULL);
    async_stream *stream = async_find(machine, index, handle);
    async_tick(machine, stream);
    async_op *op = handle ? async_op_create(sizeof memory, run_free) : NULL;
    if (async_touch_bytes(machine, stream, memory, bytes, true, "free") && !op)
        async_block_destroy(machine, memory);
    if (op) {
        memcpy(async_arguments(op), &memory, sizeof memory);
        async_enqueue(machine, stream, op);
    }
    leave(machine, TSR_OK);
}

typedef struct copied {
    void *dst;
    const void *src; /* NULL: the bytes follow the arguments */
    size_t bytes;
} copied;

static void run_copy(async_machine *machine, const async_op *op)
{
    (void)machine;
    const copied *c = async_arguments(op);
    memcpy(c->dst, c->src ? c->src : c + 1, c->bytes);
}

static tsr_status copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                       tsr_stream handle)
{
    async_machine *machine = self;
    const bool carried = kind == TSR_COPY_FROM_HOST;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_COPY, index, handle, sizeof(copied) + (carried ? bytes : 0), run_copy, &j));
    copied *c = j.arguments;
    *c = (copied){dst, carried ? NULL : src, bytes};
    if (carried && bytes > 0)
        memcpy(c + 1, src, bytes);
    if (!carried)
        c->src = async_touch_bytes(machine, j.stream, src, bytes, false, "copy");
    if (kind != TSR_COPY_TO_HOST)
        c->dst = async_touch_bytes(machine, j.stream, dst, bytes, true, "copy");
    return finish(machine, &j, bytes > 0 && c->dst && (carried || c->src));
}

typedef struct boxes {
    size_t count;
    tsr_box_copy at[];
} boxes;

static void run_boxes(async_machine *machine, const async_op *op)
{
    const boxes *b = async_arguments(op);
    machine->host->copy_boxes(machine->host_self, 0, b->at, b->count, NULL);
}

static bool reach_copy(async_machine *machine, async_stream *stream, tsr_box_copy *c)
{
    const async_box src = {c->src, c->ndim, c->shape, c->src_strides, c->element_bytes, false, "copy_boxes"};
    const async_box dst = {c->dst, c->ndim, c->shape, c->dst_strides, c->element_bytes, true, "copy_boxes"};
    c->src = async_touch(machine, stream, &src);
    c->dst = async_touch(machine, stream, &dst);
    return c->src && c->dst;
}

static tsr_status copy_boxes(void *self, int index, const tsr_box_copy *given, size_t count, tsr_stream handle)
{
    async_machine *machine = self;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_COPY_BOXES, index, handle, sizeof(boxes) + count * sizeof *given, run_boxes, &j));
    boxes *b = j.arguments;
    b->count = count;
    memcpy(b->at, given, count * sizeof *given);
    bool reached = true;
    for (size_t i = 0; i < count; i++)
        reached = reach_copy(machine, j.stream, &b->at[i]) && reached;
    return finish(machine, &j, reached);
}

static void run_fill(async_machine *machine, const async_op *op)
{
    machine->host->fill(machine->host_self, 0, async_arguments(op), NULL);
}

static tsr_status fill(void *self, int index, const tsr_box_fill *given, tsr_stream handle)
{
    async_machine *machine = self;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_FILL, index, handle, sizeof *given, run_fill, &j));
    tsr_box_fill *f = j.arguments;
    *f = *given;
    const async_box box = {f->dst, f->ndim, f->shape, f->dst_strides, f->element_bytes, true, "fill"};
    f->dst = async_touch(machine, j.stream, &box);
    return finish(machine, &j, f->dst);
}

/* A reduction, followed by the strides, then the pointers, of sources and destinations. */
typedef struct reduction {
    tsr_box_reduce reduce;
    int64_t strides[][TSR_MAX_DIMS];
} reduction;

static void run_reduce(async_machine *machine, const async_op *op)
{
    const reduction *r = async_arguments(op);
    machine->host->reduce(machine->host_self, 0, &r->reduce, NULL);
}

static bool reach_reduce(async_machine *machine, async_stream *stream, const tsr_box_reduce *given, reduction *r)
{
    const int operands = given->src_count + given->dst_count;
    const size_t element = tsr_dtype_bytes(given->dtype);
    void **pointers = (void **)(r->strides + operands);
    r->reduce = *given;
    for (int i = 0; i < operands; i++) {
        const bool write = i >= given->src_count;
        const void *base = write ? given->dst[i - given->src_count] : given->src[i];
        memcpy(r->strides[i], write ? given->dst_strides[i - given->src_count] : given->src_strides[i],
               sizeof r->strides[i]);
        const async_box box = {base, given->ndim, r->reduce.shape, r->strides[i], element, write, "reduce"};
        pointers[i] = async_touch(machine, stream, &box);
        if (!pointers[i])
            return false;
    }
    r->reduce.src = (const void *const *)pointers;
    r->reduce.dst = pointers + given->src_count;
    r->reduce.src_strides = (const int64_t(*)[TSR_MAX_DIMS])r->strides;
    r->reduce.dst_strides = (const int64_t(*)[TSR_MAX_DIMS])(r->strides + given->src_count);
    return true;
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *given, tsr_stream handle)
{
    async_machine *machine = self;
    const size_t operands = (size_t)given->src_count + (size_t)given->dst_count;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_REDUCE, index, handle,
                  sizeof(reduction) + operands * (sizeof(int64_t[TSR_MAX_DIMS]) + sizeof(void *)), run_reduce, &j));
    return finish(machine, &j, reach_reduce(machine, j.stream, given, j.arguments));
}

typedef struct conversion {
    void *dst;
    const void *src;
    tsr_dtype dst_dtype, src_dtype;
    int64_t count;
} conversion;

static void run_convert(async_machine *machine, const async_op *op)
{
    const conversion *c = async_arguments(op);
    machine->host->convert(machine->host_self, 0, c->dst, c->dst_dtype, c->src, c->src_dtype, c->count, NULL);
}

static tsr_status convert(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                          int64_t count, tsr_stream handle)
{
    async_machine *machine = self;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_CONVERT, index, handle, sizeof(conversion), run_convert, &j));
    const void *from =
        async_touch_bytes(machine, j.stream, src, (size_t)count * tsr_dtype_bytes(src_dtype), false, "convert");
    void *to = async_touch_bytes(machine, j.stream, dst, (size_t)count * tsr_dtype_bytes(dst_dtype), true, "convert");
    conversion *c = j.arguments;
    *c = (conversion){to, from, dst_dtype, src_dtype, count};
    return finish(machine, &j, from && to);
}

static void run_gemm(async_machine *machine, const async_op *op)
{
    async_multiply(machine, async_arguments(op));
}

static void *reach_matrix(async_machine *machine, async_stream *stream, tsr_dtype dtype, const void *base, int64_t rows,
                          int64_t cols, int64_t ld, bool write)
{
    const int64_t shape[] = {rows, cols}, strides[] = {ld, 1};
    const async_box box = {base, 2, shape, strides, tsr_dtype_bytes(dtype), write, "gemm"};
    return async_touch(machine, stream, &box);
}

static bool reach_gemm(async_machine *machine, async_stream *stream, tsr_gemm *g)
{
    g->a = reach_matrix(machine, stream, g->a_dtype, g->a, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda,
                        false);
    g->b = reach_matrix(machine, stream, g->b_dtype, g->b, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb,
                        false);
    if (g->bias)
        g->bias = reach_matrix(machine, stream, g->bias_dtype, g->bias, 1, g->n, g->n, false);
    if (g->beta != 0)
        reach_matrix(machine, stream, g->c_dtype, g->c, g->m, g->n, g->ldc, false);
    g->c = reach_matrix(machine, stream, g->c_dtype, g->c, g->m, g->n, g->ldc, true);
    return g->a && g->b && g->c &&
           (g->workspace_bytes == 0 ||
            async_touch_bytes(machine, stream, g->workspace, g->workspace_bytes, true, "gemm"));
}

static tsr_status gemm(void *self, int index, const tsr_gemm *given, tsr_stream handle)
{
    async_machine *machine = self;
    job j = {NULL, NULL, NULL};
    TSR_TRY(begin(machine, ASYNC_GEMM, index, handle, sizeof *given, run_gemm, &j));
    tsr_gemm *g = j.arguments;
    *g = *given;
    return finish(machine, &j, reach_gemm(machine, j.stream, g));
}

/* A workspace above 0, so that callers have to provide it. */
static tsr_status gemm_workspace(void *self, int index, const tsr_gemm *given, size_t *bytes)
{
    (void)self;
    (void)index;
    *bytes = (size_t)(given->m % 3) * 64;
    return TSR_OK;
}

static tsr_status stream_create(void *self, int index, tsr_stream *out)
{
    async_machine *machine = self;
    const tsr_status status = async_enter(machine, ASYNC_STREAM_CREATE);
    if (status != TSR_OK)
        return leave(machine, status);
    for (int s = machine->options.devices; s < ASYNC_STREAMS; s++) {
        async_stream *stream = &machine->streams[s];
        if (stream->live)
            continue;
        stream->live = true;
        stream->index = index;
        stream->capture = 0;
        *out = stream;
        return leave(machine, TSR_OK);
    }
    return say_full(machine);
}

/* Work in the stream is still done, as with CUDA. Its number keeps the clock, so that another
 * stream can reuse the number after that. */
static void stream_destroy(void *self, int index, tsr_stream handle)
{
    async_machine *machine = self;
    pthread_mutex_lock(&machine->lock);
    async_stream *stream = async_find(machine, index, handle);
    async_drain(machine, stream);
    stream->live = false;
    pthread_mutex_unlock(&machine->lock);
}

static tsr_status stream_synchronize(void *self, int index, tsr_stream handle)
{
    async_machine *machine = self;
    const tsr_status status = async_enter(machine, ASYNC_SYNCHRONIZE);
    if (status != TSR_OK)
        return leave(machine, status);
    async_stream *stream = async_find(machine, index, handle);
    if (stream->capture)
        async_complain(machine, "stream %d was waited for while capture %llu records it", stream->number,
                       (unsigned long long)stream->capture);
    async_drain(machine, stream);
    return leave(machine, async_take_trouble(stream));
}

static tsr_status event_create(void *self, int index, void **out)
{
    async_machine *machine = self;
    (void)index;
    tsr_status status = async_enter(machine, ASYNC_EVENT_CREATE);
    if (status != TSR_OK)
        return leave(machine, status);
    async_event *event = calloc(1, sizeof *event);
    if (!event)
        return say_full(machine);
    *out = event;
    return leave(machine, TSR_OK);
}

static void event_destroy(void *self, int index, void *event)
{
    async_machine *machine = self;
    (void)index;
    async_enter(machine, ASYNC_EVENT_DESTROY);
    free(event);
    leave(machine, TSR_OK);
}

static tsr_status event_record(void *self, int index, void *handle, tsr_stream on)
{
    async_machine *machine = self;
    async_event *event = handle;
    const tsr_status status = async_enter(machine, ASYNC_EVENT_RECORD);
    if (status != TSR_OK || machine->left_out & 1u << ASYNC_EVENT_RECORD)
        return leave(machine, status);
    const async_stream *stream = async_find(machine, index, on);
    *event = (async_event){true, stream->number, stream->enqueued, stream->capture, stream->clock};
    return leave(machine, TSR_OK);
}

static tsr_status event_wait(void *self, int index, void *handle, tsr_stream on)
{
    async_machine *machine = self;
    const async_event *event = handle;
    const tsr_status status = async_enter(machine, ASYNC_EVENT_WAIT);
    if (status != TSR_OK || machine->left_out & 1u << ASYNC_EVENT_WAIT || !event->recorded)
        return leave(machine, status);
    async_op *op = async_op_create(0, NULL);
    if (!op)
        return say_full(machine);
    async_stream *stream = async_find(machine, index, on);
    if (stream->capture && event->capture != stream->capture)
        async_complain(machine, "stream %d, which capture %llu records, waits for what was recorded outside of it",
                       stream->number, (unsigned long long)stream->capture);
    op->awaited = event->stream;
    op->until = event->until;
    async_tick(machine, stream);
    for (int s = 0; s < ASYNC_STREAMS; s++)
        if (stream->clock.at[s] < event->clock.at[s])
            stream->clock.at[s] = event->clock.at[s];
    async_enqueue(machine, stream, op);
    return leave(machine, TSR_OK);
}

static tsr_status reaches(void *self, int index, int owner, int *out)
{
    async_machine *machine = self;
    const tsr_status status = async_enter(machine, ASYNC_REACHES);
    if (status == TSR_OK)
        *out = !machine->options.reaches || machine->options.reaches(index, owner);
    return leave(machine, status);
}

static tsr_status capture(void *self, int index, tsr_stream stream, uint64_t *id)
{
    async_machine *machine = self;
    const tsr_status status = async_enter(machine, ASYNC_CAPTURE);
    if (status == TSR_OK)
        *id = async_find(machine, index, stream)->capture;
    return leave(machine, status);
}

const tsr_device_table *async_table(void)
{
    static const tsr_device_table table = {
        .size = sizeof(tsr_device_table),
        .name = "async",
        .count = count_devices,
        .alloc = allocate,
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
        .gemm_workspace = gemm_workspace,
        .reaches = reaches,
        .capture = capture,
    };
    return &table;
}
