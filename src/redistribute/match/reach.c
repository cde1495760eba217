#include "redistribute/match/reach.h"

#include "base/checked.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"

#include <tessera/sys/status.h>

/* The cuts of one tensor dim, and the range in which pieces are counted. */
typedef struct nest {
    const tsr_layout *layout;
    const tsr_dim_cuts *cuts;
    const tsr_range *range;
    bool dense;
} nest;

static int64_t count_pieces(const nest *n, int cut, int64_t length);

static const tsr_cut *cut_of(const nest *n, int cut)
{
    return &n->layout->cuts[n->cuts->mesh_dim[cut]];
}

/* Pieces in the range that lie in parts [begin, end) of a stretch of `length` that cut number `cut`
 * divides. */
static int64_t count_parts(const nest *n, int cut, int64_t length, int64_t begin, int64_t end)
{
    if (begin >= end)
        return 0;
    if (n->dense) {
        int64_t count = end - begin;
        for (int i = cut + 1; i < n->cuts->count && count > 0; i++) {
            const int m = n->cuts->mesh_dim[i];
            count *= tsr_max_i64(0, n->range->end[m] - n->range->begin[m]);
        }
        return count;
    }
    tsr_cut_stretch runs[TSR_CUT_STRETCHES];
    const int run_count = tsr_cut_stretches(cut_of(n, cut), length, runs);
    int64_t count = 0;
    for (int i = 0; i < run_count && begin < end; i++) {
        const int64_t last = tsr_min_i64(end, runs[i].end);
        if (begin < last)
            count += (last - begin) * count_pieces(n, cut + 1, runs[i].length);
        begin = tsr_max_i64(begin, last);
    }
    return count;
}

/* Pieces in the range that are not empty, of a stretch of `length` that the cuts from number `cut`
 * on divide. */
static int64_t count_pieces(const nest *n, int cut, int64_t length)
{
    if (length == 0 || cut == n->cuts->count)
        return length > 0;
    const int m = n->cuts->mesh_dim[cut];
    return count_parts(n, cut, length, n->range->begin[m], n->range->end[m]);
}

static bool range_has(const tsr_range *range, int mesh_dim, int64_t coordinate)
{
    return coordinate >= range->begin[mesh_dim] && coordinate < range->end[mesh_dim];
}

/* Pieces in the range up to and with the piece at `last`, in the stretch that the cuts from number
 * `cut` on divide. */
static int64_t count_up_to(const nest *n, int cut, const tsr_reach_end *last)
{
    int64_t count = 0;
    for (int i = cut; i < n->cuts->count; i++) {
        const int m = n->cuts->mesh_dim[i];
        const int64_t part = last->coordinate[m];
        count += count_parts(n, i, last->lengths[i], n->range->begin[m], tsr_min_i64(n->range->end[m], part));
        if (!range_has(n->range, m, part))
            return count;
    }
    return count + 1;
}

/* Pieces in the range from the piece at `first` on, in the stretch that the cuts from number `cut`
 * on divide. */
static int64_t count_from(const nest *n, int cut, const tsr_reach_end *first)
{
    int64_t count = 0;
    for (int i = cut; i < n->cuts->count; i++) {
        const int m = n->cuts->mesh_dim[i];
        const int64_t part = first->coordinate[m];
        count += count_parts(n, i, first->lengths[i], tsr_max_i64(n->range->begin[m], part + 1), n->range->end[m]);
        if (!range_has(n->range, m, part))
            return count;
    }
    return count + 1;
}

/* Pieces in the range from the piece at `first` to the piece at `last`, neither of them empty:
 * their coordinates agree for some cuts, then differ. */
static int64_t count_between(const nest *n, const tsr_reach_end *first, const tsr_reach_end *last)
{
    for (int i = 0; i < n->cuts->count; i++) {
        const int m = n->cuts->mesh_dim[i];
        const int64_t begin = first->coordinate[m], end = last->coordinate[m];
        if (begin != end) {
            int64_t count = count_parts(n, i, first->lengths[i], tsr_max_i64(n->range->begin[m], begin + 1),
                                        tsr_min_i64(n->range->end[m], end));
            if (range_has(n->range, m, begin))
                count += count_from(n, i + 1, first);
            if (range_has(n->range, m, end))
                count += count_up_to(n, i + 1, last);
            return count;
        }
        if (!range_has(n->range, m, begin))
            return 0;
    }
    return 1;
}

