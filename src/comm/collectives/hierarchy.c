#include "comm/collectives/hierarchy.h"

#include "base/checked.h"
#include "comm/collectives/collective.h"
#include "comm/collectives/native.h"

#include <string.h>

/* A round of a reduction takes as many elements of each part as fit SCRATCH_BYTES of scratch, but
 * at least LEAST_WIDTH. */
#define SCRATCH_BYTES ((int64_t)4 << 20)
#define LEAST_WIDTH   64

static int node_size(const tsr_hierarchy *h, int node)
{
    return h->starts[node + 1] - h->starts[node];
}

/* The deputy: the rank of node `node` that takes care of the part of rank `rank`, which lies on
 * another node. Members of the node are deputies of ranks of other nodes in turn. */
static int deputy_of(const tsr_hierarchy *h, int node, int rank)
{
    const int *members = h->members + h->starts[node];
    int before = 0;
    while (before < node_size(h, node) && members[before] < rank)
        before++;
    return members[(rank - before) % node_size(h, node)];
}

/* The keeper: the rank of this rank's node that takes care of the part of rank `rank`. That is
 * `rank` itself if it lies here, else its deputy. */
static int keeper_of(const tsr_hierarchy *h, int rank)
{
    return h->node[rank] == h->own ? rank : deputy_of(h, h->own, rank);
}

static tsr_traffic begin_traffic(tsr_comm *comm, const tsr_collective *call)
{
    return tsr_traffic_begin(comm, call, comm->hierarchy->messages, TSR_HIERARCHY_LIST * (size_t)comm->size);
}

/* Lists a message to every other rank of this rank's node. */
static void send_to_mates(tsr_traffic *t, const void *data, int64_t count)
{
    const tsr_hierarchy *h = t->comm->hierarchy;
    for (int i = h->starts[h->own]; i < h->starts[h->own + 1]; i++)
        tsr_traffic_send(t, h->members[i], data, 0, count);
}

static int64_t length_of(const tsr_hierarchy *h, int rank)
{
    return h->bounds[rank + 1] - h->bounds[rank];
}

/* First step of an all-gather: each rank sends its part to all ranks of its node, and to its deputy
 * in every other node. */
static tsr_status spread_own(tsr_comm *comm, const tsr_collective *call, const void *part)
{
    const tsr_hierarchy *h = comm->hierarchy;
    tsr_traffic t = begin_traffic(comm, call);
    send_to_mates(&t, part, length_of(h, comm->rank));
    for (int k = 0; k < h->count; k++)
        if (k != h->own)
            tsr_traffic_send(&t, deputy_of(h, k, comm->rank), part, 0, length_of(h, comm->rank));
    for (int r = 0; r < comm->size; r++)
        if (h->node[r] == h->own || deputy_of(h, h->own, r) == comm->rank)
            tsr_traffic_receive(&t, r, tsr_element(call, call->receive, h->bounds[r]), 0, length_of(h, r));
    return tsr_traffic_deliver(&t);
}

/* Second step of an all-gather: each deputy sends the parts that it has received to all ranks of
 * its node, in rank order. */
static tsr_status hand_round(tsr_comm *comm, const tsr_collective *call)
{
    const tsr_hierarchy *h = comm->hierarchy;
    tsr_traffic t = begin_traffic(comm, call);
    for (int r = 0; r < comm->size; r++) {
        void *part = tsr_element(call, call->receive, h->bounds[r]);
        if (h->node[r] == h->own)
            continue;
        const int deputy = deputy_of(h, h->own, r);
        if (deputy == comm->rank)
            send_to_mates(&t, part, length_of(h, r));
        else
            tsr_traffic_receive(&t, deputy, part, 0, length_of(h, r));
    }
    return tsr_traffic_deliver(&t);
}

tsr_status tsr_hierarchy_all_gather(tsr_comm *comm, const tsr_collective *call, const void *part)
{
    const tsr_hierarchy *h = comm->hierarchy;
    TSR_TRY(spread_own(comm, call, part));
    TSR_TRY(hand_round(comm, call));
    return tsr_collective_copy(call, tsr_element(call, call->receive, h->bounds[comm->rank]), part,
                               length_of(h, comm->rank));
}

/* The root sends to all ranks of its node and to its deputy in every other node; then each deputy
 * sends to all ranks of its node. */
