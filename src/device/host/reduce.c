/*
 * Reduction of boxes. The box is walked in tiles that each fit a block; a tile's sources are
 * combined in the block, in the first-level cache, and the finished block is written to every
 * destination. So each source is read once and each destination written once, and a destination may
 * be a source: its tile is read before it is written.
 */
#include "device/host/reduce.h"

#include "device/host/arithmetic.h"
#include "device/host/copy.h"
#include "device/host/floats.h"
#include "device/host/stream.h"
#include "device/request.h"

#include <stdalign.h>
#include <stdlib.h>

/* Bytes of accumulators in a block. If sources are contiguous, all buffers of a tile together fit a
 * first-level cache of 32 KiB. */
#define BLOCK 4096

/* AT_ONCE pages are reduced at once, in TURNS turns: processors fetch ahead within a page, in
 * several pages at a time. */
#define PAGE    ((size_t)4096)
#define AT_ONCE 4
#define TURNS   8

/* With at most this many sources and destinations, the beginnings of their rows are kept, so that a
 * tile's address is one addition. */
#define FLAT_OPERANDS 16

typedef struct reduction {
    const tsr_box_reduce *given;
    const tsr_arithmetic *arithmetic;
    tsr_widen *widen;
    tsr_narrow *narrow;
    tsr_combination combine;
    size_t bytes;         /* bytes of an element */
    int64_t block;        /* elements of a block */
    tsr_stretch *stretch; /* NULL: the call is not large */
    tsr_way way;          /* the way of the current tiles */
    bool as_stored;       /* two or more sources are combined without widening, narrowing or dividing */
    bool by_lines;        /* the current row is flat and as_stored, and begins at a cache line in every destination */
    bool flat;            /* the current row is contiguous in all operands: row_src and row_dst hold where it begins */
    const char *row_src[FLAT_OPERANDS];
    char *row_dst[FLAT_OPERANDS];
    int ndim;                        /* at least 2; dims are merged where all operands allow */
    int64_t shape[TSR_MAX_DIMS + 1]; /* outermost dim first */
    int dim[TSR_MAX_DIMS + 1];       /* the given dim whose strides each dim has; -1: a dim of size 1 */
} reduction;

typedef struct buffers {
    alignas(64) char accumulator[BLOCK];
    alignas(64) char packed[2][BLOCK];
    alignas(64) float wide[2][BLOCK / sizeof(float)];
    alignas(64) char narrow[BLOCK];
} buffers;

/* A part of the box that fits a block: rows x columns elements along the two last dims, from
 * `index` on. */
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
    return (t->columns == 1 || stride(r, strides, r->ndim - 1) == 1) &&
           (t->rows == 1 || stride(r, strides, r->ndim - 2) == t->columns);
}

/* A copy of a tile's shape, between its place in an operand and contiguous memory; the caller adds
 * addresses and strides. */
static tsr_box_copy tile_copy(const reduction *r, const tile *t)
{
    return (tsr_box_copy){.element_bytes = r->bytes, .ndim = 2, .shape = {t->rows, t->columns}};
}

/* Copies a tile, of which one side is in the first-level cache. */
static void copy_tile(const tsr_box_copy *copy, bool stream)
{
    tsr_box box;
    tsr_stretch by_rule = {.way = TSR_WAY_PLAIN};
    if (tsr_box_normalise(copy, &box))
        KERNEL(copy_box)(&box, copy->dst, copy->src, stream ? &by_rule : NULL);
}

/* The tile's elements in source `s`, contiguous: in place if they are contiguous there, else copied
 * to `packed`. */
