#include "device/host/copy.h"

#include "device/host/rows.h"
#include "device/host/stream.h"
#include "device/request.h"

#include <stdlib.h>

/* Copies 1 to 64 bytes by two moves that may overlap in the middle: for short rows, cheaper than a
 * call of memcpy(). */
static inline void copy_short(char *dst, const char *src, size_t bytes)
{
#define TWO_MOVES(N)                                                                                                   \
    do {                                                                                                               \
        char head[N], tail[N];                                                                                         \
        memcpy(head, src, N);                                                                                          \
        memcpy(tail, src + bytes - (N), N);                                                                            \
        memcpy(dst, head, N);                                                                                          \
        memcpy(dst + bytes - (N), tail, N);                                                                            \
    } while (0)
    if (bytes >= 32)
        TWO_MOVES(32);
    else if (bytes >= 16)
        TWO_MOVES(16);
    else if (bytes >= 8)
        TWO_MOVES(8);
    else if (bytes >= 4)
        TWO_MOVES(4);
    else if (bytes >= 2)
        TWO_MOVES(2);
    else
        *dst = *src;
#undef TWO_MOVES
}

static void copy_cached(char *dst, const char *src, size_t bytes)
{
    if (bytes - 1 < 64)
        copy_short(dst, src, bytes);
    else if (bytes > 0)
        memcpy(dst, src, bytes);
}

void KERNEL(copy_run)(char *dst, const char *src, size_t bytes, bool stream)
{
    if (stream && bytes >= TSR_SHORTEST_RUN)
        stream_copy(dst, src, bytes);
    else
        copy_cached(dst, src, bytes);
}

typedef void elements_copy(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t count);

/* Strides in bytes. Packing and unpacking have loops of their own, in which one side's stride is a
 * constant. */
#define DEFINE_ELEMENTS(N)                                                                                             \
    static void elements_##N(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t count)        \
    {                                                                                                                  \
        if (dst_stride == (N))                                                                                         \
            for (int64_t i = 0; i < count; i++)                                                                        \
                memcpy(dst + i * (N), src + i * src_stride, N);                                                        \
        else if (src_stride == (N))                                                                                    \
            for (int64_t i = 0; i < count; i++)                                                                        \
                memcpy(dst + i * dst_stride, src + i * (N), N);                                                        \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++)                                                                        \
                memcpy(dst + i * dst_stride, src + i * src_stride, N);                                                 \
    }
DEFINE_ELEMENTS(1)
DEFINE_ELEMENTS(2)
DEFINE_ELEMENTS(4)
DEFINE_ELEMENTS(8)
DEFINE_ELEMENTS(16)

static elements_copy *elements_of(size_t bytes)
{
    switch (bytes) {
    case 1:
        return elements_1;
    case 2:
        return elements_2;
    case 4:
        return elements_4;
    case 8:
        return elements_8;
    default:
        return elements_16;
    }
}

typedef void plane_copy(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch);

/* Copies one long row in pieces, each in its own way. */
static void copy_long_row(char *dst, const char *src, size_t bytes, tsr_stretch *stretch)
{
    tsr_rows piece = {.dst = dst, .src = src, .count = 1};
    for (size_t left = bytes; left > 0; left -= piece.run) {
        piece.run = left >= 2 * TSR_PIECE ? TSR_PIECE : left;
        KERNEL(copy_rows)(&piece, tsr_stretch_next(stretch, piece.run));
        piece.dst += piece.run;
        piece.src += piece.run;
    }
}

/* Copies rows of at least TSR_SHORTEST_RUN bytes, about TSR_PIECE bytes at a time. */
static void copy_long_rows(const tsr_rows *rows, tsr_stretch *stretch)
{
    const int64_t most = (int64_t)(TSR_PIECE / rows->run);
    tsr_rows piece = *rows;
    for (int64_t i = 0; i < rows->count; i += piece.count) {
        piece.dst = rows->dst + i * rows->dst_stride;
        piece.src = rows->src + i * rows->src_stride;
        piece.count = rows->count - i < most ? rows->count - i : most;
        if (piece.count > 0)
            KERNEL(copy_rows)(&piece, tsr_stretch_next(stretch, (size_t)piece.count * rows->run));
        else {
            piece.count = 1;
            copy_long_row(piece.dst, piece.src, rows->run, stretch);
        }
    }
}

static void copy_short_rows(const tsr_rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++)
        copy_cached(rows->dst + i * rows->dst_stride, rows->src + i * rows->src_stride, rows->run);
}

/* If the innermost dim has fewer rows than can be copied at once (4), rows are taken along the
 * other dim instead, if that has enough. */
static void copy_plane_rows(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch)
{
    const bool crossed = box->shape[box->ndim - 1] < 4 && box->shape[box->ndim - 2] >= 4;
    const int outer = box->ndim - (crossed ? 1 : 2), inner = box->ndim - (crossed ? 2 : 1);
    tsr_rows rows = {
        .dst_stride = box->dst[inner], .src_stride = box->src[inner], .run = box->run, .count = box->shape[inner]};
    for (int64_t i = 0; i < box->shape[outer]; i++) {
        rows.dst = dst + i * box->dst[outer];
        rows.src = src + i * box->src[outer];
        if (box->run >= TSR_SHORTEST_RUN)
            copy_long_rows(&rows, stretch);
        else
            copy_short_rows(&rows);
    }
}

static void copy_plane_elements(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    elements_copy *const elements = elements_of(box->run);
    (void)stretch;
    for (int64_t i = 0; i < box->shape[outer]; i++)
        elements(dst + i * box->dst[outer], box->dst[inner], src + i * box->src[outer], box->src[inner],
                 box->shape[inner]);
}

/* Rows that repeat one element: some copies of the element are laid out once, then written in whole
 * pieces. */
