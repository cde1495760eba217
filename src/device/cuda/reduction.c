#include "device/cuda/reduction.h"

#include "device/cuda/batch.h"

#include <stdlib.h>

/* Rows of fewer bytes than this are not cut into a middle of 16-byte units and two ends. */
#define SHORTEST_CUT 64

/* A reduction whose dims of size > 1 are sorted, innermost first, and merged where all operands
 * allow. */
typedef struct reduction {
    const tsr_box_reduce *given;
    tsr_cuda_op op;
    int64_t bytes; /* bytes of an element */
    tsr_cuda_reduce_launch *launch;
    void *to;
    int ndim;
    int dim[TSR_MAX_DIMS]; /* the given dim whose strides each dim has */
    int64_t size[TSR_MAX_DIMS];
} reduction;

/* A part of the box: sizes of dim 0 are in units of `per_unit` elements. */
typedef struct part {
    int64_t begin[TSR_MAX_DIMS]; /* elements */
    int64_t size[TSR_MAX_DIMS];
    int64_t per_unit; /* elements along dim 0 */
} part;

static int operand_count(const reduction *r)
{
    return r->given->src_count + r->given->dst_count;
}

/* Strides of an operand; sources are numbered first, then destinations. */
static const int64_t *strides_of(const reduction *r, int operand)
{
    const int sources = r->given->src_count;
    return operand < sources ? r->given->src_strides[operand] : r->given->dst_strides[operand - sources];
}

static intptr_t address_of(const reduction *r, int operand)
{
    const int sources = r->given->src_count;
    return (intptr_t)(operand < sources ? r->given->src[operand] : r->given->dst[operand - sources]);
}

/* Sorts the dims of size > 1 by ascending stride of the first destination. */
static void order_dims(reduction *r)
{
    const int64_t *const strides = r->given->dst_strides[0];
    for (int d = r->given->ndim - 1; d >= 0; d--) {
        int at = r->ndim;
        if (r->given->shape[d] == 1)
            continue;
        for (; at > 0 && llabs(strides[r->dim[at - 1]]) > llabs(strides[d]); at--)
            r->dim[at] = r->dim[at - 1];
        r->dim[at] = d;
        r->ndim++;
    }
    for (int d = 0; d < r->ndim; d++)
        r->size[d] = r->given->shape[r->dim[d]];
}

/* True if, for every operand, one step along `outer` is `size` steps along `inner`. */
static bool dims_merge(const reduction *r, int outer, int inner, int64_t size)
{
    for (int i = 0; i < operand_count(r); i++)
        if (strides_of(r, i)[outer] != strides_of(r, i)[inner] * size)
            return false;
    return true;
}

static void merge_dims(reduction *r)
{
    int last = 0;
    for (int d = 1; d < r->ndim; d++) {
        if (dims_merge(r, r->dim[d], r->dim[last], r->size[last])) {
            r->size[last] *= r->size[d];
            continue;
        }
        last++;
        r->size[last] = r->size[d];
        r->dim[last] = r->dim[d];
    }
    r->ndim = r->ndim > 0 ? last + 1 : 0;
}

static tsr_status check_room(const reduction *r)
{
    const int64_t most = TSR_CUDA_REDUCE_WORDS / (1 + r->ndim);
    if (r->given->src_count > most || r->given->dst_count > most || operand_count(r) > most)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "cuda device: a reduction from %d sources to %d destinations in %d dims; they may be %d together",
            r->given->src_count, r->given->dst_count, r->ndim, (int)most);
    return TSR_OK;
}

static int64_t units_of(const reduction *r, const part *p)
{
    int64_t units = 1;
    for (int d = 0; d < r->ndim; d++)
        units *= p->size[d];
    return units;
}

/* Writes the operand's words: the address where the part begins, and its strides in bytes. True if
 * the address is a multiple of the element's size. */
static bool put_operand(const reduction *r, const part *p, int operand, int64_t *word)
{
    const int64_t *const strides = strides_of(r, operand);
    word[0] = address_of(r, operand);
    for (int d = 0; d < r->ndim; d++) {
        const int64_t stride = strides[r->dim[d]] * r->bytes;
        word[0] += p->begin[d] * stride;
        word[1 + d] = d == 0 ? stride * p->per_unit : stride;
    }
    return word[0] % r->bytes == 0;
}

