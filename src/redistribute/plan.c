#include "redistribute/plan.h"

#include <limits.h>
#include <string.h>

#include <tessera/sys/status.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sort.h"
#include "base/text.h"
#include "comm/call.h"
#include "mesh/geometry.h"
#include "redistribute/build.h"
#include "redistribute/staging.h"

/* Up to here every owner of a sum of two terms reduces for itself in direct mode; beyond, halves that are given to the other cost less. */
#define EACH_BYTES ((size_t)32 * 1024)

static tsr_status check_layouts(const tsr_layout *src, const tsr_layout *dst, bool has_out)
{
    if (!src || !dst || !has_out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_create: %s is NULL", !src ? "src" : !dst ? "dst" : "out");
    if (src->dtype == dst->dtype && src->ndim == dst->ndim && memcmp(src->shape, dst->shape, sizeof src->shape) == 0)
        return TSR_OK;
    char a[512], b[512];
    return tsr_status_set(TSR_ERROR_ARGUMENT, "a plan from %s to %s: both must have the same global shape and dtype",
                          tsr_layout_describe(src, a, sizeof a), tsr_layout_describe(dst, b, sizeof b));
}

static tsr_status check_options(const tsr_plan_options *options)
{
    if (options->rank < TSR_RANK_DEFAULT || options->rank > INT_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_options.rank is %lld: a rank, TSR_RANK_NONE or TSR_RANK_DEFAULT is needed",
                              (long long)options->rank);
    if (options->mode != TSR_MODE_DIRECT && options->mode != TSR_MODE_MESSAGE)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_options.mode is %d: TSR_MODE_DIRECT or TSR_MODE_MESSAGE is needed",
                              (int)options->mode);
    return TSR_OK;
}

/* The communicator that a plan's meshes speak of; NULL if both are abstract. */
static const tsr_comm *own_comm(const tsr_layout *src, const tsr_layout *dst)
{
    return tsr_mesh_comm(src->mesh) ? tsr_mesh_comm(src->mesh) : tsr_mesh_comm(dst->mesh);
}

static int64_t pick_rank(const tsr_layout *src, const tsr_layout *dst, const tsr_plan_options *options)
{
    if (options->rank != TSR_RANK_DEFAULT)
        return options->rank;
    const tsr_comm *comm = own_comm(src, dst);
    return comm ? tsr_comm_rank(comm) : TSR_RANK_NONE;
}

static tsr_mode pick_mode(const tsr_layout *src, const tsr_layout *dst, const tsr_plan_options *options)
{
    const tsr_comm *comm = own_comm(src, dst);
    if (comm && !tsr_comm_is_direct(comm))
        return TSR_MODE_MESSAGE;
    return options->mode;
}

static void locate(tsr_plan *plan)
{
    if (plan->rank < 0)
        return;
    plan->in_src = tsr_mesh_locate(plan->src->mesh, plan->rank, plan->src_coordinate);
    plan->in_dst = tsr_mesh_locate(plan->dst->mesh, plan->rank, plan->dst_coordinate);
    plan->src_ndim = tsr_layout_local_shape(plan->src, plan->in_src ? plan->src_coordinate : NULL, plan->src_shape);
    plan->dst_ndim = tsr_layout_local_shape(plan->dst, plan->in_dst ? plan->dst_coordinate : NULL, plan->dst_shape);
}

/* Transfers of one peer stay in the order in which both sides found them. */
static int by_peer(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_transfer *x = a, *y = b;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return x->first_box < y->first_box ? -1 : x->first_box > y->first_box;
}

static void reverse(tsr_transfer *at, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        const tsr_transfer moved = at[i];
        at[i] = at[count - 1 - i];
        at[count - 1 - i] = moved;
    }
}

/* This rank itself first, then the ranks after it, so that no peer is everybody's first. */
static void rotate(tsr_transfers *transfers, int64_t rank)
{
    if (transfers->count == 0)
        return;
    tsr_sort(transfers->at, transfers->count, sizeof *transfers->at, by_peer, NULL);
    size_t before = 0;
    while (before < transfers->count && transfers->at[before].peer < rank)
        before++;
    reverse(transfers->at, before);
    reverse(transfers->at + before, transfers->count - before);
    reverse(transfers->at, transfers->count);
}

/* A second step costs more than reading the other term twice while that is small, or comes as a message. The same on every rank. */
static bool each_is_faster(const tsr_plan *plan)
{
    const int64_t first[TSR_MAX_DIMS] = {0};
    size_t bytes;
    return plan->mode == TSR_MODE_MESSAGE || (tsr_layout_local_bytes(plan->dst, first, &bytes) == TSR_OK && bytes <= EACH_BYTES);
}