static const void *gather_tile(const reduction *r, const tile *t, int s, char *packed)
{
    const int64_t *const strides = r->given->src_strides[s];
    if (r->flat)
        return r->row_src[s] + t->index[r->ndim - 1] * (int64_t)r->bytes;
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

/* Writes the tile's results to destination `to`. */
static void scatter_tile(const reduction *r, const tile *t, int to, const void *values)
{
    const int64_t *const strides = r->given->dst_strides[to];
    if (r->flat) {
        KERNEL(copy_run)
        (r->row_dst[to] + t->index[r->ndim - 1] * (int64_t)r->bytes, values, (size_t)t->columns * r->bytes,
         tsr_way_streams(r->way));
        return;
    }
    char *const dst = (char *)r->given->dst[to] + offset(r, t, strides);
    if (tile_is_contiguous(r, t, strides)) {
        KERNEL(copy_run)(dst, values, (size_t)(t->rows * t->columns) * r->bytes, tsr_way_streams(r->way));
        return;
    }
    tsr_box_copy copy = tile_copy(r, t);
    copy.dst = dst;
    copy.dst_strides[0] = stride(r, strides, r->ndim - 2);
    copy.dst_strides[1] = stride(r, strides, r->ndim - 1);
    copy.src = values;
    copy.src_strides[0] = t->columns;
    copy.src_strides[1] = 1;
    copy_tile(&copy, tsr_way_streams(r->way));
}

/* The tile's elements in source `s` as accumulators, in place or in the buffers number `which` (0
 * or 1). */
static const void *load_tile(const reduction *r, const tile *t, int s, buffers *b, int which)
{
    const void *const values = gather_tile(r, t, s, b->packed[which]);
    if (!r->widen)
        return values;
    r->widen(b->wide[which], values, t->rows * t->columns);
    return b->wide[which];
}

static const void *accumulate(const reduction *r, const tile *t, buffers *b)
{
    const int64_t parts = t->rows * t->columns * r->arithmetic->parts;
    const void *const first = load_tile(r, t, 0, b, 0);
    if (r->given->src_count == 1 && !r->arithmetic->settle && r->given->divisor == 1)
        return first;
    if (r->given->src_count > 1)
        r->combine.into(b->accumulator, first, load_tile(r, t, 1, b, 1), parts);
    else if (r->arithmetic->settle)
        r->arithmetic->settle(b->accumulator, first, parts);
    else
        memcpy(b->accumulator, first, (size_t)(t->rows * t->columns) * r->arithmetic->bytes);
    for (int s = 2; s < r->given->src_count; s++)
        r->combine.into(b->accumulator, b->accumulator, load_tile(r, t, s, b, 1), parts);
    if (r->given->divisor != 1)
        r->arithmetic->divide(b->accumulator, r->given->divisor, parts);
    return b->accumulator;
}

/* The tile's results, contiguous, in the dtype. */
static const void *finish_tile(const reduction *r, const tile *t, buffers *b)
{
    const int64_t count = t->rows * t->columns;
    const bool pair = r->narrow && r->given->src_count == 2 &&
                      r->combine.into == r->arithmetic->combine[TSR_SUM].into && r->given->divisor == 1;
    if (pair) {
        const void *const left = gather_tile(r, t, 0, b->packed[0]);
        KERNEL(add_pair)(r->given->dtype)(b->narrow, left, gather_tile(r, t, 1, b->packed[1]), count);
        return b->narrow;
    }
    const void *const accumulated = accumulate(r, t, b);
    if (!r->narrow)
        return accumulated;
    r->narrow(b->narrow, accumulated, count);
    return b->narrow;
}

/* Prefetches the sources of the next tile along the last dim, if it begins before `end`. */
static void fetch_next(const reduction *r, const tile *t, int64_t end)
{
    const int inner = r->ndim - 1;
    tile next = *t;
    next.index[inner] += t->columns;
    if (next.index[inner] >= end)
        return;
    const int64_t columns = end - next.index[inner] < t->columns ? end - next.index[inner] : t->columns;
    for (int s = 0; s < r->given->src_count; s++) {
        const char *const from = (const char *)r->given->src[s] + offset(r, &next, r->given->src_strides[s]);
        if (stride(r, r->given->src_strides[s], inner) == 1)
            for (int64_t at = 0; at < columns * (int64_t)r->bytes; at += STREAM_LINE)
                __builtin_prefetch(from + at, 0, 3);
    }
}

/* Combines the first `count` sources of a flat row, `bytes` bytes from its byte `at` on. Returns
 * where the result lies: in the source itself if it is the only one, else in the accumulator. */
static inline const char *combine_sources(const reduction *r, buffers *b, size_t at, size_t bytes, int count)
{
    const int64_t parts = (int64_t)(bytes / r->bytes) * r->arithmetic->parts;
    const char *result = r->row_src[0] + at;
    for (int s = 1; s < count; s++) {
        r->combine.into(b->accumulator, result, r->row_src[s] + at, parts);
        result = b->accumulator;
    }
    return result;
}

/* Reduces `bytes` bytes of a row from its byte `at` on, and streams each line as the last source is
 * combined; false if the row or the way does not allow it. The short work per line lets the
 * processor fetch the next lines meanwhile. */
static inline bool stream_part(const reduction *r, buffers *b, size_t at, size_t bytes)
{
    if (!r->by_lines || !tsr_way_streams(r->way) || (at | bytes) % STREAM_LINE != 0)
        return false;
    const int last = r->given->src_count - 1;
    const char *const others = combine_sources(r, b, at, bytes, last);
    r->combine.streamed(r->row_dst, r->given->dst_count, at, others, r->row_src[last] + at, bytes);
    return true;
}

static void reduce_tile(const reduction *r, const tile *t, buffers *b)
{
    if (tsr_way_fetches_ahead(r->way))
        fetch_next(r, t, r->shape[r->ndim - 1]);
    if (stream_part(r, b, (size_t)t->index[r->ndim - 1] * r->bytes, (size_t)t->columns * r->bytes))
        return;
    const void *const values = finish_tile(r, t, b);
    for (int to = 0; to < r->given->dst_count; to++)
        scatter_tile(r, t, to, values);
}

/* Moves to the next index in all dims but the two last; false after the last. */
static bool next_plane(const reduction *r, tile *t)
{
    for (int d = r->ndim - 3; d >= 0; d--) {
        if (++t->index[d] < r->shape[d])
            return true;
        t->index[d] = 0;
    }
    return false;
}

/* Reduces the tiles along the last dim from `begin` to `end`. */
static void reduce_columns(reduction *r, tile *t, buffers *b, int64_t begin, int64_t end)
{
    const int inner = r->ndim - 1;
    const int64_t columns = t->columns;
    for (t->index[inner] = begin; t->index[inner] < end; t->index[inner] += columns) {
        t->columns = end - t->index[inner] < columns ? end - t->index[inner] : columns;
        reduce_tile(r, t, b);
    }
    t->columns = columns;
}

/* Reduces `bytes` bytes of a flat row from its byte `at` on, for a reduction as_stored. The short
 * work per line lets the processor fetch the next lines meanwhile. */
static inline void reduce_part(const reduction *r, buffers *b, size_t at, size_t bytes)
{
    if (stream_part(r, b, at, bytes))
        return;
    const char *const result = combine_sources(r, b, at, bytes, r->given->src_count);
    for (int to = 0; to < r->given->dst_count; to++)
        if (tsr_way_streams(r->way))
            stream_copy(r->row_dst[to] + at, result, bytes);
        else
            memcpy(r->row_dst[to] + at, result, bytes);
}

static void reduce_parts(const reduction *r, buffers *b, size_t begin)
{
    for (size_t part = begin; part < begin + PAGE; part += PAGE / TURNS)
        for (size_t page = 0; page < AT_ONCE * PAGE; page += PAGE)
            reduce_part(r, b, part + page, PAGE / TURNS);
}

/* Reduces four pages of a flat row at once, a small part of each in turn. `page` is a page's
 * elements, a multiple of TURNS. */
static void reduce_pages(reduction *r, tile *t, buffers *b, int64_t begin, int64_t page)
{
    const int inner = r->ndim - 1;
    const int64_t columns = t->columns;
    if (r->as_stored) {
        reduce_parts(r, b, (size_t)begin * r->bytes);
        return;
    }
    t->columns = page / TURNS;
    for (int64_t part = 0; part < page; part += t->columns)
        for (int64_t at = begin; at < begin + AT_ONCE * page; at += page) {
            t->index[inner] = at + part;
            reduce_tile(r, t, b);
        }
    t->columns = columns;
}

/* Sets flat, by_lines, row_src and row_dst for the row at index `t`. */
static void find_row(reduction *r, const tile *t)
{
    const tsr_box_reduce *const g = r->given;
    const int inner = r->ndim - 1;
    tile begin = *t;
    begin.index[inner] = 0;
    r->flat = t->rows == 1 && g->src_count <= FLAT_OPERANDS && g->dst_count <= FLAT_OPERANDS;
    for (int s = 0; s < g->src_count && r->flat; s++) {
        r->flat = stride(r, g->src_strides[s], inner) == 1;
        r->row_src[s] = (const char *)g->src[s] + offset(r, &begin, g->src_strides[s]);
    }
    uintptr_t beginnings = 0;
    for (int d = 0; d < g->dst_count && r->flat; d++) {
        r->flat = stride(r, g->dst_strides[d], inner) == 1;
        r->row_dst[d] = (char *)g->dst[d] + offset(r, &begin, g->dst_strides[d]);
        beginnings |= (uintptr_t)r->row_dst[d];
    }
    r->by_lines = r->flat && r->as_stored && r->combine.streamed && beginnings % STREAM_LINE == 0;
}

/* Reduces the tile's rows over the whole last dim, in pieces, each in its own way. */
static void reduce_row(reduction *r, tile *t, buffers *b)
{
    const int64_t size = r->shape[r->ndim - 1], page = (int64_t)(PAGE / r->bytes), step = AT_ONCE * page;
    find_row(r, t);
    for (int64_t begin = 0, end; begin < size; begin = end) {
        end = size - begin < step ? size : begin + step;
        r->way = tsr_stretch_next(r->stretch, (size_t)((end - begin) * t->rows) * r->bytes);
        if (tsr_way_interleaves(r->way) && r->flat && end - begin == step)
            reduce_pages(r, t, b, begin, page);
        else
            reduce_columns(r, t, b, begin, end);
    }
}

static void reduce_planes(reduction *r)
{
    const int outer = r->ndim - 2, inner = r->ndim - 1;
    const int64_t columns = r->shape[inner] < r->block ? r->shape[inner] : r->block;
    const int64_t rows = r->block / columns < r->shape[outer] ? r->block / columns : r->shape[outer];
    buffers b;
    tile t = {.index = {0}, .columns = columns};
    if (r->stretch)
        tsr_stretch_enter_run(r->stretch, (size_t)r->shape[inner] * r->bytes);
    do {
        for (t.index[outer] = 0; t.index[outer] < r->shape[outer]; t.index[outer] += rows) {
            t.rows = r->shape[outer] - t.index[outer] < rows ? r->shape[outer] - t.index[outer] : rows;
            reduce_row(r, &t, &b);
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

/* Sorts the dims of size > 1 by descending stride of the first destination. */
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
    tsr_stretch here;
    (void)index, (void)stream;
    TSR_TRY(tsr_request_check_reduction("host", given));
    reduction r = {
        .given = given, .arithmetic = KERNEL(arithmetic)(given->dtype), .bytes = tsr_dtype_bytes(given->dtype)};
    if (is_empty(given, r.bytes, &total))
        return TSR_OK;
    r.widen = KERNEL(widen)(given->dtype);
    r.narrow = KERNEL(narrow)(given->dtype);
    r.combine = r.arithmetic->combine[given->op];
    r.as_stored = !r.widen && given->src_count > 1 && given->divisor == 1;
    r.block = BLOCK / (int64_t)r.arithmetic->bytes;
    r.stretch = tsr_stretch_begin(&here, self, given->dst_count > 1 ? TSR_TASK_REDUCE_TO_ALL : TSR_TASK_REDUCE, total);
    order_dims(&r);
    merge_dims(&r);
    pad_to_plane(&r);
    reduce_planes(&r);
    if (r.stretch) {
        stream_fence();
        tsr_stretch_end(r.stretch);
    }
    return TSR_OK;
}
