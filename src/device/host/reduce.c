/*
 * Reduction of boxes. The box is walked in tiles of a block each; a tile's sources are combined in the block, in the first-level cache,
 * and the finished block goes out to every destination. So each source is read once and each destination written once, whatever their
 * number, and a destination may be a source: its tile has been read before it is written.
 */
#include "device/host/reduce.h"

#include "device/host/arithmetic.h"
#include "device/host/copy.h"
#include "device/host/floats.h"
#include "device/host/stream.h"
#include "device/request.h"
#include <stdalign.h>
#include <stdlib.h>

/* Bytes of accumulators in a block. All buffers of a tile together fit a first-level cache of 32 KiB where sources are contiguous. */
#define BLOCK 4096

typedef struct reduction {
    const tsr_box_reduce *given;
    const tsr_arithmetic *arithmetic;
    tsr_widen *widen;
    tsr_narrow *narrow;
    tsr_combine *combine;
    size_t bytes;  /* of an element */
    int64_t block; /* elements */
    bool stream;
    int ndim;                        /* at least 2, dims merged where all operands allow */
    int64_t shape[TSR_MAX_DIMS + 1]; /* outermost first */
    int dim[TSR_MAX_DIMS + 1];       /* the given dim whose strides count; -1: size 1 */
} reduction;

typedef struct buffers {
    alignas(64) char accumulator[BLOCK];
    alignas(64) char packed[2][BLOCK];
    alignas(64) float wide[2][BLOCK / sizeof(float)];
    alignas(64) char narrow[BLOCK];
} buffers;

/* A part of the box that fits a block: `rows` of `columns` along the two last dims, from `index` on. */
typedef struct tile {
    int64_t index[TSR_MAX_DIMS + 1];
    int64_t rows, columns;
} tile;

static int64_t stride(const reduction *r, const int64_t *strides, int d)
{
    return r->dim[d] < 0 ? 0 : strides[r->dim[d]];
}

static int64_t offset(const reduction *r, const tile *t, const int64_t *strides)
{
    int64_t sum = 0;
    for (int d = 0; d < r->ndim; d++)
        sum += t->index[d] * stride(r, strides, d);
    return sum * (int64_t)r->bytes;
}

static bool tile_is_contiguous(const reduction *r, const tile *t, const int64_t *strides)
{
    return (t->columns == 1 || stride(r, strides, r->ndim - 1) == 1) && (t->rows == 1 || stride(r, strides, r->ndim - 2) == t->columns);
}

/* The copy between a tile in place and its elements in a row. */
static tsr_box_copy tile_copy(const reduction *r, const tile *t)
{
    return (tsr_box_copy){.element_bytes = r->bytes, .ndim = 2, .shape = {t->rows, t->columns}};
}

static void copy_tile(const tsr_box_copy *copy, bool stream)
{
    tsr_box box;
    if (tsr_box_normalise(copy, &box))
        KERNEL(copy_box)(&box, copy->dst, copy->src, stream);
}

/* Source `s` of the tile as contiguous elements of the dtype: where it lies, or packed into `packed`. */
static const void *gather(const reduction *r, const tile *t, int s, char *packed)
{
    const int64_t *const strides = r->given->src_strides[s];
    const char *const from = (const char *)r->given->src[s] + offset(r, t, strides);
    if (tile_is_contiguous(r, t, strides))
        return from;
    tsr_box_copy copy = tile_copy(r, t);
    copy.dst = packed;
    copy.dst_strides[0] = t->columns;
    copy.dst_strides[1] = 1;
    copy.src = from;
    copy.src_strides[0] = stride(r, strides, r->ndim - 2);
    copy.src_strides[1] = stride(r, strides, r->ndim - 1);
    copy_tile(&copy, false);
    return packed;
}

static void scatter(const reduction *r, const tile *t, int to, const void *values)
{
    const int64_t *const strides = r->given->dst_strides[to];
    char *const dst = (char *)r->given->dst[to] + offset(r, t, strides);
    if (tile_is_contiguous(r, t, strides)) {
        KERNEL(copy_run)(dst, values, (size_t)(t->rows * t->columns) * r->bytes, r->stream);
        return;
    }
    tsr_box_copy copy = tile_copy(r, t);
    copy.dst = dst;
    copy.dst_strides[0] = stride(r, strides, r->ndim - 2);
    copy.dst_strides[1] = stride(r, strides, r->ndim - 1);
    copy.src = values;
    copy.src_strides[0] = t->columns;
    copy.src_strides[1] = 1;
    copy_tile(&copy, r->stream);
}

/* The same as accumulators; `which` of the two buffers of each kind is free. */
static const void *load(const reduction *r, const tile *t, int s, buffers *b, int which)
{
    const void *const values = gather(r, t, s, b->packed[which]);
    if (!r->widen)
        return values;
    r->widen(b->wide[which], values, t->rows * t->columns);
    return b->wide[which];
}

static const void *accumulate(const reduction *r, const tile *t, buffers *b)
{
    const int64_t parts = t->rows * t->columns * r->arithmetic->parts;
    const void *const first = load(r, t, 0, b, 0);
    if (r->given->src_count == 1 && !r->arithmetic->settle && r->given->divisor == 1)
        return first;
    if (r->given->src_count > 1)
        r->combine(b->accumulator, first, load(r, t, 1, b, 1), parts);
    else if (r->arithmetic->settle)
        r->arithmetic->settle(b->accumulator, first, parts);
    else
        memcpy(b->accumulator, first, (size_t)(t->rows * t->columns) * r->arithmetic->bytes);
    for (int s = 2; s < r->given->src_count; s++)
        r->combine(b->accumulator, b->accumulator, load(r, t, s, b, 1), parts);
    if (r->given->divisor != 1)
        r->arithmetic->divide(b->accumulator, r->given->divisor, parts);
    return b->accumulator;
}

