#include "tensor/experts/expert_routes.h"

#include "base/checked.h"
#include "tensor/experts/expert_ids.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* What does not fit: the first rank and expert, and how many there are; the same on all ranks,
 * which go through replicas in different orders. */
typedef struct lacks {
    int64_t ranks, experts;
    int64_t rows, room; /* of the first rank */
    int rank;
    int64_t expert_rows, expert; /* of the first expert */
} lacks;

void tsr_expert_count(tsr_experts_plan *plan, const tsr_tensor *ids)
{
    memset(plan->counts, 0, (size_t)plan->count * sizeof *plan->counts);
    for (int64_t token = 0; token < ids->shape[0]; token++)
        for (int64_t slot = 0; slot < plan->slots; slot++) {
            const int64_t id = tsr_expert_id(ids, token, slot);
            if (id >= 0)
                plan->counts[plan->numbers[id]]++;
        }
}

/* Adds up what the ranks of a replica have for each expert, in the order of ranks. In this rank's
 * replica, `next` becomes what the ranks before this one have. */
static void sum_replica(const tsr_experts_plan *plan, int replica)
{
    const int own =
        tsr_row_position(plan->table, plan->table->rows.own, plan->table->columns.own, plan->table->replicas.own);
    memset(plan->totals, 0, (size_t)plan->count * sizeof *plan->totals);
    for (int turn = 0; turn < plan->group->count; turn++) {
        const int position = plan->order[turn];
        if (plan->table->ranks[position].replica != replica)
            continue;
        if (position == own)
            memcpy(plan->next, plan->totals, (size_t)plan->count * sizeof *plan->next);
        for (int64_t n = 0; n < plan->count; n++)
            plan->totals[n] += plan->all_counts[position][n];
    }
}

static int64_t needed_by(const tsr_experts_plan *plan, int64_t part)
{
    int64_t rows = 0;
    for (int64_t n = plan->part_starts[part]; n < plan->part_starts[part + 1]; n++)
        rows += plan->totals[n];
    return rows;
}

/* Looks for what lacks room among the ranks of a replica, and the experts. */
static void find_lacks(const tsr_experts_plan *plan, int replica, lacks *out)
{
    const tsr_row_table *const table = plan->table;
    for (int64_t part = 0; part < table->rows.count; part++) {
        const int64_t rows = needed_by(plan, part);
        for (int64_t column = 0; column < table->columns.count; column++) {
            const int position = tsr_row_position(table, part, column, replica), rank = tsr_expert_rank(plan, position);
            if (rows <= plan->rooms[position])
                continue;
            if (out->ranks++ == 0 || rank < out->rank) {
                out->rank = rank;
                out->rows = rows;
                out->room = plan->rooms[position];
            }
        }
    }
    for (int64_t expert = 0; expert < plan->count; expert++) {
        const int64_t rows = plan->totals[plan->numbers[expert]];
        if (rows <= plan->expert_capacity)
            continue;
        if (out->experts++ == 0 || expert < out->expert || (expert == out->expert && rows > out->expert_rows)) {
            out->expert = expert;
            out->expert_rows = rows;
        }
    }
}

static tsr_status refuse(const tsr_experts_plan *plan, const char *call, const lacks *found)
{
    char more[64] = "";
    if (found->experts > 0) {
        if (found->experts > 1)
            snprintf(more, sizeof more, ", and %lld others too many", (long long)found->experts - 1);
        return tsr_status_set(TSR_ERROR_MEMORY,
                              "%s: expert %lld gets %lld rows%s: options.expert_capacity is %lld, and options.overflow "
                              "does not drop",
                              call, (long long)found->expert, (long long)found->expert_rows, more,
                              (long long)plan->expert_capacity);
    }
    if (found->ranks > 1)
        snprintf(more, sizeof more, "; %lld more %s room", (long long)found->ranks - 1,
                 found->ranks == 2 ? "rank lacks" : "ranks lack");
    return tsr_status_set(TSR_ERROR_MEMORY,
                          "%s: %lld rows come to rank %d, but its rows have room for %lld%s; give more, or let "
                          "options.overflow drop rows",
                          call, (long long)found->rows, found->rank, (long long)found->room, more);
}