static tsr_status launch_part(const reduction *r, const part *p)
{
    tsr_cuda_reduce launch = {.head = {.units = (uint32_t)units_of(r, p),
                                       .src_count = (uint16_t)r->given->src_count,
                                       .dst_count = (uint16_t)r->given->dst_count,
                                       .op = (uint8_t)r->op,
                                       .ndim = (uint8_t)r->ndim,
                                       .divisor = r->given->divisor}};
    bool aligned = true;
    for (int d = 0; d < r->ndim; d++)
        launch.head.by[d] = tsr_cuda_make_divisor((uint32_t)p->size[d]);
    for (int i = 0; i < operand_count(r); i++)
        aligned = put_operand(r, p, i, launch.word + i * (1 + r->ndim)) && aligned;
    launch.head.aligned = aligned;
    return r->launch(r->to, &launch, p->per_unit > 1);
}

/* Halves the part along its outermost dim until it has at most TSR_CUDA_UNITS units. */
static tsr_status add_part(const reduction *r, const part *p)
{
    int outer = 0;
    const int64_t units = units_of(r, p);
    if (units == 0)
        return TSR_OK;
    if (units <= TSR_CUDA_UNITS)
        return launch_part(r, p);
    for (int d = 0; d < r->ndim; d++)
        outer = p->size[d] > 1 ? d : outer;
    part low = *p, high = *p;
    low.size[outer] /= 2;
    high.size[outer] -= low.size[outer];
    high.begin[outer] += low.size[outer] * (outer == 0 ? p->per_unit : 1);
    TSR_TRY(add_part(r, &low));
    return add_part(r, &high);
}

static tsr_status add_range(const reduction *r, int64_t begin, int64_t end, int64_t per_unit)
{
    part p = {.begin = {begin}, .per_unit = per_unit};
    for (int d = 1; d < r->ndim; d++)
        p.size[d] = r->size[d];
    p.size[0] = (end - begin) / per_unit;
    return add_part(r, &p);
}

/* True if every operand is contiguous along dim 0 and all rows have one offset from a multiple of
 * 16 bytes; `*head` becomes the number of elements before the first whole 16 bytes. */
static bool lies_alike(const reduction *r, int64_t *head)
{
    const intptr_t first = address_of(r, 0);
    for (int i = 0; i < operand_count(r); i++) {
        const int64_t *const strides = strides_of(r, i);
        bool alike =
            strides[r->dim[0]] == 1 && (address_of(r, i) - first) % 16 == 0 && address_of(r, i) % r->bytes == 0;
        for (int d = 1; d < r->ndim; d++)
            alike = alike && strides[r->dim[d]] * r->bytes % 16 == 0;
        if (!alike)
            return false;
    }
    *head = (16 - first % 16) % 16 / r->bytes;
    return true;
}

static tsr_status cut_rows(const reduction *r)
{
    const int64_t size = r->ndim > 0 ? r->size[0] : 1, per_unit = 16 / r->bytes;
    int64_t head;
    if (r->ndim == 0 || per_unit == 1 || size * r->bytes < SHORTEST_CUT || !lies_alike(r, &head))
        return add_range(r, 0, size, 1);
    const int64_t tail = size - (size - head) % per_unit;
    TSR_TRY(add_range(r, 0, head, 1));
    TSR_TRY(add_range(r, head, tail, per_unit));
    return add_range(r, tail, size, 1);
}

tsr_status tsr_cuda_plan_reduction(const tsr_box_reduce *reduce, tsr_cuda_op op, tsr_cuda_reduce_launch *launch,
                                   void *to)
{
    reduction r = {
        .given = reduce, .op = op, .bytes = (int64_t)tsr_dtype_bytes(reduce->dtype), .launch = launch, .to = to};
    order_dims(&r);
    merge_dims(&r);
    TSR_TRY(check_room(&r));
    return cut_rows(&r);
}