static void copy_plane_repeats(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    const size_t row = (size_t)box->shape[inner] * box->run;
    const bool stream = stretch && row >= TSR_STREAMED_RUN;
    char pattern[1024];
    const size_t piece = row < sizeof pattern ? row : sizeof pattern;
    for (int64_t i = 0; i < box->shape[outer]; i++) {
        char *const to = dst + i * box->dst[outer];
        elements_of(box->run)(pattern, (int64_t)box->run, src + i * box->src[outer], 0, (int64_t)(piece / box->run));
        for (size_t at = 0; at < row; at += piece)
            KERNEL(copy_run)(to + at, pattern, piece < row - at ? piece : row - at, stream);
    }
}

/* Elements along a side of a tile, which has 16 KiB for the largest elements. */
#define TILE 32

/*
 * Source and destination are contiguous along different dims. A tile is read along the source's
 * rows and written along the destination's, so that every cache line on both sides is touched once,
 * whatever cache sets the strides map to.
 */
static void copy_plane_tiles(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    const int64_t run = (int64_t)box->run;
    elements_copy *const elements = elements_of(box->run);
    char tile[TILE * TILE * TSR_ELEMENT_BYTES];
    (void)stretch;
    for (int64_t i = 0; i < box->shape[outer]; i += TILE) {
        const int64_t rows = box->shape[outer] - i < TILE ? box->shape[outer] - i : TILE;
        for (int64_t j = 0; j < box->shape[inner]; j += TILE) {
            const int64_t columns = box->shape[inner] - j < TILE ? box->shape[inner] - j : TILE;
            const char *const from = src + i * box->src[outer] + j * box->src[inner];
            char *const to = dst + i * box->dst[outer] + j * box->dst[inner];
            for (int64_t c = 0; c < columns; c++)
                elements(tile + c * TILE * run, run, from + c * box->src[inner], box->src[outer], rows);
            for (int64_t r = 0; r < rows; r++)
                elements(to + r * box->dst[outer], box->dst[inner], tile + r * run, TILE * run, columns);
        }
    }
}

static plane_copy *choose_plane(const tsr_box *box)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    if (!tsr_box_run_is_element(box->run))
        return copy_plane_rows;
    if (box->src[inner] == 0 && box->dst[inner] == (int64_t)box->run)
        return copy_plane_repeats;
    const bool crossed = box->src[outer] != 0 && llabs(box->src[outer]) < llabs(box->src[inner]);
    return crossed && box->shape[outer] >= 4 && box->shape[inner] >= 4 ? copy_plane_tiles : copy_plane_elements;
}

void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch)
{
    int64_t index[TSR_MAX_DIMS] = {0};
    plane_copy *const plane = choose_plane(box);
    int d;
    if (stretch)
        tsr_stretch_enter_run(stretch, box->run);
    do {
        plane(box, dst, src, stretch);
        for (d = box->ndim - 3; d >= 0; d--) {
            dst += box->dst[d];
            src += box->src[d];
            if (++index[d] < box->shape[d])
                break;
            index[d] = 0;
            dst -= box->shape[d] * box->dst[d];
            src -= box->shape[d] * box->src[d];
        }
    } while (d >= 0);
}

static void copy_contiguous_in_ways(char *dst, const char *src, size_t bytes, tsr_stretch *stretch)
{
    tsr_stretch_enter_run(stretch, bytes);
    copy_long_row(dst, src, bytes, stretch);
}

static inline void copy_contiguous(char *dst, const char *src, size_t bytes, tsr_stretch *stretch)
{
    if (!stretch || bytes < TSR_SHORTEST_RUN)
        copy_cached(dst, src, bytes);
    else
        copy_contiguous_in_ways(dst, src, bytes, stretch);
}

static inline void copy_one(const tsr_box_copy *copy, tsr_stretch *stretch)
{
    tsr_box box;
    size_t bytes;
    if (tsr_box_is_contiguous(copy, &bytes))
        copy_contiguous(copy->dst, copy->src, bytes, stretch);
    else if (tsr_box_normalise(copy, &box))
        KERNEL(copy_box)(&box, copy->dst, copy->src, stretch);
}

static inline void end_copy(tsr_stretch *stretch)
{
    if (!stretch)
        return;
    stream_fence();
    tsr_stretch_end(stretch);
}

tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    tsr_stretch here;
    size_t total = 0;
    (void)index, (void)stream;
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(tsr_request_check_box("host", "copy", boxes[i].ndim, boxes[i].shape, boxes[i].element_bytes));
        total += tsr_box_bytes(&boxes[i]);
    }
    tsr_stretch *const stretch = tsr_stretch_begin(&here, self, TSR_TASK_COPY, total);
    for (size_t i = 0; i < count; i++)
        copy_one(&boxes[i], stretch);
    end_copy(stretch);
    return TSR_OK;
}

tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                             tsr_stream stream)
{
    tsr_stretch here, *const stretch = tsr_stretch_begin(&here, self, TSR_TASK_COPY, bytes);
    (void)index, (void)kind, (void)stream;
    copy_contiguous(dst, src, bytes, stretch);
    end_copy(stretch);
    return TSR_OK;
}

/* A fill is a copy whose source strides are all 0. */
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream)
{
    TSR_TRY(tsr_request_check_box("host", "fill", fill->ndim, fill->shape, fill->element_bytes));
    tsr_box_copy copy = {
        .dst = fill->dst, .src = fill->value, .element_bytes = fill->element_bytes, .ndim = fill->ndim};
    memcpy(copy.shape, fill->shape, sizeof copy.shape);
    memcpy(copy.dst_strides, fill->dst_strides, sizeof copy.dst_strides);
    return KERNEL(host_copy_boxes)(self, index, &copy, 1, stream);
}
