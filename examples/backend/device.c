/* The table of the device: every entry checks its arguments, copies them into a command, and
 * enqueues it. */
#include "queue.h"

#include <tessera/sys/library.h>
#include <tessera/sys/status.h>

#include <string.h>

static tsr_status count_devices(void *self, int *count, const char **reason)
{
    (void)self;
    *count = QUEUE_DEVICES;
    *reason = NULL;
    return TSR_OK;
}

/* Frees in stream order may still have memory to give back, so a device that is full waits once. */
static tsr_status allocate(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    queue_machine *const machine = self;
    tsr_status status = TSR_OK;
    (void)index, (void)stream;
    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&machine->lock);
        status = space_allocate(&machine->memory, bytes, out);
        pthread_mutex_unlock(&machine->lock);
        if (status == TSR_OK)
            break;
        queue_wait(machine, NULL);
    }
    return status;
}

static tsr_status run_release(queue_machine *machine, void *arguments)
{
    void *memory;
    memcpy(&memory, arguments, sizeof memory);
    pthread_mutex_lock(&machine->lock);
    space_release(&machine->memory, memory);
    pthread_mutex_unlock(&machine->lock);
    return TSR_OK;
}

static void release(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    queue_machine *const machine = self;
    queue_command *const command = stream ? queue_prepare(machine, sizeof memory, run_release) : NULL;
    (void)bytes;
    if (command) {
        memcpy(queue_arguments(command), &memory, sizeof memory);
        queue_enqueue(machine, queue_find(machine, index, stream), command);
        return;
    }
    queue_wait(machine, NULL);
    run_release(machine, &memory);
}

typedef struct copied {
    void *dst;
    const void *src;
    size_t bytes;
} copied;

static tsr_status run_copy(queue_machine *machine, void *arguments)
{
    const copied *const c = arguments;
    (void)machine;
    memcpy(c->dst, c->src, c->bytes);
    return TSR_OK;
}

static tsr_status copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                       tsr_stream stream)
{
    queue_machine *const machine = self;
    void *from = (void *)(uintptr_t)src;
    if (bytes == 0)
        return TSR_OK;
    if (kind != TSR_COPY_TO_HOST)
        TSR_TRY(queue_enter(machine, dst, &dst));
    if (kind != TSR_COPY_FROM_HOST)
        TSR_TRY(queue_enter(machine, src, &from));
    queue_command *const command = queue_prepare(machine, sizeof(copied), run_copy);
    if (!command)
        return queue_say_full();
    *(copied *)queue_arguments(command) = (copied){dst, from, bytes};
    queue_enqueue(machine, queue_find(machine, index, stream), command);
    return TSR_OK;
}

/* Makes a box empty, so that the host's kernels check it and do nothing. */
static void empty(int *ndim, int64_t *shape)
{
    if (*ndim == 0)
        *ndim = 1, shape[0] = 0;
    else if (*ndim > 0 && *ndim <= TSR_MAX_DIMS && shape[0] > 0)
        shape[0] = 0;
}

static bool is_empty(int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0)
            return true;
    return false;
}

typedef struct boxes {
    size_t count;
    tsr_box_copy at[];
} boxes;

static tsr_status run_boxes(queue_machine *machine, void *arguments)
{
    const boxes *const b = arguments;
    return machine->host->copy_boxes(machine->host_self, 0, b->at, b->count, NULL);
}

static tsr_status enter_box(const queue_machine *machine, tsr_box_copy *box)
{
    tsr_box_copy probe = *box;
    void *from = NULL;
    empty(&probe.ndim, probe.shape);
    TSR_TRY(machine->host->copy_boxes(machine->host_self, 0, &probe, 1, NULL));
    if (is_empty(box->ndim, box->shape))
        return TSR_OK;
    TSR_TRY(queue_enter(machine, box->src, &from));
    box->src = from;
    return queue_enter(machine, box->dst, &box->dst);
}

static tsr_status copy_boxes(void *self, int index, const tsr_box_copy *given, size_t count, tsr_stream stream)
{
    queue_machine *const machine = self;
    queue_command *const command = queue_prepare(machine, sizeof(boxes) + count * sizeof *given, run_boxes);
    if (!command)
        return queue_say_full();
    boxes *const b = queue_arguments(command);
    tsr_status status = TSR_OK;
    b->count = count;
    for (size_t i = 0; i < count && status == TSR_OK; i++) {
        b->at[i] = given[i];
        status = enter_box(machine, &b->at[i]);
    }
    if (status == TSR_OK)
        queue_enqueue(machine, queue_find(machine, index, stream), command);
    else
        queue_discard(machine, command);
    return status;
}

static tsr_status run_fill(queue_machine *machine, void *arguments)
{
    return machine->host->fill(machine->host_self, 0, arguments, NULL);
}

static tsr_status fill(void *self, int index, const tsr_box_fill *given, tsr_stream stream)
{
    queue_machine *const machine = self;
    tsr_box_fill probe = *given, box = *given;
    empty(&probe.ndim, probe.shape);
    TSR_TRY(machine->host->fill(machine->host_self, 0, &probe, NULL));
    if (is_empty(box.ndim, box.shape))
        return TSR_OK;
    TSR_TRY(queue_enter(machine, given->dst, &box.dst));
    queue_command *const command = queue_prepare(machine, sizeof box, run_fill);
    if (!command)
        return queue_say_full();
    *(tsr_box_fill *)queue_arguments(command) = box;
    queue_enqueue(machine, queue_find(machine, index, stream), command);
    return TSR_OK;
}

/* An operand of a reduction. */
typedef struct operand {
    void *at;
    int64_t strides[TSR_MAX_DIMS];
} operand;

