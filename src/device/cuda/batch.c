#include "device/cuda/batch.h"

#include <stdlib.h>

/* Runs of fewer bytes are not cut into a middle aligned to 16 bytes and two ends. */
#define SHORTEST_CUT 64
/* A plane is transposed through tiles if both its sides have at least this many elements. */
#define SHORTEST_SIDE 8
#define MOST_BLOCKS   INT64_C(0x7fffffff)

/* Part of a box: dims innermost first; dim 0 is the run, in units of 1 << log_width bytes. Strides
 * in bytes. */
typedef struct piece {
    unsigned char *dst;
    const unsigned char *src;
    bool fill, tiled;
    uint32_t log_width;
    int ndim;
    int64_t size[TSR_MAX_DIMS + 1], dst_stride[TSR_MAX_DIMS + 1], src_stride[TSR_MAX_DIMS + 1];
} piece;

static uint32_t log2_above(uint32_t value)
{
    uint32_t log = 0;
    while (UINT64_C(1) << log < value)
        log++;
    return log;
}

tsr_cuda_divisor tsr_cuda_make_divisor(uint32_t value)
{
    const uint32_t shift = log2_above(value);
    const uint64_t above = (UINT64_C(1) << shift) - value;
    return (tsr_cuda_divisor){value, (uint32_t)((above << 32) / value + 1), shift};
}

void tsr_cuda_batcher_init(tsr_cuda_batcher *batcher, tsr_cuda_flush *flush, void *to)
{
    batcher->flush = flush;
    batcher->to = to;
    batcher->dim_count = 0;
    batcher->batch.box_count = batcher->batch.block_count = 0;
}

tsr_status tsr_cuda_batcher_finish(tsr_cuda_batcher *batcher)
{
    if (batcher->batch.box_count == 0)
        return TSR_OK;
    TSR_TRY(batcher->flush(batcher->to, &batcher->batch, batcher->dim_count));
    tsr_cuda_batcher_init(batcher, batcher->flush, batcher->to);
    return TSR_OK;
}

static int64_t tiles_along(int64_t size)
{
    return (size + TSR_CUDA_TILE - 1) / TSR_CUDA_TILE;
}

/* How many tiles a tiled piece has; how many units a linear one. */
static int64_t count_of(const piece *p)
{
    int64_t count = 1;
    for (int d = 0; d < p->ndim; d++)
        count *= p->tiled && d < 2 ? tiles_along(p->size[d]) : p->size[d];
    return count;
}

static void put_dims(tsr_cuda_batcher *batcher, const piece *p)
{
    for (int d = 0; d < p->ndim; d++) {
        const uint32_t size = (uint32_t)p->size[d], parts = p->tiled && d < 2 ? (uint32_t)tiles_along(size) : size;
        batcher->batch.dim[batcher->dim_count++] = (tsr_cuda_dim){
            .size = size, .by = tsr_cuda_make_divisor(parts), .dst = p->dst_stride[d], .src = p->src_stride[d]};
    }
}

static tsr_status put_box(tsr_cuda_batcher *batcher, const piece *p)
{
    tsr_cuda_large_batch *const batch = &batcher->batch;
    const int64_t units = count_of(p), per_block = p->tiled ? 1 : TSR_CUDA_THREADS * TSR_CUDA_UNROLL;
    const int64_t blocks = (units + per_block - 1) / per_block;
    if (batch->box_count == TSR_CUDA_LARGE_BOXES || batcher->dim_count + (uint32_t)p->ndim > TSR_CUDA_LARGE_DIMS ||
        batch->block_count + blocks > MOST_BLOCKS)
        TSR_TRY(tsr_cuda_batcher_finish(batcher));
    batch->box[batch->box_count++] = (tsr_cuda_box){.dst = p->dst,
                                                    .src = p->src,
                                                    .first_block = batch->block_count,
                                                    .units = (uint32_t)units,
                                                    .first_dim = (uint16_t)batcher->dim_count,
                                                    .ndim = (uint8_t)p->ndim,
                                                    .log_width = (uint8_t)p->log_width,
                                                    .tiled = p->tiled};
    batch->block_count += (uint32_t)blocks;
    put_dims(batcher, p);
    return TSR_OK;
}

/* Halves the piece along its outermost dim until it has at most TSR_CUDA_UNITS units. Dim 0 is cut
 * at a multiple of 16 units, where a fill's pattern begins again. */
