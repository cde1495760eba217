/*
 * A device with one fault, for tests of the suite: TESSERA_MUTANT names the fault, and
 * TESSERA_MUTANT_OF the shared object of a device without any.
 */
#include <tessera/sys/library.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The device without faults; its entries are called with its `self`. */
static const tsr_device_table *sound;

static tsr_status copy_short(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                             tsr_stream stream)
{
    return sound->copy(self, index, dst, src, bytes > 1 ? bytes - 1 : bytes, kind, stream);
}

static tsr_status copy_short_box(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    for (size_t i = 0; i < count; i++) {
        tsr_box_copy box = boxes[i];
        if (box.ndim > 0 && box.ndim <= TSR_MAX_DIMS && box.shape[box.ndim - 1] > 1)
            box.shape[box.ndim - 1]--;
        TSR_TRY(sound->copy_boxes(self, index, &box, 1, stream));
    }
    return TSR_OK;
}

/* A fill that waits until the call after it. */
static struct {
    tsr_box_fill box;
    int there, index;
    tsr_stream stream;
} held;

static tsr_status let_go(void *self)
{
    if (!held.there)
        return TSR_OK;
    held.there = 0;
    return sound->fill(self, held.index, &held.box, held.stream);
}

static tsr_status fill_late(void *self, int index, const tsr_box_fill *box, tsr_stream stream)
{
    TSR_TRY(let_go(self));
    held.box = *box;
    held.index = index;
    held.stream = stream;
    held.there = 1;
    return TSR_OK;
}

static tsr_status copy_before(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                              tsr_stream stream)
{
    TSR_TRY(sound->copy(self, index, dst, src, bytes, kind, stream));
    return let_go(self);
}

static tsr_status synchronize_held(void *self, int index, tsr_stream stream)
{
    TSR_TRY(let_go(self));
    return sound->stream_synchronize(self, index, stream);
}

static tsr_status synchronize_never(void *self, int index, tsr_stream stream)
{
    (void)self, (void)index, (void)stream;
    for (;;)
        pause();
    return TSR_OK;
}

static tsr_status wait_not(void *self, int index, void *event, tsr_stream stream)
{
    (void)self, (void)index, (void)event, (void)stream;
    return TSR_OK;
}

/* Reads its boxes when the next call comes. */
static struct {
    const tsr_box_copy *boxes;
    size_t count;
} unread;

static tsr_status copy_unread(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    (void)self, (void)index, (void)stream;
    unread.boxes = boxes;
    unread.count = count;
    return TSR_OK;
}

static tsr_status copy_read(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                            tsr_stream stream)
{
    if (unread.boxes)
        sound->copy_boxes(self, index, unread.boxes, unread.count, stream);
    unread.boxes = NULL;
    return sound->copy(self, index, dst, src, bytes, kind, stream);
}

static tsr_status reduce_backwards(void *self, int index, const tsr_box_reduce *box, tsr_stream stream)
{
    const void *src[8];
    int64_t strides[8][TSR_MAX_DIMS];
    tsr_box_reduce turned = *box;
    if (box->src_count > 8 || box->src_count < 1 || !box->src)
        return sound->reduce(self, index, box, stream);
    for (int s = 0; s < box->src_count; s++) {
        const int from = box->src_count - 1 - s;
        src[s] = box->src[from];
        memcpy(strides[s], box->src_strides[from], sizeof strides[s]);
    }
    turned.src = src;
    turned.src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides;
    return sound->reduce(self, index, &turned, stream);
}

static tsr_status multiply_without_bias(void *self, int index, const tsr_gemm *gemm, tsr_stream stream)
{
    tsr_gemm bare = *gemm;
    bare.bias = NULL;
    return sound->gemm(self, index, &bare, stream);
}

enum { OFF = 32 };

static tsr_status allocate_off(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    char *made;
    TSR_TRY(sound->alloc(self, index, bytes + OFF, stream, (void **)&made));
    *out = made + OFF;
    return TSR_OK;
}

static void release_off(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    sound->free(self, index, (char *)memory - OFF, bytes + OFF, stream);
}

static void spoil(tsr_device_table *table, const char *fault)
{
    if (strcmp(fault, "no count") == 0)
        table->count = NULL;
    else if (strcmp(fault, "no event_wait") == 0)
        table->event_wait = NULL;
    else if (strcmp(fault, "short copies") == 0)
        table->copy = copy_short;
    else if (strcmp(fault, "short boxes") == 0)
        table->copy_boxes = copy_short_box;
    else if (strcmp(fault, "out of order") == 0) {
        table->fill = fill_late;
        table->copy = copy_before;
        table->stream_synchronize = synchronize_held;
    } else if (strcmp(fault, "never signals") == 0)
        table->stream_synchronize = synchronize_never;
    else if (strcmp(fault, "forgets waits") == 0)
        table->event_wait = wait_not;
    else if (strcmp(fault, "reads late") == 0) {
        table->copy_boxes = copy_unread;
        table->copy = copy_read;
    } else if (strcmp(fault, "sums backwards") == 0)
        table->reduce = reduce_backwards;
    else if (strcmp(fault, "no bias") == 0)
        table->gemm = multiply_without_bias;
    else if (strcmp(fault, "unaligned") == 0) {
        table->alloc = allocate_off;
        table->free = release_off;
    }
}

TSR_API tsr_device_plugin tessera_device;

tsr_status tessera_device(tsr_context *context, tsr_device_driver **out)
{
    const char *const fault = getenv("TESSERA_MUTANT"), *const of = getenv("TESSERA_MUTANT_OF");
    tsr_device_driver *under;
    void *self;
    TSR_TRY(tsr_device_driver_load(context, of, &under));
    sound = tsr_device_driver_table(under, &self);
    tsr_device_table table = *sound;
    table.destroy = NULL;
    spoil(&table, fault);
    const tsr_status status = tsr_device_driver_create(&table, self, out);
    if (status != TSR_OK)
        tsr_device_driver_destroy(under);
    return status;
}
