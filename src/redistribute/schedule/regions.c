#include "redistribute/schedule/regions.h"

#include "base/checked.h"
#include "base/memory/memory.h"

#include <tessera/sys/status.h>

/* Makes the current group along `dim` part of the current region. */
static void enter_dim(tsr_regions *regions, int dim)
{
    const tsr_overlap *overlap = &regions->dims[dim];
    const tsr_segments *group = &overlap->groups[regions->group[dim]];
    regions->segments[dim] = overlap->segments + group->first;
    regions->counts[dim] = group->count;
    regions->shape[dim] = group->length;
}

void tsr_regions_set(tsr_regions *regions, tsr_reach *reach, const int64_t *coordinate)
{
    for (int dim = 0; dim < regions->far->ndim; dim++) {
        const tsr_segments group = tsr_reach_meet(&reach[dim], coordinate, &regions->segments[dim]);
        regions->counts[dim] = group.count;
        regions->shape[dim] = group.length;
    }
}

/* Refuses more regions than the meter allows; the caller of a walk takes an entry for each
 * region. */
static tsr_status expect_regions(const tsr_regions *regions, const tsr_meter *meter)
{
    int64_t count = 1;
    for (int dim = 0; dim < regions->far->ndim; dim++)
        if (!tsr_multiply(count, (int64_t)regions->dims[dim].group_count, &count))
            return tsr_meter_refuse(meter, (double)INT64_MAX);
    return tsr_meter_expect(meter, count);
}

tsr_status tsr_regions_begin(tsr_regions *regions, tsr_meter *meter, const tsr_layout *near, const int64_t *coordinate,
                             const int64_t *shape, const tsr_layout *far, bool near_is_source)
{
    *regions =
        (tsr_regions){.far = far, .near_is_source = near_is_source, .done = tsr_shape_is_empty(near->ndim, shape)};
    if (regions->done)
        return TSR_OK;
    for (int dim = 0; dim < near->ndim; dim++) {
        TSR_TRY(tsr_overlap_build(&regions->dims[dim], meter, near, coordinate, far, dim));
        enter_dim(regions, dim);
    }
    return expect_regions(regions, meter);
}

void tsr_regions_next(tsr_regions *regions)
{
    regions->done = true;
    for (int dim = regions->far->ndim - 1; dim >= 0 && regions->done; dim--) {
        regions->done = ++regions->group[dim] == regions->dims[dim].group_count;
        regions->group[dim] = regions->done ? 0 : regions->group[dim];
        enter_dim(regions, dim);
    }
}

void tsr_regions_free(tsr_regions *regions)
{
    for (int dim = 0; dim < TSR_MAX_DIMS; dim++)
        tsr_overlap_free(&regions->dims[dim], regions->far->context);
}

void tsr_regions_far(const tsr_regions *regions, int64_t *coordinate)
{
    for (int dim = 0; dim < regions->far->ndim; dim++)
        tsr_cut_unkey(regions->far, dim, regions->dims[dim].groups[regions->group[dim]].key, coordinate);
}

/* The current group's segments along one dim, and the wanted part of their joined length. */
typedef struct axis {
    const tsr_segment *segments;
    size_t count, at;
    /* begin, end: wanted positions of the joined segments; before: number before segment `at` */
    int64_t begin, end, before;
} axis;

static axis axis_of(const tsr_regions *regions, int dim, const tsr_part *part)
{
    axis a = {regions->segments[dim], regions->counts[dim], 0, 0, regions->shape[dim], 0};
    if (part && part->dim == dim) {
        a.begin = part->begin;
        a.end = part->end;
    }
    return a;
}

/* Segment `at`, clipped to the wanted positions; its length is 0 or less if it has none of them. */
static tsr_segment axis_segment(const axis *a)
{
    tsr_segment s = a->segments[a->at];
    const int64_t skip = tsr_max_i64(0, a->begin - a->before);
    const int64_t end = tsr_min_i64(s.length, a->end - a->before);
    s.near += skip;
    s.far += skip;
    s.begin += skip;
    s.length = end - skip;
    return s;
}

/* Makes room for `count` more boxes. A scalar's boxes hold no numbers, but have an address. */
static tsr_status reserve_boxes(tsr_item *item, size_t count)
{
    const size_t numbers = 3 * (size_t)item->src->ndim, wanted = numbers > 0 ? (item->box_count + count) * numbers : 1;
    void *memory = item->boxes;
    const tsr_status status = tsr_reserve(item->context, &memory, &item->box_capacity, wanted, sizeof(int64_t));
    item->boxes = memory;
    return status;
}