/* The finished tile, contiguous, in the dtype. */
static const void *finish(const reduction *r, const tile *t, buffers *b)
{
    const int64_t count = t->rows * t->columns;
    const bool pair = r->narrow && r->given->src_count == 2 && r->combine == r->arithmetic->combine[TSR_SUM] && r->given->divisor == 1;
    if (pair) {
        const void *const left = gather(r, t, 0, b->packed[0]);
        KERNEL(add_pair)(r->given->dtype)(b->narrow, left, gather(r, t, 1, b->packed[1]), count);
        return b->narrow;
    }
    const void *const accumulated = accumulate(r, t, b);
    if (!r->narrow)
        return accumulated;
    r->narrow(b->narrow, accumulated, count);
    return b->narrow;
}

static void reduce_tile(const reduction *r, const tile *t, buffers *b)
{
    const void *const values = finish(r, t, b);
    for (int to = 0; to < r->given->dst_count; to++)
        scatter(r, t, to, values);
}

/* Advances all dims but the two last; false past the end. */
static bool next_plane(const reduction *r, tile *t)
{
    for (int d = r->ndim - 3; d >= 0; d--) {
        if (++t->index[d] < r->shape[d])
            return true;
        t->index[d] = 0;
    }
    return false;
}

static void reduce_planes(const reduction *r)
{
    const int outer = r->ndim - 2, inner = r->ndim - 1;
    const int64_t columns = r->shape[inner] < r->block ? r->shape[inner] : r->block;
    const int64_t rows = r->block / columns < r->shape[outer] ? r->block / columns : r->shape[outer];
    buffers b;
    tile t = {.index = {0}};
    do {
        for (t.index[outer] = 0; t.index[outer] < r->shape[outer]; t.index[outer] += rows) {
            t.rows = r->shape[outer] - t.index[outer] < rows ? r->shape[outer] - t.index[outer] : rows;
            for (t.index[inner] = 0; t.index[inner] < r->shape[inner]; t.index[inner] += columns) {
                t.columns = r->shape[inner] - t.index[inner] < columns ? r->shape[inner] - t.index[inner] : columns;
                reduce_tile(r, &t, &b);
            }
        }
    } while (next_plane(r, &t));
}

static bool operand_merges(const int64_t *strides, int outer, int inner, int64_t size)
{
    return strides[outer] == strides[inner] * size;
}

/* True if, for every operand, one step along `outer` is `size` steps along `inner`. */
static bool dims_merge(const tsr_box_reduce *g, int outer, int inner, int64_t size)
{
    for (int s = 0; s < g->src_count; s++)
        if (!operand_merges(g->src_strides[s], outer, inner, size))
            return false;
    for (int d = 0; d < g->dst_count; d++)
        if (!operand_merges(g->dst_strides[d], outer, inner, size))
            return false;
    return true;
}

/* Inserts the dims by falling stride of the first destination; those of size 1 have no say. */
static void order_dims(reduction *r)
{
    const int64_t *const strides = r->given->dst_strides[0];
    for (int d = 0; d < r->given->ndim; d++) {
        int at = r->ndim;
        if (r->given->shape[d] == 1)
            continue;
        for (; at > 0 && llabs(strides[r->dim[at - 1]]) < llabs(strides[d]); at--)
            r->dim[at] = r->dim[at - 1];
        r->dim[at] = d;
        r->ndim++;
    }
    for (int d = 0; d < r->ndim; d++)
        r->shape[d] = r->given->shape[r->dim[d]];
}

static void merge_dims(reduction *r)
{
    int last = 0;
    for (int d = 1; d < r->ndim; d++) {
        const bool together = dims_merge(r->given, r->dim[last], r->dim[d], r->shape[d]);
        const int64_t size = together ? r->shape[last] * r->shape[d] : r->shape[d];
        last += !together;
        r->shape[last] = size;
        r->dim[last] = r->dim[d];
    }
    r->ndim = r->ndim > 0 ? last + 1 : 0;
}

static void pad_to_plane(reduction *r)
{
    for (; r->ndim < 2; r->ndim++) {
        r->shape[1] = r->ndim > 0 ? r->shape[0] : 1;
        r->dim[1] = r->ndim > 0 ? r->dim[0] : -1;
        r->shape[0] = 1;
        r->dim[0] = -1;
    }
}

static bool is_empty(const tsr_box_reduce *given, size_t bytes, size_t *total)
{
    *total = bytes * (size_t)given->dst_count;
    for (int d = 0; d < given->ndim; d++)
        *total *= (size_t)given->shape[d];
    return *total == 0;
}

tsr_status KERNEL(host_reduce)(void *self, int index, const tsr_box_reduce *given, tsr_stream stream)
{
    size_t total;
    (void)self, (void)index, (void)stream;
    TSR_TRY(tsr_request_check_reduction("host", given));
    reduction r = {.given = given, .arithmetic = KERNEL(arithmetic)(given->dtype), .bytes = tsr_dtype_bytes(given->dtype)};
    if (is_empty(given, r.bytes, &total))
        return TSR_OK;
    r.widen = KERNEL(widen)(given->dtype);
    r.narrow = KERNEL(narrow)(given->dtype);
    r.combine = r.arithmetic->combine[given->op];
    r.block = BLOCK / (int64_t)r.arithmetic->bytes;
    r.stream = total >= STREAM_TOTAL;
    order_dims(&r);
    merge_dims(&r);
    pad_to_plane(&r);
    reduce_planes(&r);
    if (r.stream)
        stream_fence();
    return TSR_OK;
}
