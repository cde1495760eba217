#include "redistribute/execute/prepare.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/settings.h"
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/lineage.h"
#include "comm/core/traits.h"
#include "mesh/mesh.h"
#include "redistribute/execute/execution.h"
#include "redistribute/execute/shelf.h"
#include "redistribute/match/confined.h"
#include "redistribute/schedule/collective.h"
#include "redistribute/schedule/plan_text.h"
#include "redistribute/schedule/ranks.h"

#include <tessera/sys/log.h>
#include <tessera/sys/status.h>

/* Lists all ranks of `mesh_count` meshes, ascending; refuses ranks that the communicator does not
 * have. The caller releases `*ranks`, also after an error. */
static tsr_status list_ranks(const tsr_mesh *const *meshes, size_t mesh_count, int comm_size, int **ranks, int *count)
{
    for (size_t i = 0; i < mesh_count; i++)
        if (tsr_mesh_count(meshes[i]) > comm_size)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "the plan's mesh has %lld ranks, but the communicator has only %d",
                                  (long long)tsr_mesh_count(meshes[i]), comm_size);
    TSR_TRY(tsr_ranks_of_meshes(meshes, mesh_count, ranks, count));
    const int highest = (*ranks)[*count - 1];
    if (highest < comm_size)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "the plan's mesh has rank %d, but the communicator has only ranks 0 to %d", highest,
                          comm_size - 1);
}

static tsr_status list_everybody(const tsr_plan *plan, int comm_size, int **ranks, int *count)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(plan->context, (size_t)comm_size, sizeof(int), &memory));
    *ranks = memory;
    for (*count = 0; *count < comm_size; ++*count)
        (*ranks)[*count] = *count;
    return TSR_OK;
}

/* Drops the ranks that are not in this rank's node. */
static void keep_mates(const tsr_comm *comm, int *ranks, int *count)
{
    const int all = *count, own = tsr_comm_node_of(comm, tsr_comm_rank(comm));
    *count = 0;
    for (int i = 0; i < all; i++)
        if (tsr_comm_node_of(comm, ranks[i]) == own)
            ranks[(*count)++] = ranks[i];
}

/* Lists the ranks of the plan's group: the ranks of its meshes; of these only this rank's node, for
 * a direct plan over a communicator that is not direct. With no_split, all ranks of the
 * communicator. */
static tsr_status list_plan_ranks(const tsr_plan *plan, const tsr_comm *comm, int **ranks, int *count)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(plan->context, 2 * plan->count, sizeof(tsr_mesh *), &memory));
    const tsr_mesh **meshes = memory;
    tsr_status status = list_ranks(meshes, tsr_plan_list_meshes(plan, meshes), tsr_comm_size(comm), ranks, count);
    tsr_release(plan->context, meshes);
    if (status == TSR_OK && plan->options.mode == TSR_MODE_DIRECT && !tsr_comm_is_direct(comm))
        keep_mates(comm, *ranks, count);
    if (status == TSR_OK && plan->options.no_split) {
        tsr_release(plan->context, *ranks);
        *ranks = NULL;
        status = list_everybody(plan, tsr_comm_size(comm), ranks, count);
    }
    return status;
}

/* The first rank of the mesh that is not the same rank of `common` in `a` as in `b`, which both
 * descend from `common`; -1: there is none. */
static int64_t find_other(const tsr_mesh *mesh, const tsr_comm *a, const tsr_comm *b, const tsr_comm *common)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        const int64_t rank = tsr_mesh_rank(mesh, coordinate);
        if (rank >= tsr_comm_size(a) || rank >= tsr_comm_size(b) ||
            tsr_comm_rank_in(a, (int)rank, common) != tsr_comm_rank_in(b, (int)rank, common))
            return rank;
    } while (tsr_grid_next(tsr_mesh_grid(mesh), coordinate));
    return -1;
}

static tsr_status refuse_comm(const tsr_plan *plan, const tsr_comm *comm, int64_t rank)
{
    return tsr_status_set(TSR_ERROR_STATE,
                          "the plan is over a communicator of %d ranks; rank %lld is not the same there as in the "
                          "communicator of %d ranks that "
                          "was passed: pass tsr_mesh_comm() of the mesh of tsr_plan_source() or tsr_plan_destination()",
                          tsr_comm_size(plan->comm), (long long)rank, tsr_comm_size(comm));
}