/* True if every cut deals out intervals, so that every shard is an interval. */
static bool deals_intervals(const tsr_layout *layout, int dim)
{
    bool all = true;
    for (int i = 0; i < layout->dims[dim].count; i++)
        all &= tsr_cut_deals_intervals(&layout->cuts[layout->dims[dim].mesh_dim[i]]);
    return all;
}

static bool lists_sizes(const tsr_layout *layout, int dim)
{
    bool any = false;
    for (int i = 0; i < layout->dims[dim].count; i++)
        any |= tsr_cut_lists_sizes(&layout->cuts[layout->dims[dim].mesh_dim[i]]);
    return any;
}

static tsr_range everything(const tsr_layout *layout)
{
    tsr_range range = {0};
    for (int m = 0; m < layout->mesh_ndim; m++)
        range.end[m] = tsr_mesh_shape(layout->mesh)[m];
    return range;
}

void tsr_reach_init(tsr_reach *reach, tsr_meter *meter, const tsr_layout *near, const tsr_layout *far, int dim)
{
    *reach = (tsr_reach){.far = far, .meter = meter, .dim = dim};
    reach->listed = !deals_intervals(near, dim) || !deals_intervals(far, dim) || lists_sizes(far, dim);
    if (reach->listed)
        return;
    const tsr_range range = everything(far);
    const nest all = {far, &far->dims[dim], &range, false};
    reach->dense = count_pieces(&all, 0, far->shape[dim]) == tsr_cut_keys(far, dim);
}

static bool is_in(const tsr_layout *layout, int dim, const int64_t *coordinate, const tsr_range *range)
{
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    for (int i = 0; i < cuts->count; i++) {
        const int m = cuts->mesh_dim[i];
        if (!range_has(range, m, coordinate[m]))
            return false;
    }
    return true;
}

/* Drops the groups whose coordinates are not in the range. */
static void sift(tsr_reach *reach, const tsr_range *range)
{
    tsr_overlap *o = &reach->overlap;
    size_t kept = 0;
    for (size_t g = 0; g < o->group_count; g++) {
        int64_t coordinate[TSR_MAX_DIMS];
        tsr_cut_unkey(reach->far, reach->dim, o->groups[g].key, coordinate);
        if (is_in(reach->far, reach->dim, coordinate, range))
            o->groups[kept++] = o->groups[g];
    }
    o->group_count = kept;
}

/* True if the keys of the range's coordinates are consecutive: no mesh dim is narrowed behind one
 * with several coordinates. */
static bool is_range_of_keys(const tsr_layout *layout, int dim, const tsr_range *range)
{
    bool behind = false;
    for (int m = 0; m < layout->mesh_ndim; m++) {
        if (!tsr_cuts_dim(layout, m, dim))
            continue;
        const int64_t size = tsr_mesh_shape(layout->mesh)[m], width = range->end[m] - range->begin[m];
        if (behind && width < size)
            return false;
        behind |= width > 1;
    }
    return true;
}

tsr_status tsr_reach_mark(tsr_reach *reach, const tsr_range *marked)
{
    reach->marks = reach->listed && !is_range_of_keys(reach->far, reach->dim, marked);
    if (!reach->marks)
        return TSR_OK;
    tsr_overlap *o = &reach->overlap;
    TSR_TRY(tsr_meter_take(reach->meter, (int64_t)o->group_count));
    o->marked = 0;
    for (size_t g = 0; g < o->group_count; g++) {
        int64_t coordinate[TSR_MAX_DIMS];
        tsr_cut_unkey(reach->far, reach->dim, o->groups[g].key, coordinate);
        o->groups[g].marked = o->marked;
        o->marked += is_in(reach->far, reach->dim, coordinate, marked);
    }
    return TSR_OK;
}

static void find_end(const tsr_reach *reach, int64_t at, tsr_reach_end *end)
{
    const tsr_dim_cuts *cuts = &reach->far->dims[reach->dim];
    tsr_layout_owner_along(reach->far, reach->dim, at, end->coordinate);
    int64_t length = reach->far->shape[reach->dim];
    for (int i = 0; i < cuts->count && !reach->dense; i++) {
        const int m = cuts->mesh_dim[i];
        end->lengths[i] = length;
        length = i + 1 < cuts->count ? tsr_cut_size(&reach->far->cuts[m], length, end->coordinate[m]) : 0;
    }
}