tsr_status tsr_hierarchy_broadcast(tsr_comm *comm, const tsr_collective *call)
{
    const tsr_hierarchy *h = comm->hierarchy;
    const bool apart = h->node[call->root] != h->own;
    const int deputy = keeper_of(h, call->root), from = apart && comm->rank != deputy ? deputy : call->root;
    tsr_traffic t = begin_traffic(comm, call);
    if (comm->rank == call->root)
        send_to_mates(&t, call->send, call->count);
    for (int k = 0; k < h->count && comm->rank == call->root; k++)
        if (k != h->own)
            tsr_traffic_send(&t, deputy_of(h, k, call->root), call->send, 0, call->count);
    if (from == call->root)
        tsr_traffic_receive(&t, from, call->receive, 0, call->count);
    TSR_TRY(tsr_traffic_deliver(&t));
    t = begin_traffic(comm, call);
    if (apart && comm->rank == deputy)
        send_to_mates(&t, call->receive, call->count);
    if (from != call->root)
        tsr_traffic_receive(&t, from, call->receive, 0, call->count);
    return tsr_traffic_deliver(&t);
}

void tsr_hierarchy_divide(tsr_comm *comm, const tsr_collective *call)
{
    int64_t *bounds = comm->hierarchy->bounds;
    bounds[0] = 0;
    for (int r = 0; r < comm->size; r++)
        bounds[r + 1] = bounds[r] + tsr_part_count(call, r);
}

void tsr_hierarchy_divide_by_shares(tsr_comm *comm, const tsr_collective *call)
{
    int64_t *bounds = comm->hierarchy->bounds;
    bounds[0] = 0;
    for (int r = 0; r < comm->size; r++)
        bounds[r + 1] = tsr_share_of(comm, call, r).end;
}

/* Slots of scratch that suffice on every rank. A rank of a node with m ranks keeps its own part and
 * one in m of the parts of other nodes' ranks, and each takes m slots, one of them for the result.
 * Every other node sends one sum more. */
static int64_t count_slots(const tsr_comm *comm)
{
    const tsr_hierarchy *h = comm->hierarchy;
    return (int64_t)comm->size + h->most + h->count;
}

static int64_t longest_part(const tsr_comm *comm)
{
    int64_t longest = 0;
    for (int r = 0; r < comm->size; r++)
        longest = tsr_max_i64(longest, length_of(comm->hierarchy, r));
    return longest;
}

/* Elements of each part that a round takes. */
static int64_t width_of(const tsr_comm *comm, const tsr_collective *call)
{
    const int64_t width = SCRATCH_BYTES / (count_slots(comm) * (int64_t)call->bytes);
    return tsr_min_i64(tsr_max_i64(width, LEAST_WIDTH), longest_part(comm));
}

size_t tsr_hierarchy_most_scratch_bytes(int ranks, int64_t longest, size_t element_bytes)
{
    const int64_t slots = 3 * (int64_t)ranks, narrow = slots * LEAST_WIDTH * (int64_t)element_bytes;
    const int64_t most = tsr_max_i64(SCRATCH_BYTES, narrow);
    int64_t all;
    if (!tsr_multiply(longest, slots * (int64_t)element_bytes, &all))
        return (size_t)most;
    return (size_t)tsr_min_i64(all, most);
}

bool tsr_hierarchy_serves(const tsr_comm *comm, const tsr_collective *call)
{
    return comm->hierarchy && !call->device.driver && (!call->operation->reduces || tsr_native_is_exact(call->dtype));
}

size_t tsr_hierarchy_scratch_bytes(const tsr_comm *comm, const tsr_collective *call)
{
    return (size_t)(count_slots(comm) * width_of(comm, call)) * call->bytes;
}

/* The elements of each part that one round takes: at most `width`, from element `begin` on. */
typedef struct window {
    int64_t begin, width;
} window;

static int64_t seen(const tsr_hierarchy *h, const window *w, int rank)
{
    return tsr_min_i64(w->width, tsr_max_i64(length_of(h, rank) - w->begin, 0));
}

static void *slot_of(const tsr_collective *call, const window *w, int64_t slot)
{
    return tsr_element(call, call->scratch, slot * w->width);
}

static void *given(const tsr_hierarchy *h, const tsr_collective *call, const window *w, int rank)
{
    return tsr_element(call, call->send, h->bounds[rank] + w->begin);
}

/* Every rank sends its terms of each part to the part's keeper in its node. The keeper receives
 * them in slots 1 to m - 1 of the part's m slots; its own terms stay where they are. */
