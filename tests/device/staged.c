#include "staged.h"

#include "variants.h"

#include <stdbool.h>

/* The least that tables promise. */
#define ALIGNMENT 64
#define GUARD     256
#define MOST      64

/* Host bytes that a call touches, and their copy on the device, between guards and with the
 * alignment of the host. */
typedef struct extent {
    unsigned char *host;
    size_t bytes, before;           /* bytes of padding and guard before the copy */
    unsigned char *device, *bounce; /* the copy, and memory of the host from which it was filled */
} extent;

static struct {
    tsr_device_table table; /* the table that callers get */
    const tsr_device_table *device;
    void *self;
    tsr_stream stream;
    extent extents[MOST];
    int count;
} staged;

static void *address(const extent *e, const void *host)
{
    return e->device + e->before + ((const unsigned char *)host - e->host);
}

/* The device address of host memory in an extent. */
static void *translate(const void *host)
{
    for (int i = 0; i < staged.count; i++) {
        const extent *const e = &staged.extents[i];
        if ((const unsigned char *)host >= e->host && (const unsigned char *)host < e->host + e->bytes)
            return address(e, host);
    }
    return NULL;
}

/* Adds the bytes of a box, unless it is NULL, as an extent, merged with extents that it
 * overlaps. */
static void add(const void *first, size_t element, int ndim, const int64_t *shape, const int64_t *strides)
{
    unsigned char *low = (unsigned char *)(uintptr_t)first, *high = low + element;
    if (!first)
        return;
    for (int d = 0; d < ndim; d++) {
        const int64_t reach = (shape[d] - 1) * strides[d] * (int64_t)element;
        if (shape[d] == 0)
            return;
        *(reach < 0 ? &low : &high) += reach;
    }
    for (int i = 0; i < staged.count; i++) {
        extent *const e = &staged.extents[i];
        if (low < e->host + e->bytes && e->host < high) {
            low = low < e->host ? low : e->host;
            high = high > e->host + e->bytes ? high : e->host + e->bytes;
            *e = staged.extents[--staged.count];
            i = -1;
        }
    }
    assert_true(staged.count < MOST);
    staged.extents[staged.count++] = (extent){.host = low, .bytes = (size_t)(high - low)};
}

static size_t room(const extent *e)
{
    return e->before + e->bytes + GUARD;
}

static void upload(extent *e)
{
    void *memory;
    e->before = GUARD + (uintptr_t)e->host % ALIGNMENT;
    e->bounce = malloc(room(e));
    assert_non_null(e->bounce);
    memset(e->bounce, 0x5c, room(e));
    memcpy(e->bounce + e->before, e->host, e->bytes);
    assert_int_equal(staged.device->alloc(staged.self, 0, room(e), staged.stream, &memory), TSR_OK);
    assert_int_equal((uintptr_t)memory % ALIGNMENT, 0);
    e->device = memory;
    assert_int_equal(staged.device->copy(staged.self, 0, memory, e->bounce, room(e), TSR_COPY_FROM_HOST, staged.stream),
                     TSR_OK);
}

/* Copies back only bytes that differ, since host memory that a call only reads may be constant. */
static void download(const extent *e)
{
    unsigned char *const bounce = e->bounce;
    assert_int_equal(staged.device->copy(staged.self, 0, bounce, e->device, room(e), TSR_COPY_TO_HOST, staged.stream),
                     TSR_OK);
    if (staged.device->stream_synchronize)
        assert_int_equal(staged.device->stream_synchronize(staged.self, 0, staged.stream), TSR_OK);
    for (size_t i = 0; i < room(e); i++)
        if ((i < e->before || i >= e->before + e->bytes) && bounce[i] != 0x5c)
            fail_msg("byte %zu of %zu, outside the %zu of the call, was written", i, room(e), e->bytes);
    if (memcmp(e->host, bounce + e->before, e->bytes) != 0)
        memcpy(e->host, bounce + e->before, e->bytes);
    staged.device->free(staged.self, 0, e->device, room(e), staged.stream);
    free(bounce);
}

static void begin(void)
{
    for (int i = 0; i < staged.count; i++)
        upload(&staged.extents[i]);
}