tsr_status tsr_reach_build(tsr_reach *reach, const tsr_layout *near, const int64_t *coordinate, const tsr_range *range)
{
    if (reach->listed) {
        const tsr_status status =
            tsr_overlap_build(&reach->overlap, reach->meter, near, coordinate, reach->far, reach->dim);
        if (status == TSR_OK)
            sift(reach, range);
        return status;
    }
    const int64_t length = tsr_layout_length(near, reach->dim, coordinate);
    reach->count = 0;
    reach->empty = length == 0;
    if (reach->empty)
        return TSR_OK;
    reach->begin = tsr_layout_position(near, reach->dim, coordinate, 0).begin;
    reach->end = reach->begin + length;
    find_end(reach, reach->begin, &reach->first);
    find_end(reach, reach->end - 1, &reach->last);
    reach->count = tsr_reach_count(reach, range, false);
    return TSR_OK;
}

void tsr_reach_free(tsr_reach *reach, tsr_context *context)
{
    tsr_overlap_free(&reach->overlap, context);
}

static size_t marked_before(const tsr_overlap *overlap, size_t group)
{
    return group == overlap->group_count ? overlap->marked : overlap->groups[group].marked;
}

/* Keys are row-major: single coordinates on leading mesh dims, and a range on the next, are
 * consecutive keys. On the mesh dims behind, the list holds only what is in the range. */
static int64_t count_listed(const tsr_reach *reach, const tsr_range *range, bool marked)
{
    const tsr_overlap *overlap = &reach->overlap;
    int64_t begin = 0, end = tsr_cut_keys(reach->far, reach->dim), each = end;
    for (int m = 0; m < reach->far->mesh_ndim; m++) {
        if (!tsr_cuts_dim(reach->far, m, reach->dim))
            continue;
        if (range->begin[m] >= range->end[m])
            return 0;
        each /= tsr_mesh_shape(reach->far->mesh)[m];
        end = begin + each * range->end[m];
        begin += each * range->begin[m];
        if (range->end[m] - range->begin[m] > 1)
            break;
    }
    const size_t first = tsr_overlap_find(overlap, begin), last = tsr_overlap_find(overlap, end);
    return (int64_t)(marked ? marked_before(overlap, last) - marked_before(overlap, first) : last - first);
}

int64_t tsr_reach_count(const tsr_reach *reach, const tsr_range *range, bool marked)
{
    if (reach->listed)
        return count_listed(reach, range, marked && reach->marks);
    if (reach->empty)
        return 0;
    const nest n = {reach->far, &reach->far->dims[reach->dim], range, reach->dense};
    const int64_t length = reach->far->shape[reach->dim];
    /* A shard that is the whole dim meets all pieces. */
    return reach->end - reach->begin == length ? count_pieces(&n, 0, length)
                                               : count_between(&n, &reach->first, &reach->last);
}

int64_t tsr_reach_total(const tsr_reach *reach)
{
    return reach->listed ? (int64_t)reach->overlap.group_count : reach->count;
}

/* Pieces lie in the order of their cuts, so up to the first cut at which the owners of the ends
 * differ no piece is outside their coordinates. */
void tsr_reach_narrow(const tsr_reach *reach, tsr_range *range)
{
    const tsr_dim_cuts *cuts = &reach->far->dims[reach->dim];
    bool one = !reach->listed && !reach->empty;
    for (int i = 0; i < cuts->count && one; i++) {
        const int m = cuts->mesh_dim[i];
        const int64_t first = reach->first.coordinate[m], last = reach->last.coordinate[m];
        range->begin[m] = tsr_max_i64(range->begin[m], first);
        range->end[m] = tsr_min_i64(range->end[m], last + 1);
        one = first == last;
    }
}

tsr_segments tsr_reach_meet(tsr_reach *reach, const int64_t *far_coordinate, const tsr_segment **segments)
{
    if (reach->listed) {
        const int64_t key = tsr_cut_key(reach->far, reach->dim, far_coordinate);
        const tsr_segments *group = &reach->overlap.groups[tsr_overlap_find(&reach->overlap, key)];
        *segments = reach->overlap.segments + group->first;
        return *group;
    }
    const bool cut = reach->far->dims[reach->dim].count > 0;
    const tsr_cut_run piece = cut ? tsr_layout_position(reach->far, reach->dim, far_coordinate, 0)
                                  : (tsr_cut_run){.length = reach->far->shape[reach->dim]};
    const int64_t begin = tsr_max_i64(piece.begin, reach->begin),
                  end = tsr_min_i64(piece.begin + piece.length, reach->end);
    reach->segment = (tsr_segment){0, begin, begin - reach->begin, begin - piece.begin, end - begin};
    *segments = &reach->segment;
    return (tsr_segments){.count = 1, .length = end - begin};
}