/* The same on every rank: the whole tensor fits, so every shard does. */
static bool is_eager(const tsr_plan *plan)
{
    int64_t bytes = (int64_t)plan->src->element_bytes;
    for (int dim = 0; dim < plan->src->ndim; dim++)
        bytes *= plan->src->shape[dim];
    return plan->mode == TSR_MODE_DIRECT && !plan->problem.local && !tsr_plan_has_results(plan) && bytes <= TSR_CALL_BUFFER_BYTES;
}

static tsr_status build(tsr_plan *plan)
{
    tsr_problem_init(&plan->problem, plan->src, plan->dst);
    plan->problem.each = tsr_problem_each_is_free(&plan->problem) && each_is_faster(plan);
    plan->eager = is_eager(plan);
    locate(plan);
    plan->hash = tsr_hash_word(tsr_hash_word(tsr_hash_word(TSR_HASH_SEED, plan->src->hash), plan->dst->hash), (uint64_t)plan->mode);
    if (plan->rank < 0)
        return TSR_OK;
    TSR_TRY(tsr_build_receives(plan));
    TSR_TRY(tsr_build_sends(plan));
    rotate(&plan->moves, plan->rank);
    rotate(&plan->sends, plan->rank);
    rotate(&plan->results, plan->rank);
    tsr_staging_measure(plan);
    return TSR_OK;
}

tsr_status tsr_plan_create(const tsr_layout *src, const tsr_layout *dst, const tsr_plan_options *given, tsr_plan **out)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    TSR_TRY(check_layouts(src, dst, out != NULL));
    TSR_TRY(tsr_options_read("tsr_plan_create", given, &options, sizeof options));
    TSR_TRY(check_options(&options));
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(src->context, sizeof(tsr_plan), &memory));
    tsr_plan *plan = memory;
    plan->references = 1;
    plan->context = tsr_context_retain(src->context);
    plan->src = tsr_layout_retain((tsr_layout *)src);
    plan->dst = tsr_layout_retain((tsr_layout *)dst);
    plan->mode = pick_mode(src, dst, &options);
    plan->rank = pick_rank(src, dst, &options);
    const tsr_status status = build(plan);
    if (status != TSR_OK) {
        tsr_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TSR_OK;
}

tsr_plan *tsr_plan_retain(tsr_plan *plan)
{
    if (plan)
        __atomic_fetch_add(&plan->references, 1, __ATOMIC_RELAXED);
    return plan;
}

void tsr_plan_destroy(tsr_plan *plan)
{
    if (!plan || __atomic_fetch_sub(&plan->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    tsr_context *context = plan->context;
    tsr_release(context, plan->boxes);
    tsr_release(context, plan->moves.at);
    tsr_release(context, plan->sends.at);
    tsr_release(context, plan->results.at);
    tsr_release(context, plan->reductions);
    tsr_release(context, plan->contributors);
    tsr_release(context, plan->owners);
    tsr_layout_destroy(plan->src);
    tsr_layout_destroy(plan->dst);
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

const tsr_layout *tsr_plan_source(const tsr_plan *plan)
{
    return plan->src;
}

const tsr_layout *tsr_plan_destination(const tsr_plan *plan)
{
    return plan->dst;
}

size_t tsr_plan_workspace_bytes(const tsr_plan *plan)
{
    return plan->workspace_bytes;
}

int64_t tsr_plan_bytes_received(const tsr_plan *plan)
{
    return (plan->moves.elements + plan->results.elements + plan->term_elements) * (int64_t)plan->src->element_bytes;
}

int64_t tsr_plan_bytes_sent(const tsr_plan *plan)
{
    return (plan->sends.elements + plan->result_elements) * (int64_t)plan->src->element_bytes;
}

int tsr_plan_in_place(const tsr_plan *plan)
{
    return plan->problem.in_place;
}

void tsr_plan_describe_call(const void *arg, char *buffer, size_t capacity)
{
    const tsr_plan *plan = arg;
    char src[512], dst[512];
    tsr_text text = {buffer, capacity, 0};
    tsr_text_append(&text, "redistribute %s -> %s, %s", tsr_layout_describe(plan->src, src, sizeof src),
                    tsr_layout_describe(plan->dst, dst, sizeof dst), plan->mode == TSR_MODE_DIRECT ? "direct" : "by messages");
}
