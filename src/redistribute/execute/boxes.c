/* Boxes of a plan on their way through the device's table. */
#include "redistribute/execute/boxes.h"

#include <tessera/sys/status.h>

/* Does not zero `at`, whose copies are written before they are read: zeroing them would cost more
 * than a small move. */
void tsr_copies_begin(tsr_copies *copies, const tsr_execution *e)
{
    copies->e = e;
    copies->count = 0;
}

static inline tsr_status end_with(tsr_copies *copies, void *self)
{
    const tsr_execution *const e = copies->e;
    const size_t count = copies->count;
    copies->count = 0;
    return count == 0 ? TSR_OK : e->ops.table->copy_boxes(self, e->ops.index, copies->at, count, e->stream);
}

tsr_status tsr_copies_end(tsr_copies *copies)
{
    return end_with(copies, copies->e->ops.self);
}

/* The next copy to fill in. The caller ends the copies when they are TSR_COPIES. */
static tsr_box_copy *next_copy(tsr_copies *copies, const tsr_item *item, const int64_t *shape)
{
    tsr_box_copy *copy = &copies->at[copies->count++];
    copy->element_bytes = item->src->element_bytes;
    copy->ndim = item->src->ndim;
    for (int dim = 0; dim < copy->ndim; dim++)
        copy->shape[dim] = shape[dim];
    return copy;
}

static char *locate_box(const tsr_item *item, size_t box, tsr_place place, bool at_source, int64_t *strides)
{
    for (int dim = 0; dim < item->src->ndim; dim++)
        strides[dim] = place.strides[dim];
    return place.base + tsr_item_offset(item, box, place.strides, at_source);
}

static void describe_copy(const tsr_item *item, size_t box, tsr_place dst, tsr_place src, bool from_source,
                          tsr_box_copy *copy)
{
    const int ndim = item->src->ndim;
    const int64_t *const shape = tsr_item_box(item, box), *const to = shape + 2 * ndim,
                         *const from = from_source ? shape + ndim : to;
    int64_t read = 0, written = 0;
    for (int dim = 0; dim < ndim; dim++) {
        copy->shape[dim] = shape[dim];
        copy->src_strides[dim] = src.strides[dim];
        copy->dst_strides[dim] = dst.strides[dim];
        read += from[dim] * src.strides[dim];
        written += to[dim] * dst.strides[dim];
    }
    copy->ndim = ndim;
    copy->element_bytes = item->src->element_bytes;
    copy->src = src.base + read * (int64_t)copy->element_bytes;
    copy->dst = dst.base + written * (int64_t)copy->element_bytes;
}

/* Copies of several transfers go to the device in one call: a GPU launches them together, and the
 * host chooses its stores by the bytes of a call, which should be those of the execution. */
tsr_status tsr_copies_add(tsr_copies *copies, const tsr_item *item, const tsr_transfer *transfer, tsr_place dst,
                          tsr_place src, bool from_source)
{
    for (size_t box = transfer->first_box; box < transfer->first_box + transfer->box_count; box++) {
        describe_copy(item, box, dst, src, from_source, &copies->at[copies->count++]);
        if (copies->count == TSR_COPIES)
            TSR_TRY(tsr_copies_end(copies));
    }
    return TSR_OK;
}

char *tsr_execution_find(const tsr_item *item, const tsr_fragment *f, tsr_place place, bool at_source, int64_t *strides)
{
    char *at = locate_box(item, f->box, place, at_source, strides);
    for (int dim = 0; dim < item->src->ndim; dim++)
        at += f->offset[dim] * place.strides[dim] * (int64_t)item->src->element_bytes;
    return at;
}

typedef struct passage {
    tsr_place place;
    bool at_source, pack; /* pack: out of the place, else into it */
} passage;

static tsr_status pass(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, char *packed, passage way)
{
    const tsr_item *item = &e->plan->items[parcel->item];
    tsr_fragments fragments = tsr_fragments_begin(item, parcel->first_box, range.begin, range.end);
    tsr_fragment f;
    tsr_copies copies;
    tsr_copies_begin(&copies, e);
    void *const self = way.pack ? e->ops.self : e->parts;
    for (; tsr_fragments_next(&fragments, &f); packed += f.elements * (int64_t)item->src->element_bytes) {
        tsr_box_copy *copy = next_copy(&copies, item, f.shape);
        char *placed =
            tsr_execution_find(item, &f, way.place, way.at_source, way.pack ? copy->src_strides : copy->dst_strides);
        tsr_fragment_strides(&f, copy->ndim, way.pack ? copy->dst_strides : copy->src_strides);
        copy->src = way.pack ? placed : packed;
        copy->dst = way.pack ? packed : placed;
        if (copies.count == TSR_COPIES)
            TSR_TRY(end_with(&copies, self));
    }
    return end_with(&copies, self);
}

tsr_status tsr_execution_pack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, void *packed,
                              tsr_place place, bool at_source)
{
    return pass(e, parcel, range, packed, (passage){place, at_source, true});
}

tsr_status tsr_execution_unpack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place,
                                void *packed)
{
    return pass(e, parcel, range, packed, (passage){place, false, false});
}

void *tsr_execution_contiguous(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place,
                               bool at_source)
{
    const tsr_item *item = &e->plan->items[parcel->item];
    if (parcel->box_count != 1 || !tsr_item_box_is_dense(item, parcel->first_box, place.strides))
        return NULL;
    return place.base + tsr_item_offset(item, parcel->first_box, place.strides, at_source) +
           range.begin * (int64_t)item->src->element_bytes;
}

tsr_box_reduce tsr_execution_reduce(const tsr_item *item, const tsr_reduce_arrays *arrays, int dst_count)
{
    return (tsr_box_reduce){
        .dtype = item->src->dtype,
        .op = item->problem.op,
        .divisor = item->problem.divisor,
        .ndim = item->src->ndim,
        .src_count = (int)item->problem.terms,
        .dst_count = dst_count,
        .src = arrays->src,
        .src_strides = (const int64_t(*)[TSR_MAX_DIMS])arrays->src_strides,
        .dst = arrays->dst,
        .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])arrays->dst_strides,
    };
}