static tsr_status put_piece(tsr_cuda_batcher *batcher, const piece *p)
{
    int64_t units = 1;
    int outer = 0;
    for (int d = 0; d < p->ndim; d++) {
        units *= p->size[d];
        outer = p->size[d] > 1 ? d : outer;
    }
    if (units <= TSR_CUDA_UNITS)
        return put_box(batcher, p);
    const int64_t half = outer == 0 ? p->size[0] / 2 / 16 * 16 : p->size[outer] / 2;
    piece low = *p, high = *p;
    low.size[outer] = half;
    high.size[outer] -= half;
    high.dst += half * p->dst_stride[outer];
    if (!p->fill)
        high.src += half * p->src_stride[outer];
    TSR_TRY(put_piece(batcher, &low));
    return put_piece(batcher, &high);
}

/* All strides of the box or-ed together: the lowest set bit is the power of two that divides them
 * all. */
static uint64_t alignment_of(const tsr_box *box, bool fill)
{
    uint64_t bits = 0;
    for (int d = 0; d < box->ndim; d++)
        if (box->shape[d] > 1)
            bits |= (uint64_t)box->dst[d] | (fill ? 0 : (uint64_t)box->src[d]);
    return bits;
}

static uint32_t log_width_of(uint64_t bits)
{
    uint32_t log = 0;
    while (log < 4 && (bits >> log & 1) == 0)
        log++;
    return log;
}

/* True if the two innermost dims are a plane to transpose: elements are moved one by one, the
 * source's stride is the smaller one along the outer dim, and both sides are long enough. */
static bool is_transposition(const tsr_box *box, uint32_t log_width)
{
    const int inner = box->ndim - 1, outer = box->ndim - 2;
    return box->run == (size_t)1 << log_width && llabs(box->src[outer]) < llabs(box->src[inner]) &&
           box->src[outer] != 0 && box->shape[inner] >= SHORTEST_SIDE && box->shape[outer] >= SHORTEST_SIDE;
}

static void add_dim(piece *p, int64_t size, int64_t dst_stride, int64_t src_stride)
{
    p->size[p->ndim] = size;
    p->dst_stride[p->ndim] = dst_stride;
    p->src_stride[p->ndim++] = src_stride;
}

/* The bytes from `begin` to `end` of every run. */
static tsr_status add_part(tsr_cuda_batcher *batcher, const tsr_box *box, const piece *base, size_t begin, size_t end)
{
    piece p = *base;
    if (begin == end)
        return TSR_OK;
    p.dst += begin;
    p.src += p.fill ? 0 : begin;
    const uint64_t addresses = (uintptr_t)p.dst | (p.fill ? 0 : (uintptr_t)p.src);
    p.log_width = log_width_of(addresses | (end - begin) | alignment_of(box, p.fill));
    p.tiled = !p.fill && is_transposition(box, p.log_width);
    const int64_t width = INT64_C(1) << p.log_width, units = (int64_t)(end - begin) >> p.log_width;
    /* A fill needs dim 0 even of size 1, because it counts its pattern along it. */
    if (units > 1 || p.fill)
        add_dim(&p, units, width, width);
    for (int d = box->ndim - 1; d >= 0; d--)
        if (box->shape[d] > 1)
            add_dim(&p, box->shape[d], box->dst[d], p.fill ? 0 : box->src[d]);
    if (p.ndim == 0)
        add_dim(&p, 1, 0, 0);
    return put_piece(batcher, &p);
}

/* If all runs of source and destination have one offset from a multiple of 16 bytes, their middles
 * move in units of 16 bytes, and their two ends separately. */
static tsr_status add_box(tsr_cuda_batcher *batcher, const tsr_box *box, const piece *base, size_t element_bytes)
{
    const uintptr_t dst = (uintptr_t)base->dst, src = base->fill ? dst : (uintptr_t)base->src;
    const size_t head = (16 - dst % 16) % 16, rest = box->run - (head < box->run ? head : box->run);
    const bool alike = (dst - src) % 16 == 0 && alignment_of(box, base->fill) % 16 == 0 && dst % element_bytes == 0;
    if (!alike || box->run < SHORTEST_CUT || (head == 0 && rest % 16 == 0))
        return add_part(batcher, box, base, 0, box->run);
    const size_t tail = box->run - rest % 16;
    TSR_TRY(add_part(batcher, box, base, 0, head));
    TSR_TRY(add_part(batcher, box, base, head, tail));
    return add_part(batcher, box, base, tail, box->run);
}

tsr_status tsr_cuda_add_copy(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst,
                             const unsigned char *src)
{
    return add_box(batcher, box, &(piece){.dst = dst, .src = src}, 1);
}

tsr_status tsr_cuda_add_fill(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst, size_t element_bytes)
{
    return add_box(batcher, box, &(piece){.dst = dst, .fill = true}, element_bytes);
}