static tsr_status end(tsr_status status)
{
    for (int i = 0; i < staged.count; i++)
        download(&staged.extents[i]);
    staged.count = 0;
    return status;
}

static bool is_sound(int ndim, const int64_t *shape)
{
    bool sound = ndim >= 0 && ndim <= TSR_MAX_DIMS;
    for (int d = 0; sound && d < ndim; d++)
        sound = shape[d] >= 0;
    return sound;
}

static tsr_status copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    tsr_box_copy moved[MOST];
    (void)self, (void)index, (void)stream;
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        moved[i] = boxes[i];
        if (!is_sound(boxes[i].ndim, boxes[i].shape))
            continue;
        add(boxes[i].src, boxes[i].element_bytes, boxes[i].ndim, boxes[i].shape, boxes[i].src_strides);
        add(boxes[i].dst, boxes[i].element_bytes, boxes[i].ndim, boxes[i].shape, boxes[i].dst_strides);
    }
    begin();
    for (size_t i = 0; i < count; i++) {
        moved[i].src = translate(boxes[i].src);
        moved[i].dst = translate(boxes[i].dst);
    }
    return end(staged.device->copy_boxes(staged.self, 0, moved, count, staged.stream));
}

static tsr_status fill(void *self, int index, const tsr_box_fill *given, tsr_stream stream)
{
    tsr_box_fill moved = *given;
    (void)self, (void)index, (void)stream;
    if (is_sound(given->ndim, given->shape))
        add(given->dst, given->element_bytes, given->ndim, given->shape, given->dst_strides);
    begin();
    moved.dst = translate(given->dst);
    return end(staged.device->fill(staged.self, 0, &moved, staged.stream));
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *given, tsr_stream stream)
{
    const size_t element = tsr_dtype_bytes(given->dtype);
    const bool sound = is_sound(given->ndim, given->shape) && element > 0 && given->src && given->dst;
    tsr_box_reduce moved = *given;
    const void *src[MOST];
    void *dst[MOST];
    (void)self, (void)index, (void)stream;
    assert_true(given->src_count <= MOST && given->dst_count <= MOST);
    for (int s = 0; sound && s < given->src_count; s++)
        add(given->src[s], element, given->ndim, given->shape, given->src_strides[s]);
    for (int d = 0; sound && d < given->dst_count; d++)
        add(given->dst[d], element, given->ndim, given->shape, given->dst_strides[d]);
    begin();
    for (int s = 0; sound && s < given->src_count; s++)
        src[s] = translate(given->src[s]);
    for (int d = 0; sound && d < given->dst_count; d++)
        dst[d] = translate(given->dst[d]);
    moved.src = src;
    moved.dst = dst;
    return end(staged.device->reduce(staged.self, 0, &moved, staged.stream));
}

static tsr_status convert(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                          int64_t count, tsr_stream stream)
{
    const int64_t one = 1;
    (void)self, (void)index, (void)stream;
    if (count >= 0 && tsr_dtype_bytes(dst_dtype) > 0 && tsr_dtype_bytes(src_dtype) > 0) {
        add(src, tsr_dtype_bytes(src_dtype), 1, &count, &one);
        add(dst, tsr_dtype_bytes(dst_dtype), 1, &count, &one);
    }
    begin();
    return end(staged.device->convert(staged.self, 0, translate(dst), dst_dtype, translate(src), src_dtype, count,
                                      staged.stream));
}

static tsr_status copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                       tsr_stream stream)
{
    const int64_t count = (int64_t)bytes, one = 1;
    (void)self, (void)index, (void)stream;
    add(src, 1, 1, &count, &one);
    add(dst, 1, 1, &count, &one);
    begin();
    return end(staged.device->copy(staged.self, 0, translate(dst), translate(src), bytes, kind, staged.stream));
}

const tsr_device_table *staged_table(const tsr_device_driver *driver)
{
    staged.device = tsr_device_driver_table(driver, &staged.self);
    if (staged.device->stream_create)
        assert_int_equal(staged.device->stream_create(staged.self, 0, &staged.stream), TSR_OK);
    staged.table = *staged.device;
    staged.table.copy = copy;
    staged.table.copy_boxes = copy_boxes;
    staged.table.fill = fill;
    staged.table.reduce = reduce;
    staged.table.convert = convert;
    return &staged.table;
}
