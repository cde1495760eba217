#include "device/host/box.h"

#include <stdlib.h>

bool tsr_box_is_contiguous(const tsr_box_copy *copy, size_t *bytes)
{
    int64_t count = 1;
    for (int d = copy->ndim - 1; d >= 0; d--) {
        if (copy->shape[d] != 1 && (copy->dst_strides[d] != count || copy->src_strides[d] != count))
            return false;
        count *= copy->shape[d];
    }
    *bytes = (size_t)count * copy->element_bytes;
    return true;
}

static void move_dim(tsr_box *box, int from, int to)
{
    const int64_t shape = box->shape[from], dst = box->dst[from], src = box->src[from];
    const int step = from < to ? 1 : -1;
    for (int d = from; d != to; d += step) {
        box->shape[d] = box->shape[d + step];
        box->dst[d] = box->dst[d + step];
        box->src[d] = box->src[d + step];
    }
    box->shape[to] = shape;
    box->dst[to] = dst;
    box->src[to] = src;
}

static bool strides_outside(const tsr_box *box, int a, int b)
{
    const int64_t dst_a = llabs(box->dst[a]), dst_b = llabs(box->dst[b]);
    return dst_a != dst_b ? dst_a > dst_b : llabs(box->src[a]) > llabs(box->src[b]);
}

/* Insertion sort, because dims are mostly in order already. */
static void sort_dims(tsr_box *box)
{
    for (int d = 1; d < box->ndim; d++) {
        int to = d;
        while (to > 0 && strides_outside(box, d, to - 1))
            to--;
        if (to != d)
            move_dim(box, d, to);
    }
}

static void merge_dims(tsr_box *box)
{
    int last = 0;
    for (int d = 1; d < box->ndim; d++) {
        const bool together =
            box->dst[last] == box->dst[d] * box->shape[d] && box->src[last] == box->src[d] * box->shape[d];
        const int64_t shape = together ? box->shape[last] * box->shape[d] : box->shape[d];
        last += !together;
        box->shape[last] = shape;
        box->dst[last] = box->dst[d];
        box->src[last] = box->src[d];
    }
    box->ndim = box->ndim > 0 ? last + 1 : 0;
}

static void take_run(tsr_box *box, size_t element)
{
    const int last = box->ndim - 1;
    box->run = element;
    if (last >= 0 && box->dst[last] == (int64_t)element && box->src[last] == (int64_t)element) {
        box->run *= (size_t)box->shape[last];
        box->ndim--;
    }
}

/* Moves the dim with the source's least stride next to the last dim. A dim of stride 0 does not
 * count: it repeats one element. */
static void pair_innermost(tsr_box *box)
{
    int inner = box->ndim - 1;
    for (int d = box->ndim - 2; d >= 0; d--)
        if (box->src[d] != 0 && (box->src[inner] == 0 || llabs(box->src[d]) < llabs(box->src[inner])))
            inner = d;
    if (inner < box->ndim - 2)
        move_dim(box, inner, box->ndim - 2);
}

static void pad_to_plane(tsr_box *box)
{
    while (box->ndim < 2) {
        box->ndim++;
        for (int d = box->ndim - 1; d > 0; d--) {
            box->shape[d] = box->shape[d - 1];
            box->dst[d] = box->dst[d - 1];
            box->src[d] = box->src[d - 1];
        }
        box->shape[0] = 1;
        box->dst[0] = box->src[0] = 0;
    }
}

bool tsr_box_normalise(const tsr_box_copy *copy, tsr_box *out)
{
    const int64_t element = (int64_t)copy->element_bytes;
    out->ndim = 0;
    for (int d = 0; d < copy->ndim; d++) {
        if (copy->shape[d] == 0)
            return false;
        if (copy->shape[d] == 1)
            continue;
        out->shape[out->ndim] = copy->shape[d];
        out->dst[out->ndim] = copy->dst_strides[d] * element;
        out->src[out->ndim++] = copy->src_strides[d] * element;
    }
    sort_dims(out);
    merge_dims(out);
    take_run(out, copy->element_bytes);
    if (tsr_box_run_is_element(out->run))
        pair_innermost(out);
    pad_to_plane(out);
    return true;
}