/* The operands, sources first, follow; then come the lists that the host's kernel reads. */
typedef struct reduction {
    tsr_box_reduce box;
    operand operands[];
} reduction;

static size_t bytes_of_reduction(size_t operands)
{
    return sizeof(reduction) + operands * (sizeof(operand) + sizeof(void *) + sizeof(int64_t[TSR_MAX_DIMS]));
}

static tsr_status run_reduce(queue_machine *machine, void *arguments)
{
    reduction *const r = arguments;
    const size_t count = (size_t)r->box.src_count + (size_t)r->box.dst_count;
    int64_t(*const strides)[TSR_MAX_DIMS] = (void *)(r->operands + count);
    void **const pointers = (void **)(strides + count);
    for (size_t i = 0; i < count; i++) {
        pointers[i] = r->operands[i].at;
        memcpy(strides[i], r->operands[i].strides, sizeof strides[i]);
    }
    r->box.src = (const void *const *)pointers;
    r->box.dst = pointers + r->box.src_count;
    r->box.src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides;
    r->box.dst_strides = (const int64_t(*)[TSR_MAX_DIMS])(strides + r->box.src_count);
    return machine->host->reduce(machine->host_self, 0, &r->box, NULL);
}

static tsr_status enter_operands(const queue_machine *machine, const tsr_box_reduce *given, operand *out)
{
    for (int s = 0; s < given->src_count; s++, out++) {
        TSR_TRY(queue_enter(machine, given->src[s], &out->at));
        memcpy(out->strides, given->src_strides[s], sizeof out->strides);
    }
    for (int d = 0; d < given->dst_count; d++, out++) {
        TSR_TRY(queue_enter(machine, given->dst[d], &out->at));
        memcpy(out->strides, given->dst_strides[d], sizeof out->strides);
    }
    return TSR_OK;
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *given, tsr_stream stream)
{
    queue_machine *const machine = self;
    tsr_box_reduce probe = *given;
    empty(&probe.ndim, probe.shape);
    TSR_TRY(machine->host->reduce(machine->host_self, 0, &probe, NULL));
    if (is_empty(given->ndim, given->shape))
        return TSR_OK;
    queue_command *const command =
        queue_prepare(machine, bytes_of_reduction((size_t)given->src_count + (size_t)given->dst_count), run_reduce);
    if (!command)
        return queue_say_full();
    reduction *const r = queue_arguments(command);
    r->box = *given;
    const tsr_status status = enter_operands(machine, given, r->operands);
    if (status == TSR_OK)
        queue_enqueue(machine, queue_find(machine, index, stream), command);
    else
        queue_discard(machine, command);
    return status;
}

typedef struct converted {
    void *dst;
    const void *src;
    tsr_dtype dst_dtype, src_dtype;
    int64_t count;
} converted;

static tsr_status run_convert(queue_machine *machine, void *arguments)
{
    const converted *const c = arguments;
    return machine->host->convert(machine->host_self, 0, c->dst, c->dst_dtype, c->src, c->src_dtype, c->count, NULL);
}

static tsr_status convert(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                          int64_t count, tsr_stream stream)
{
    queue_machine *const machine = self;
    void *from = NULL;
    TSR_TRY(
        machine->host->convert(machine->host_self, 0, NULL, dst_dtype, NULL, src_dtype, count < 0 ? count : 0, NULL));
    if (count == 0)
        return TSR_OK;
    TSR_TRY(queue_enter(machine, dst, &dst));
    TSR_TRY(queue_enter(machine, src, &from));
    queue_command *const command = queue_prepare(machine, sizeof(converted), run_convert);
    if (!command)
        return queue_say_full();
    *(converted *)queue_arguments(command) = (converted){dst, from, dst_dtype, src_dtype, count};
    queue_enqueue(machine, queue_find(machine, index, stream), command);
    return TSR_OK;
}

static tsr_status stream_create(void *self, int index, tsr_stream *out)
{
    queue_stream *made;
    TSR_TRY(queue_stream_open(self, index, &made));
    *out = made;
    return TSR_OK;
}

static void stream_destroy(void *self, int index, tsr_stream stream)
{
    (void)index;
    queue_stream_close(self, stream);
}

static tsr_status stream_synchronize(void *self, int index, tsr_stream stream)
{
    return queue_wait(self, queue_find(self, index, stream));
}

static tsr_status event_create(void *self, int index, void **out)
{
    (void)index;
    return queue_event_create(self, out);
}

static void event_destroy(void *self, int index, void *event)
{
    (void)index;
    queue_event_destroy(self, event);
}

static tsr_status event_record(void *self, int index, void *event, tsr_stream stream)
{
    queue_record(self, event, queue_find(self, index, stream));
    return TSR_OK;
}

static tsr_status event_wait(void *self, int index, void *event, tsr_stream stream)
{
    return queue_await(self, event, queue_find(self, index, stream));
}

static void destroy(void *self)
{
    queue_machine_destroy(self);
}

static const tsr_device_table queue_table = {
    .size = sizeof(tsr_device_table),
    .name = "queue",
    .count = count_devices,
    .alloc = allocate,
    .free = release,
    .copy = copy,
    .copy_boxes = copy_boxes,
    .fill = fill,
    .reduce = reduce,
    .convert = convert,
    .gemm = queue_gemm,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .destroy = destroy,
    .default_stream = &queue_default,
};

TSR_API tsr_device_plugin tessera_device;

tsr_status tessera_device(tsr_context *context, tsr_device_driver **out)
{
    queue_machine *machine;
    TSR_TRY(queue_machine_create(context, &machine));
    const tsr_status status = tsr_device_driver_create(&queue_table, machine, out);
    if (status != TSR_OK)
        queue_machine_destroy(machine);
    return status;
}
