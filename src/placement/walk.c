#include "placement/walk.h"

#include "base/checked.h"
#include "base/memory/memory.h"

#include <tessera/sys/status.h>

/* A table keeps the sums of at most this many pieces; another piece takes the place of one, whose
 * sum is computed again when needed. */
#define MOST_MARKS 4096

int64_t tsr_shard_walk_begin(tsr_shard_walk *walk, const tsr_layout *layout, int dim, const int64_t *coordinate)
{
    *walk = (tsr_shard_walk){.layout = layout, .dim = dim, .coordinate = coordinate};
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    walk->lengths[0] = layout->shape[dim];
    for (int i = 0; i < cuts->count; i++)
        walk->lengths[i + 1] =
            tsr_cut_size(&layout->cuts[cuts->mesh_dim[i]], walk->lengths[i], coordinate[cuts->mesh_dim[i]]);
    return walk->lengths[cuts->count];
}

tsr_cut_run tsr_shard_walk_at(tsr_shard_walk *walk, int64_t at)
{
    const tsr_dim_cuts *cuts = &walk->layout->dims[walk->dim];
    tsr_cut_run run = {0, at, at, walk->lengths[cuts->count] - at};
    for (int i = cuts->count - 1; i >= 0; i--) {
        const int m = cuts->mesh_dim[i];
        const tsr_cut_run outer =
            tsr_cut_position(&walk->layout->cuts[m], walk->lengths[i], walk->coordinate[m], run.begin, &walk->marks[i]);
        run.begin = outer.begin;
        run.length = tsr_min_i64(run.length, outer.length);
    }
    return run;
}

tsr_status tsr_owner_walk_begin(tsr_owner_walk *walk, const tsr_layout *layout, int dim)
{
    *walk = (tsr_owner_walk){.layout = layout, .dim = dim};
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    int64_t pieces = 1;
    for (int i = 0; i < cuts->count; i++) {
        const tsr_cut *cut = &layout->cuts[cuts->mesh_dim[i]];
        pieces = tsr_min_i64(MOST_MARKS, pieces * tsr_min_i64(MOST_MARKS, cut->parts));
        if (!cut->block_starts)
            continue;
        void *memory;
        TSR_TRY(tsr_allocate_array(layout->context, (size_t)pieces, sizeof(tsr_owner_mark), &memory));
        walk->marks[i] = memory;
        walk->capacity[i] = pieces;
    }
    return TSR_OK;
}

void tsr_owner_walk_end(tsr_owner_walk *walk)
{
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        tsr_release(walk->layout->context, walk->marks[i]);
}

/* The mark of the piece with this key; if its place in the table was another piece's, the mark
 * starts anew. */
static tsr_owner_mark *mark_of(tsr_owner_walk *walk, int i, const tsr_cut *cut, int64_t length, int64_t part,
                               int64_t key)
{
    tsr_owner_mark *mark = &walk->marks[i][key % walk->capacity[i]];
    if (mark->key != key + 1) {
        *mark = (tsr_owner_mark){key + 1, tsr_cut_size(cut, length, part), {0}};
        walk->steps += (int64_t)cut->block_count;
    }
    return mark;
}

tsr_cut_run tsr_owner_walk_at(tsr_owner_walk *walk, int64_t at, int64_t *coordinate)
{
    const tsr_dim_cuts *cuts = &walk->layout->dims[walk->dim];
    int64_t length = walk->layout->shape[walk->dim], key = 0;
    tsr_cut_run run = {0, at, at, length - at};
    for (int i = 0; i < cuts->count; i++) {
        const tsr_cut *cut = &walk->layout->cuts[cuts->mesh_dim[i]];
        tsr_owner_mark *mark = NULL;
        if (walk->marks[i]) {
            const int64_t part = tsr_cut_part(cut, length, run.local);
            mark = mark_of(walk, i, cut, length, part, key * cut->parts + part);
        }
        const tsr_cut_run inner = tsr_cut_owner(cut, length, run.local, mark ? &mark->mark : NULL);
        coordinate[cuts->mesh_dim[i]] = inner.part;
        key = key * cut->parts + inner.part;
        if (i + 1 < cuts->count)
            length = mark ? mark->length : tsr_cut_size(cut, length, inner.part);
        run.local = inner.local;
        run.length = tsr_min_i64(run.length, inner.length);
    }
    return run;
}
