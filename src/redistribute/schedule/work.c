#include "redistribute/schedule/work.h"

#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "redistribute/schedule/item.h"
#include "redistribute/schedule/sizes.h"

/* The sums of one rank's work; `touched`: all bytes that it reads or writes. */
typedef struct rank_work {
    const tsr_plan *plan;
    double touched, seconds;
    int64_t pieces;
} rank_work;

static double bytes_of_shard(const tsr_item *item, const int64_t *shape)
{
    double bytes = (double)item->src->element_bytes;
    for (int dim = 0; dim < item->src->ndim; dim++)
        bytes *= (double)shape[dim];
    return bytes;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Bytes written, which are all of the destination, and bytes read of the source: at most all of it,
 * and at most `terms` times the bytes written. */
static double touched_by(const tsr_item *item)
{
    const double written = item->in_dst ? bytes_of_shard(item, item->dst_shape) : 0;
    const double held = item->in_src ? bytes_of_shard(item, item->src_shape) : 0;
    const double terms = item->problem.reduces ? (double)item->problem.terms : 1;
    return written + lesser(held, terms * written);
}

/* How many bytes of a box lie together in shards of both shapes; TSR_RUN_WHOLE if all do. */
static int64_t find_run(const tsr_item *item, const int64_t *box, const int64_t *a, const int64_t *b)
{
    int64_t run = (int64_t)item->src->element_bytes;
    int dim = item->src->ndim - 1;
    while (dim >= 0 && box[dim] == a[dim] && box[dim] == b[dim])
        run *= box[dim--];
    if (dim >= 0)
        run *= box[dim--];
    for (; dim >= 0; dim--)
        if (box[dim] != 1)
            return run;
    return TSR_RUN_WHOLE;
}

static void locate_shard(const tsr_layout *layout, int64_t rank, int64_t *shape)
{
    int64_t coordinate[TSR_MAX_DIMS];
    const bool found = tsr_mesh_locate(layout->mesh, rank, coordinate);
    tsr_layout_local_shape(layout, found ? coordinate : NULL, shape);
}

static void add_boxes(rank_work *w, const tsr_item *item, tsr_work kind, const int64_t *source, size_t first,
                      size_t count, double times)
{
    for (size_t box = first; box < first + count; box++) {
        const int64_t *shape = tsr_item_box(item, box);
        const int64_t run = find_run(item, shape, source, item->dst_shape);
        w->seconds +=
            tsr_profile_work_seconds(w->plan->measured, kind, run, w->touched, times * bytes_of_shard(item, shape));
    }
    w->pieces += (int64_t)count;
}

/* `from`: the layout whose shards the peers hold. */
static void add_transfers(rank_work *w, const tsr_item *item, const tsr_transfers *transfers, const tsr_layout *from)
{
    for (size_t i = 0; i < transfers->count; i++) {
        const tsr_transfer *t = &transfers->at[i];
        int64_t shape[TSR_MAX_DIMS];
        locate_shard(from, t->peer, shape);
        add_boxes(w, item, t->peer == item->rank ? TSR_WORK_KEEP : TSR_WORK_COPY, shape, t->first_box, t->box_count, 1);
    }
}

static void add_reductions(rank_work *w, const tsr_item *item, bool direct)
{
    const double times = (double)item->problem.terms + (direct ? (double)item->owner_count : 1);
    for (size_t i = 0; i < item->reduction_count; i++) {
        const tsr_reduction *r = &item->reductions[i];
        int64_t shape[TSR_MAX_DIMS];
        locate_shard(item->src, item->contributors[r->first_term], shape);
        add_boxes(w, item, TSR_WORK_SUM, shape, r->first_box, r->box_count, times);
    }
}

static void add_item(rank_work *w, const tsr_item *item)
{
    const bool direct = w->plan->options.mode == TSR_MODE_DIRECT;
    add_transfers(w, item, &item->moves, item->src);
    add_reductions(w, item, direct);
    if (!direct)
        add_transfers(w, item, &item->given, item->dst);
    add_transfers(w, item, &item->relayed, item->dst);
    if (item->fills)
        w->seconds += tsr_profile_work_seconds(w->plan->measured, TSR_WORK_KEEP, TSR_RUN_WHOLE, w->touched,
                                               bytes_of_shard(item, item->dst_shape));
}

double tsr_work_seconds(const tsr_plan *plan)
{
    rank_work w = {.plan = plan};
    if (!plan->inside)
        return 0;
    for (size_t i = 0; i < plan->count; i++)
        w.touched += touched_by(&plan->items[i]);
    for (size_t i = 0; i < plan->count; i++)
        add_item(&w, &plan->items[i]);
    return w.seconds + tsr_profile_step_seconds(plan->measured, w.pieces);
}

/* Upper bound of the ranks of an item: its two meshes may share some. */
static int64_t ranks_of(const tsr_item *item)
{
    const int64_t before = tsr_mesh_count(item->src->mesh), after = tsr_mesh_count(item->dst->mesh);
    return item->problem.same_mesh ? before : before + after;
}

/* In message mode ranks meet once before each phase. In direct mode they meet before and after, and
 * before they hand round; once if eager. */
static int count_meetings(const tsr_plan *plan)
{
    if (plan->options.mode == TSR_MODE_MESSAGE)
        return 1 + plan->results + plan->shares;
    return plan->eager ? 1 : 2 + plan->shares;
}

static double meeting_seconds(const tsr_plan *plan)
{
    int64_t ranks = 1;
    if (plan->local)
        return 0;
    for (size_t i = 0; i < plan->count; i++)
        ranks = ranks_of(&plan->items[i]) > ranks ? ranks_of(&plan->items[i]) : ranks;
    return (double)count_meetings(plan) * tsr_profile_meeting_seconds(plan->measured, ranks);
}

double tsr_work_middle_seconds(const tsr_item *item, const tsr_plan *plan)
{
    return plan->measured ? tsr_profile_meeting_seconds(plan->measured, ranks_of(item)) : plan->profile.inside.latency;
}

double tsr_work_reduction_seconds(const tsr_item *item, const tsr_plan *plan, bool each)
{
    const bool direct = plan->options.mode == TSR_MODE_DIRECT;
    const double shard = (double)tsr_item_shard_bytes(item), terms = (double)item->problem.terms;
    const double owners = (double)tsr_side_count(&item->problem.dst, TSR_ROLE_FREE);
    const double touched = 2 * shard, share = each ? shard : shard / owners, written = !each && direct ? owners : 1;
    double seconds =
        tsr_profile_work_seconds(plan->measured, TSR_WORK_SUM, TSR_RUN_WHOLE, touched, (terms + written) * share);
    if (!each && !direct)
        seconds += tsr_profile_work_seconds(plan->measured, TSR_WORK_COPY, TSR_RUN_WHOLE, touched, shard - share) +
                   tsr_work_middle_seconds(item, plan);
    return seconds;
}

double tsr_work_plan_seconds(const tsr_plan *plan, double work, tsr_load inside, tsr_load between)
{
    if (!plan->measured)
        return tsr_cost_seconds(&plan->profile, inside, between);
    const double across = tsr_cost_seconds(&plan->profile, (tsr_load){0}, between),
                 within = work + meeting_seconds(plan);
    return within > across ? within : across;
}