/* Communicators without a common ancestor, such as two engines' of the same processes, may number
 * ranks alike: only the caller knows. With a common ancestor all ranks of the meshes are compared,
 * once: `kin` then holds the number of the communicator that was found to fit. */
static tsr_status check_family(const tsr_plan *plan, const tsr_comm *comm)
{
    uint64_t *const kin = &plan->found->kin;
    const tsr_comm *const common = tsr_comm_common(plan->comm, (tsr_comm *)comm);
    if (!common || __atomic_load_n(kin, __ATOMIC_RELAXED) == tsr_comm_number(comm))
        return TSR_OK;
    for (size_t i = 0; i < 2 * plan->count; i++) {
        const tsr_item *const item = &plan->items[i / 2];
        const int64_t other = find_other(i % 2 ? item->dst->mesh : item->src->mesh, plan->comm, comm, common);
        if (other >= 0)
            return refuse_comm(plan, comm, other);
    }
    __atomic_store_n(kin, tsr_comm_number(comm), __ATOMIC_RELAXED);
    return TSR_OK;
}

static tsr_status refuse_rank(const tsr_plan *plan, const tsr_comm *comm)
{
    return tsr_status_set(TSR_ERROR_STATE,
                          "the plan is for rank %lld, but the communicator is that of rank %d: plan with options.rank, "
                          "or over a mesh of this communicator",
                          (long long)plan->options.rank, tsr_comm_rank(comm));
}

tsr_status tsr_plan_check_comm(const tsr_plan *plan, const tsr_comm *comm)
{
    if (plan->comm && plan->comm != comm)
        TSR_TRY(check_family(plan, comm));
    return plan->options.rank == tsr_comm_rank(comm) ? TSR_OK : refuse_rank(plan, comm);
}

static tsr_status check_comm(const tsr_plan *plan, const tsr_comm *comm)
{
    TSR_TRY(tsr_plan_check_comm(plan, comm));
    bool direct = true;
    for (size_t i = 0; i < plan->count && plan->options.mode == TSR_MODE_DIRECT && direct; i++)
        direct = tsr_move_is_direct(comm, plan->nodes, plan->options.no_split, plan->items[i].given_src,
                                    plan->items[i].given_dst);
    if (!direct)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "the plan reads peers' memory, which engine \"%s\" does not allow: plan with options.mode TSR_MODE_MESSAGE",
            tsr_comm_engine(comm));
    return TSR_OK;
}

/* All ranks of the communicator find the same, also the ranks that the plan leaves out. */
static tsr_status check_split(const tsr_comm *comm, int count)
{
    if (count == tsr_comm_size(comm) || tsr_comm_can_split(comm))
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "the plan needs a communicator of its %d ranks alone, but this one of %d ranks (\"%s\") is lent and may not be "
        "split: plan with tsr_plan_options.no_split 1, then all its ranks prepare and execute the plan",
        count, tsr_comm_size(comm), tsr_comm_engine(comm));
}

tsr_status tsr_mesh_agree(const tsr_mesh *mesh, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe,
                          const void *arg)
{
    tsr_comm *const comm = tsr_mesh_comm(mesh);
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_rank_set set = {NULL, 0};
    int *ranks = NULL;
    if (local == TSR_OK && tsr_mesh_locate(mesh, tsr_comm_rank(comm), coordinate)) {
        local = list_ranks(&mesh, 1, tsr_comm_size(comm), &ranks, &set.count);
        set = local == TSR_OK ? (tsr_rank_set){ranks, set.count} : (tsr_rank_set){NULL, 0};
    }
    const tsr_group_request request = {
        .set = set, .fingerprint = fingerprint, .local = local, .describe = describe, .arg = arg};
    tsr_group_answer answer;
    const tsr_status status = tsr_group_prepare(comm, &request, &answer);
    tsr_release(tsr_mesh_context(mesh), ranks);
    return status;
}