static tsr_status collect_terms(tsr_comm *comm, const tsr_collective *call, const window *w)
{
    const tsr_hierarchy *h = comm->hierarchy;
    tsr_traffic t = begin_traffic(comm, call);
    int64_t slot = 0;
    for (int r = 0; r < comm->size; r++) {
        const int keeper = keeper_of(h, r);
        tsr_traffic_send(&t, keeper, given(h, call, w, r), 0, seen(h, w, r));
        for (int i = h->starts[h->own]; i < h->starts[h->own + 1] && keeper == comm->rank; i++)
            if (h->members[i] != comm->rank)
                tsr_traffic_receive(&t, h->members[i], slot_of(call, w, ++slot), 0, seen(h, w, r));
        slot += keeper == comm->rank;
    }
    return tsr_traffic_deliver(&t);
}

static tsr_status reduce_sources(tsr_comm *comm, const tsr_collective *call, int terms, int64_t divisor, void *to,
                                 int64_t count)
{
    if (count == 0)
        return TSR_OK;
    const tsr_box_reduce request = {
        .dtype = call->dtype,
        .op = call->op,
        .divisor = divisor,
        .ndim = 1,
        .shape = {count},
        .src_count = terms,
        .dst_count = 1,
        .src = comm->sources,
        .src_strides = call->ones,
        .dst = &to,
        .dst_strides = call->ones,
    };
    return call->ops.table->reduce(call->ops.self, call->ops.index, &request, call->stream);
}

/* Reduces this node's terms of each part that this rank keeps, into slot 0 of the part. */
static tsr_status reduce_terms(tsr_comm *comm, const tsr_collective *call, const window *w)
{
    const tsr_hierarchy *h = comm->hierarchy;
    const int mates = node_size(h, h->own);
    int64_t slot = 0;
    for (int r = 0; r < comm->size; r++) {
        if (keeper_of(h, r) != comm->rank)
            continue;
        int64_t term = slot;
        for (int place = 0; place < mates; place++)
            comm->sources[place] = place == h->place ? given(h, call, w, r) : slot_of(call, w, ++term);
        TSR_TRY(reduce_sources(comm, call, mates, 1, slot_of(call, w, slot), seen(h, w, r)));
        slot += mates;
    }
    return TSR_OK;
}

/* Sends this node's sum of each part to the rank whose part it is. This rank receives other nodes'
 * sums, in the order of nodes, in slots from `*sums` on, behind those of the parts that it keeps.
 * `*own`: the slot of its node's sum of its own part. */
static tsr_status collect_sums(tsr_comm *comm, const tsr_collective *call, const window *w, int64_t *own, int64_t *sums)
{
    const tsr_hierarchy *h = comm->hierarchy;
    tsr_traffic t = begin_traffic(comm, call);
    int64_t slot = 0;
    for (int r = 0; r < comm->size; r++) {
        if (keeper_of(h, r) != comm->rank)
            continue;
        if (r == comm->rank)
            *own = slot;
        tsr_traffic_send(&t, r, slot_of(call, w, slot), 0, seen(h, w, r));
        slot += node_size(h, h->own);
    }
    *sums = slot;
    for (int k = 0; k < h->count; k++)
        if (k != h->own)
            tsr_traffic_receive(&t, deputy_of(h, k, comm->rank), slot_of(call, w, slot++), 0, seen(h, w, comm->rank));
    return tsr_traffic_deliver(&t);
}

static tsr_status reduce_sums(tsr_comm *comm, const tsr_collective *call, const window *w, int64_t own, int64_t sums,
                              void *part)
{
    const tsr_hierarchy *h = comm->hierarchy;
    for (int k = 0; k < h->count; k++)
        comm->sources[k] = slot_of(call, w, k == h->own ? own : sums++);
    return reduce_sources(comm, call, h->count, call->op == TSR_AVG ? comm->size : 1, tsr_element(call, part, w->begin),
                          seen(h, w, comm->rank));
}

tsr_status tsr_hierarchy_reduce_scatter(tsr_comm *comm, const tsr_collective *call, void *part, tsr_status *local)
{
    const int64_t longest = longest_part(comm);
    for (window w = {0, width_of(comm, call)}; w.begin < longest; w.begin += w.width) {
        int64_t own = 0, sums = 0;
        TSR_TRY(collect_terms(comm, call, &w));
        if (*local == TSR_OK)
            *local = reduce_terms(comm, call, &w);
        TSR_TRY(collect_sums(comm, call, &w, &own, &sums));
        if (*local == TSR_OK)
            *local = reduce_sums(comm, call, &w, own, sums, part);
    }
    return TSR_OK;
}