/* The rows that all parts of the experts of `part` have room for. */
static int64_t room_of(const tsr_experts_plan *plan, int64_t part)
{
    int64_t room = INT64_MAX;
    for (int64_t column = 0; column < plan->table->columns.count; column++)
        room = tsr_min_i64(room, plan->rooms[tsr_expert_position(plan, part, column)]);
    return room;
}

static int64_t clamp(int64_t value, int64_t most)
{
    return tsr_max_i64(0, tsr_min_i64(value, most));
}

/* Sets `kept`, the rows that each expert keeps, and `offsets`: a slot that is the i-th of its
 * expert lies at row offset + i. By messages, that row counts from the first that this rank sends
 * to the part. */
static void place_experts(tsr_experts_plan *plan)
{
    for (int64_t part = 0; part < plan->table->rows.count; part++) {
        const int64_t room = room_of(plan, part);
        int64_t start = 0, sent = 0;
        for (int64_t n = plan->part_starts[part]; n < plan->part_starts[part + 1]; n++) {
            const int64_t first = plan->next[n], kept = tsr_min_i64(plan->totals[n], plan->expert_capacity);
            plan->kept[n] = tsr_min_i64(kept, room - start);
            plan->offsets[n] = plan->messages ? sent - first : start;
            start += plan->kept[n];
            sent += clamp(plan->kept[n] - first, plan->counts[n]);
        }
        plan->sent[part] = sent;
    }
}

/* Sets the rows of this rank's experts, and which of them each rank has sent. */
static void count_arrivals(tsr_experts_plan *plan)
{
    const int64_t begin = plan->part_starts[plan->table->rows.own];
    plan->received = 0;
    for (int64_t e = 0; e < plan->own_count; e++) {
        int64_t before = 0;
        plan->sizes[e] = plan->kept[begin + e];
        plan->received += plan->sizes[e];
        for (int turn = 0; turn < plan->group->count; turn++) {
            const int position = plan->order[turn];
            const int64_t count = tsr_expert_is_peer(plan, position) ? plan->all_counts[position][begin + e] : 0;
            plan->arrivals[position * plan->own_count + e] = clamp(plan->sizes[e] - before, count);
            before += count;
        }
    }
}

static void place_tokens(tsr_experts_plan *plan, const tsr_tensor *ids)
{
    tsr_expert_place *place = plan->places;
    plan->dropped = 0;
    for (int64_t token = 0; token < ids->shape[0]; token++)
        for (int64_t slot = 0; slot < plan->slots; slot++, place++) {
            const int64_t id = tsr_expert_id(ids, token, slot);
            place->row = -1;
            if (id < 0)
                continue;
            const int64_t n = plan->numbers[id], i = plan->next[n]++;
            place->part = plan->parts[n];
            if (i < plan->kept[n])
                place->row = plan->offsets[n] + i;
            else
                plan->dropped++;
        }
}

tsr_status tsr_expert_route(tsr_experts_plan *plan, const char *call, const tsr_tensor *ids)
{
    lacks found = {0};
    for (int replica = 0; replica < plan->table->replicas.count; replica++) {
        if (replica == plan->table->replicas.own)
            continue;
        sum_replica(plan, replica);
        find_lacks(plan, replica, &found);
    }
    /* The own replica's sums stay. */
    sum_replica(plan, (int)plan->table->replicas.own);
    find_lacks(plan, (int)plan->table->replicas.own, &found);
    plan->needed = needed_by(plan, plan->table->rows.own);
    if (plan->overflow == TSR_EXPERTS_FAIL && found.ranks + found.experts > 0)
        return refuse(plan, call, &found);
    place_experts(plan);
    count_arrivals(plan);
    place_tokens(plan, ids);
    plan->token_count = ids->shape[0];
    return TSR_OK;
}