static void log_prepared(const tsr_plan *plan)
{
    char text[1024];
    if (tsr_context_settings(plan->context)->log_level < TSR_LOG_INFO)
        return;
    tsr_plan_describe_call(plan, text, sizeof text);
    tsr_log(plan->context, TSR_LOG_INFO, "rank %lld prepared: %s: receives %lld bytes, sends %lld, workspace %zu",
            (long long)plan->options.rank, text, (long long)tsr_plan_bytes_received(plan),
            (long long)tsr_plan_bytes_sent(plan), plan->workspace_bytes);
}

/* The plan's collective gets its groups within the plan's group. Ranks outside, which may have
 * other plans or none, are told whether that failed: else they would keep groups that the others do
 * not. What breaks in the engine is not told, for peers may not be there to hear it. */
static tsr_status prepare_native(const tsr_plan *plan, tsr_comm *comm, const tsr_group *group)
{
    if (!tsr_comm_has_natives(comm))
        return TSR_OK;
    const tsr_status local = tsr_native_prepare(plan, group);
    const bool all_know = group && group->count == tsr_comm_size(comm);
    if (all_know || (local != TSR_OK && local != TSR_ERROR_MEMORY && local != TSR_ERROR_PEER))
        return local;
    return tsr_comm_agree(comm, tsr_hash_text(TSR_HASH_SEED, "prepared"), local, tsr_plan_describe_call, plan);
}

/* What an execution needs of its group; every prepare finds the same. */
static tsr_holding_wanted size_up(const tsr_plan *plan, const tsr_comm *comm)
{
    const size_t scratch = tsr_scratch_divide(plan, NULL).bytes, shelf = tsr_shelf_bytes(plan);
    __atomic_store_n(&plan->found->scratch_bytes, scratch, __ATOMIC_RELAXED);
    __atomic_store_n(&plan->found->shelf_bytes, shelf, __ATOMIC_RELAXED);
    return (tsr_holding_wanted){scratch, tsr_comm_shares_some(comm) ? shelf : 0};
}

/* A rank that cannot take part with its own set takes part with an empty one, as failed: then no
 * rank gets a group. */
tsr_status tsr_plan_prepare_with(const tsr_plan *plan, tsr_comm *comm, tsr_status local, const tsr_group **group)
{
    int *ranks = NULL;
    tsr_rank_set set = {NULL, 0};
    if (local == TSR_OK)
        local = check_comm(plan, comm);
    if (local == TSR_OK && (tsr_plan_takes_part(plan) || !tsr_comm_can_split(comm))) {
        int count = 0;
        local = list_plan_ranks(plan, comm, &ranks, &count);
        if (local == TSR_OK)
            local = check_split(comm, count);
        if (local == TSR_OK && tsr_plan_takes_part(plan))
            set = (tsr_rank_set){ranks, count};
    }
    const tsr_holding_wanted wanted = plan ? size_up(plan, comm) : (tsr_holding_wanted){0, 0};
    const tsr_group_request request = {
        .set = set,
        .keeper = &tsr_holding_keeper,
        .wanted = &wanted,
        .fingerprint = plan ? plan->hash : 0,
        .rounds = plan ? plan->rounds : 0,
        .local = local,
        .describe = tsr_plan_describe_call,
        .arg = plan,
    };
    tsr_group_answer answer = {0};
    tsr_status status = tsr_group_prepare(comm, &request, &answer);
    if (status == TSR_OK)
        status = prepare_native(plan, comm, answer.group);
    if (status == TSR_OK && plan && set.count > 0) {
        __atomic_store_n(&plan->found->agreed_rounds, answer.rounds, __ATOMIC_RELAXED);
        __atomic_store_n(&plan->found->group_key, tsr_rank_set_hash(set), __ATOMIC_RELEASE);
    }
    if (plan)
        tsr_release(plan->context, ranks);
    TSR_TRY(status);
    log_prepared(plan);
    *group = answer.group;
    return TSR_OK;
}

/* A rank without a plan takes part as failed. */
tsr_status tsr_plan_prepare(const tsr_plan *plan, tsr_comm *comm)
{
    static const char call[] = "tsr_plan_prepare";
    const tsr_group *group;
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
    TSR_TRY(tsr_comm_enter(comm, call));
    const tsr_status local = plan ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: plan is NULL", call);
    return tsr_comm_leave(comm, tsr_plan_prepare_with(plan, comm, local, &group));
}
