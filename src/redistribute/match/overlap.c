#include "redistribute/match/overlap.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/walk.h"

#include <tessera/sys/status.h>

/* After this many segments, the rest are counted before memory is taken for them. */
#define MANY_SEGMENTS 65536

bool tsr_cuts_dim(const tsr_layout *layout, int mesh_dim, int dim)
{
    return tsr_layout_kind(layout, mesh_dim) == TSR_SHARD && layout->placements[mesh_dim].dim == dim;
}

int64_t tsr_cut_keys(const tsr_layout *layout, int dim)
{
    int64_t keys = 1;
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_cuts_dim(layout, i, dim))
            keys *= tsr_mesh_shape(layout->mesh)[i];
    return keys;
}

int64_t tsr_cut_key(const tsr_layout *layout, int dim, const int64_t *coordinate)
{
    int64_t key = 0;
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_cuts_dim(layout, i, dim))
            key = key * tsr_mesh_shape(layout->mesh)[i] + coordinate[i];
    return key;
}

void tsr_cut_unkey(const tsr_layout *layout, int dim, int64_t key, int64_t *coordinate)
{
    for (int i = layout->mesh_ndim - 1; i >= 0; i--) {
        if (!tsr_cuts_dim(layout, i, dim))
            continue;
        const int64_t size = tsr_mesh_shape(layout->mesh)[i];
        coordinate[i] = key % size;
        key /= size;
    }
}

static bool continues(const tsr_segment *last, const tsr_segment *next)
{
    return last->key == next->key && last->begin + last->length == next->begin &&
           last->near + last->length == next->near && last->far + last->length == next->far;
}

static tsr_status append_segment(tsr_overlap *overlap, tsr_context *context, const tsr_segment *segment)
{
    if (overlap->segment_count > 0 && continues(&overlap->segments[overlap->segment_count - 1], segment)) {
        overlap->segments[overlap->segment_count - 1].length += segment->length;
        return TSR_OK;
    }
    void *memory = overlap->segments;
    const tsr_status status =
        tsr_reserve(context, &memory, &overlap->segment_capacity, overlap->segment_count + 1, sizeof *segment);
    overlap->segments = memory;
    TSR_TRY(status);
    overlap->segments[overlap->segment_count++] = *segment;
    return TSR_OK;
}

static int by_key_then_near(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_segment *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->near < y->near ? -1 : x->near > y->near;
}

static tsr_status group_segments(tsr_overlap *overlap, tsr_context *context)
{
    for (size_t i = 0; i < overlap->segment_count; i++) {
        const tsr_segment *segment = &overlap->segments[i];
        if (i == 0 || segment->key != segment[-1].key) {
            void *memory = overlap->groups;
            const tsr_status status =
                tsr_reserve(context, &memory, &overlap->group_capacity, overlap->group_count + 1, sizeof(tsr_segments));
            overlap->groups = memory;
            TSR_TRY(status);
            overlap->groups[overlap->group_count++] = (tsr_segments){segment->key, i, 0, 0, 0};
        }
        tsr_segments *group = &overlap->groups[overlap->group_count - 1];
        group->count++;
        group->length += segment->length;
    }
    return TSR_OK;
}

/* Counts the segments of the rest of the shard, then reserves memory for all of them. */
static tsr_status reserve_rest(tsr_overlap *overlap, const tsr_meter *meter, tsr_shard_walk *near, tsr_owner_walk *far,
                               int64_t at, int64_t length)
{
    tsr_meter trial = *meter;
    int64_t owner[TSR_MAX_DIMS], steps = far->steps;
    size_t count = overlap->segment_count;
    while (at < length) {
        const tsr_cut_run mine = tsr_shard_walk_at(near, at);
        at += tsr_min_i64(mine.length, tsr_owner_walk_at(far, mine.begin, owner).length);
        TSR_TRY(tsr_meter_take_on_way(&trial, 1 + far->steps - steps, 0, at, length));
        steps = far->steps;
        count++;
    }
    void *memory = overlap->segments;
    const tsr_status status =
        tsr_reserve(near->layout->context, &memory, &overlap->segment_capacity, count, sizeof(tsr_segment));
    overlap->segments = memory;
    return status;
}

static tsr_status list_segments(tsr_overlap *overlap, tsr_meter *meter, tsr_shard_walk *near, tsr_owner_walk *far,
                                int64_t length)
{
    const int64_t begun = meter->used;
    int64_t owner[TSR_MAX_DIMS], steps = 0;
    for (int64_t at = 0; at < length;) {
        const tsr_cut_run mine = tsr_shard_walk_at(near, at);
        const tsr_cut_run theirs = tsr_owner_walk_at(far, mine.begin, owner);
        const int64_t common = tsr_min_i64(mine.length, theirs.length);
        const tsr_segment segment = {tsr_cut_key(far->layout, far->dim, owner), mine.begin, at, theirs.local, common};
        TSR_TRY(append_segment(overlap, near->layout->context, &segment));
        at += common;
        TSR_TRY(tsr_meter_take_on_way(meter, 1 + far->steps - steps, begun, at, length));
        if (overlap->segment_count == MANY_SEGMENTS && at < length)
            TSR_TRY(reserve_rest(overlap, meter, near, far, at, length));
        steps = far->steps;
    }
    return TSR_OK;
}

tsr_status tsr_overlap_build(tsr_overlap *overlap, tsr_meter *meter, const tsr_layout *near, const int64_t *coordinate,
                             const tsr_layout *far, int dim)
{
    tsr_shard_walk mine;
    tsr_owner_walk theirs;
    const int64_t length = tsr_shard_walk_begin(&mine, near, dim, coordinate);
    tsr_status status = tsr_owner_walk_begin(&theirs, far, dim);
    if (status == TSR_OK)
        status = list_segments(overlap, meter, &mine, &theirs, length);
    tsr_owner_walk_end(&theirs);
    TSR_TRY(status);
    tsr_sort_array(overlap->segments, overlap->segment_count, sizeof *overlap->segments, by_key_then_near, NULL);
    return group_segments(overlap, near->context);
}

size_t tsr_overlap_find(const tsr_overlap *overlap, int64_t key)
{
    size_t low = 0, high = overlap->group_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (overlap->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tsr_overlap_free(tsr_overlap *overlap, tsr_context *context)
{
    tsr_release(context, overlap->segments);
    tsr_release(context, overlap->groups);
    *overlap = (tsr_overlap){0};
}
