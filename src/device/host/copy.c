#include "device/host/copy.h"

#include "device/host/stream.h"
#include "device/request.h"
#include <stdlib.h>

/* 1 to 64 bytes, by two moves that may overlap in the middle: cheaper than a call where rows are short. */
static inline void copy_short(char *dst, const char *src, size_t bytes)
{
#define TWO_MOVES(N)                                                                                                                       \
    do {                                                                                                                                   \
        char head[N], tail[N];                                                                                                             \
        memcpy(head, src, N);                                                                                                              \
        memcpy(tail, src + bytes - (N), N);                                                                                                \
        memcpy(dst, head, N);                                                                                                              \
        memcpy(dst + bytes - (N), tail, N);                                                                                                \
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
    if (stream && bytes >= STREAM_RUN)
        stream_copy(dst, src, bytes);
    else
        copy_cached(dst, src, bytes);
}

typedef void elements_copy(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t count);

/* Strides in bytes; the packing and unpacking loops are apart so that one side's addresses are constant steps. */
#define DEFINE_ELEMENTS(N)                                                                                                                 \
    static void elements_##N(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t count)                            \
    {                                                                                                                                      \
        if (dst_stride == (N))                                                                                                             \
            for (int64_t i = 0; i < count; i++)                                                                                            \
                memcpy(dst + i * (N), src + i * src_stride, N);                                                                            \
        else if (src_stride == (N))                                                                                                        \
            for (int64_t i = 0; i < count; i++)                                                                                            \
                memcpy(dst + i * dst_stride, src + i * (N), N);                                                                            \
        else                                                                                                                               \
            for (int64_t i = 0; i < count; i++)                                                                                            \
                memcpy(dst + i * dst_stride, src + i * src_stride, N);                                                                     \
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

typedef void plane_copy(const tsr_box *box, char *dst, const char *src, bool stream);

static void stream_plane_rows(const tsr_box *box, char *dst, const char *src)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    for (int64_t i = 0; i < box->shape[outer]; i++)
        for (int64_t j = 0; j < box->shape[inner]; j++) {
            const bool last = j + 1 == box->shape[inner];
            const int64_t next_i = i + (last && i + 1 < box->shape[outer]), next_j = last ? 0 : j + 1;
            stream_copy_ahead(dst + i * box->dst[outer] + j * box->dst[inner], src + i * box->src[outer] + j * box->src[inner], box->run,
                              src + next_i * box->src[outer] + next_j * box->src[inner]);
        }
}

static void copy_plane_rows(const tsr_box *box, char *dst, const char *src, bool stream)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    if (stream && box->run >= STREAM_RUN) {
        stream_plane_rows(box, dst, src);
        return;
    }
    for (int64_t i = 0; i < box->shape[outer]; i++)
        for (int64_t j = 0; j < box->shape[inner]; j++)
            copy_cached(dst + i * box->dst[outer] + j * box->dst[inner], src + i * box->src[outer] + j * box->src[inner], box->run);
}

static void copy_plane_elements(const tsr_box *box, char *dst, const char *src, bool stream)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    elements_copy *const elements = elements_of(box->run);
    (void)stream;
    for (int64_t i = 0; i < box->shape[outer]; i++)
        elements(dst + i * box->dst[outer], box->dst[inner], src + i * box->src[outer], box->src[inner], box->shape[inner]);
}

/* One element repeated over contiguous rows: a few copies of it are laid out once, then whole pieces are written. */
static void copy_plane_repeats(const tsr_box *box, char *dst, const char *src, bool stream)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    const size_t row = (size_t)box->shape[inner] * box->run;
    char pattern[1024];
    const size_t piece = row < sizeof pattern ? row : sizeof pattern;
    for (int64_t i = 0; i < box->shape[outer]; i++) {
        char *const to = dst + i * box->dst[outer];
        elements_of(box->run)(pattern, (int64_t)box->run, src + i * box->src[outer], 0, (int64_t)(piece / box->run));
        for (size_t at = 0; at < row; at += piece)
            KERNEL(copy_run)(to + at, pattern, piece < row - at ? piece : row - at, stream);
    }
}

/* Elements along a side of a tile: two of its rows' cache lines for the largest ones, and 16 KiB in all. */
#define TILE 32

/*
 * Source and destination are contiguous along different dims. A tile is read along the source's rows and written along the destination's,
 * so that every cache line on both sides is touched once however the strides fall onto the cache's sets.
 */
static void copy_plane_tiles(const tsr_box *box, char *dst, const char *src, bool stream)
{
    const int outer = box->ndim - 2, inner = box->ndim - 1;
    const int64_t run = (int64_t)box->run;
    elements_copy *const elements = elements_of(box->run);
    char tile[TILE * TILE * TSR_ELEMENT_BYTES];
    (void)stream;
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

void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, bool stream)
{
    int64_t index[TSR_MAX_DIMS] = {0};
    plane_copy *const plane = choose_plane(box);
    int d;
    do {
        plane(box, dst, src, stream);
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

static void copy_piece(char *dst, const char *src, size_t bytes, bool stream)
{
    if (stream && bytes >= STREAM_RUN)
        stream_copy_ahead(dst, src, bytes, src);
    else
        copy_cached(dst, src, bytes);
}

static void copy_one(const tsr_box_copy *copy, bool stream)
{
    tsr_box box;
    size_t bytes;
    if (tsr_box_is_contiguous(copy, &bytes))
        copy_piece(copy->dst, copy->src, bytes, stream);
    else if (tsr_box_normalise(copy, &box))
        KERNEL(copy_box)(&box, copy->dst, copy->src, stream);
}

tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    size_t total = 0;
    (void)self, (void)index, (void)stream;
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(tsr_request_check_box("host", "copy", boxes[i].ndim, boxes[i].shape, boxes[i].element_bytes));
        total += tsr_box_bytes(&boxes[i]);
    }
    const bool bypass = total >= STREAM_TOTAL;
    for (size_t i = 0; i < count; i++)
        copy_one(&boxes[i], bypass);
    if (bypass)
        stream_fence();
    return TSR_OK;
}

tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream)
{
    (void)self, (void)index, (void)kind, (void)stream;
    copy_piece(dst, src, bytes, bytes >= STREAM_TOTAL);
    if (bytes >= STREAM_TOTAL)
        stream_fence();
    return TSR_OK;
}

/* A fill is a copy whose source does not move. */
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream)
{
    TSR_TRY(tsr_request_check_box("host", "fill", fill->ndim, fill->shape, fill->element_bytes));
    tsr_box_copy copy = {.dst = fill->dst, .src = fill->value, .element_bytes = fill->element_bytes, .ndim = fill->ndim};
    memcpy(copy.shape, fill->shape, sizeof copy.shape);
    memcpy(copy.dst_strides, fill->dst_strides, sizeof copy.dst_strides);
    return KERNEL(host_copy_boxes)(self, index, &copy, 1, stream);
}