static tsr_status append_box(const tsr_regions *regions, tsr_item *item, const axis *axes, int64_t *elements)
{
    const int ndim = regions->far->ndim;
    tsr_segment segments[TSR_MAX_DIMS];
    int64_t product = 1;
    for (int dim = 0; dim < ndim; dim++) {
        segments[dim] = axis_segment(&axes[dim]);
        product *= tsr_max_i64(0, segments[dim].length);
    }
    if (product == 0)
        return TSR_OK;
    const size_t numbers = 3 * (size_t)ndim;
    TSR_TRY(reserve_boxes(item, 1));
    int64_t *box = item->boxes + item->box_count++ * numbers;
    for (int dim = 0; dim < ndim; dim++) {
        box[dim] = segments[dim].length;
        box[ndim + dim] = regions->near_is_source ? segments[dim].near : segments[dim].far;
        box[2 * ndim + dim] = regions->near_is_source ? segments[dim].far : segments[dim].near;
    }
    *elements += product;
    return TSR_OK;
}

/* Takes entries for the boxes of the current region, the product of the segments of all dims: a box
 * of two dims is as large as an entry. */
static tsr_status take_boxes(const tsr_regions *regions, tsr_meter *meter)
{
    int64_t count = 1;
    for (int dim = 0; dim < regions->far->ndim; dim++)
        if (!tsr_multiply(count, (int64_t)regions->counts[dim], &count))
            return tsr_meter_refuse(meter, (double)INT64_MAX);
    return tsr_meter_take_times(meter, count, (regions->far->ndim + 1) / 2);
}

static bool advance_axes(axis *axes, int ndim)
{
    for (int dim = ndim - 1; dim >= 0; dim--) {
        axes[dim].before += axes[dim].segments[axes[dim].at].length;
        if (++axes[dim].at < axes[dim].count)
            return true;
        axes[dim].at = 0;
        axes[dim].before = 0;
    }
    return false;
}

tsr_status tsr_regions_append(const tsr_regions *regions, tsr_item *item, const tsr_part *part, size_t *first,
                              size_t *count, int64_t *elements)
{
    axis axes[TSR_MAX_DIMS];
    for (int dim = 0; dim < regions->far->ndim; dim++)
        axes[dim] = axis_of(regions, dim, part);
    *first = item->box_count;
    *elements = 0;
    const bool nothing = part && part->begin >= part->end;
    if (!nothing) {
        TSR_TRY(take_boxes(regions, item->meter));
        do {
            TSR_TRY(append_box(regions, item, axes, elements));
        } while (advance_axes(axes, regions->far->ndim));
    }
    *count = item->box_count - *first;
    return TSR_OK;
}

tsr_status tsr_item_add(const tsr_item *item, int64_t *total, int64_t elements, int64_t times)
{
    const int64_t most = (INT64_C(1) << 61) / (int64_t)item->src->element_bytes;
    int64_t sum;
    if (!tsr_multiply(elements, times, &sum) || !tsr_add_sizes(sum, *total, &sum) || sum > most)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %lld would receive or send more than 2^61 bytes",
                              item->meter->call, (long long)item->rank);
    *total = sum;
    return TSR_OK;
}

tsr_status tsr_transfers_reserve(tsr_transfers *transfers, tsr_item *item, size_t boxes, size_t count)
{
    TSR_TRY(reserve_boxes(item, boxes));
    void *memory = transfers->at;
    const tsr_status status =
        tsr_reserve(item->context, &memory, &transfers->capacity, transfers->count + count, sizeof(tsr_transfer));
    transfers->at = memory;
    return status;
}

tsr_status tsr_transfers_append(tsr_transfers *transfers, tsr_item *item, const tsr_transfer *transfer)
{
    if (transfer->elements == 0)
        return TSR_OK;
    void *memory = transfers->at;
    const tsr_status status =
        tsr_reserve(item->context, &memory, &transfers->capacity, transfers->count + 1, sizeof *transfer);
    transfers->at = memory;
    TSR_TRY(status);
    transfers->at[transfers->count++] = *transfer;
    return tsr_item_add(item, &transfers->elements, transfer->elements, transfer->peer != item->rank);
}

tsr_status tsr_transfers_take(tsr_transfers *transfers, tsr_item *item, const tsr_regions *regions, int64_t peer,
                              const tsr_part *part, tsr_transfer *taken)
{
    tsr_transfer transfer = {.peer = peer};
    TSR_TRY(tsr_regions_append(regions, item, part, &transfer.first_box, &transfer.box_count, &transfer.elements));
    TSR_TRY(tsr_transfers_append(transfers, item, &transfer));
    if (taken)
        *taken = transfer;
    return TSR_OK;
}
