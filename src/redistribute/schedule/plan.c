#include "redistribute/schedule/plan.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/links.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "base/profile.h"
#include "base/settings.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"
#include "comm/groups/group.h"
#include "mesh/mesh.h"
#include "placement/print.h"
#include "redistribute/match/common_comm.h"
#include "redistribute/match/confined.h"
#include "redistribute/schedule/item.h"
#include "redistribute/schedule/messages.h"
#include "redistribute/schedule/sizes.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <string.h>

static tsr_status check_layouts(const char *call, const tsr_layout *src, const tsr_layout *dst)
{
    if (!src || !dst)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, !src ? "src" : "dst");
    if (tsr_layout_same_tensor(src, dst))
        return TSR_OK;
    char a[512], b[512];
    return tsr_status_set(TSR_ERROR_ARGUMENT, "a plan from %s to %s: both must have the same global shape and dtype",
                          tsr_layout_describe(src, a, sizeof a), tsr_layout_describe(dst, b, sizeof b));
}

static tsr_status check_choice(const char *name, int value, int last, const char *choices)
{
    if (value >= 0 && value <= last)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_options.%s is %d: %s is needed", name, value, choices);
}

static tsr_status check_options(const tsr_plan_options *options)
{
    if (options->rank < TSR_RANK_DEFAULT || options->rank > INT_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_plan_options.rank is %lld: a rank, TSR_RANK_NONE or TSR_RANK_DEFAULT is needed",
                              (long long)options->rank);
    TSR_TRY(check_choice("mode", (int)options->mode, TSR_MODE_MESSAGE, "TSR_MODE_DIRECT or TSR_MODE_MESSAGE"));
    TSR_TRY(check_choice("objective", (int)options->objective, TSR_OBJECTIVE_TIME,
                         "TSR_OBJECTIVE_BYTES or TSR_OBJECTIVE_TIME"));
    TSR_TRY(check_choice("no_split", options->no_split, 1, "0 or 1"));
    TSR_TRY(check_choice("reduction", (int)options->reduction, TSR_REDUCTION_ANY_ORDER,
                         "TSR_REDUCTION_RANK_ORDER or TSR_REDUCTION_ANY_ORDER"));
    return TSR_OK;
}

static int64_t pick_rank(const tsr_comm *comm, const tsr_plan_options *options)
{
    if (options->rank != TSR_RANK_DEFAULT)
        return options->rank;
    return comm ? tsr_comm_rank(comm) : TSR_RANK_NONE;
}

static tsr_mode pick_mode(const tsr_common_layouts *layouts, const tsr_plan_options *options, const tsr_node_map *nodes)
{
    if (!layouts->comm || options->mode != TSR_MODE_DIRECT)
        return options->mode;
    for (size_t i = 0; i < layouts->count; i++)
        if (!tsr_move_is_direct(layouts->comm, nodes, options->no_split, layouts->src[i], layouts->dst[i]))
            return TSR_MODE_MESSAGE;
    return TSR_MODE_DIRECT;
}

/* Refuses a plan whose bytes, of all items together, are more than the figures of an execution can
 * count. */
static tsr_status check_total(const tsr_plan *plan)
{
    int64_t total = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_item *item = &plan->items[i];
        const int64_t element = (int64_t)item->src->element_bytes;
        const int64_t crossing[] = {item->moves.elements, item->sends.elements,   item->given.elements,
                                    item->gives.elements, item->relayed.elements, item->relays.elements,
                                    item->term_elements};
        for (size_t k = 0; k < sizeof crossing / sizeof *crossing; k++)
            if (!tsr_add_sizes(total, crossing[k] * element, &total) || total > INT64_C(1) << 62)
                return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %lld would receive and send more than 2^62 bytes",
                                      plan->meter.call, (long long)plan->options.rank);
    }
    return TSR_OK;
}

/* Hashes only what is the same on every rank. */
static uint64_t hash_plan(const tsr_plan *plan)
{
    const tsr_plan_options *o = &plan->options;
    const uint64_t words[] = {(uint64_t)o->mode,     (uint64_t)o->objective,
                              o->max_workspace,      plan->nodes ? plan->nodes->hash : 0,
                              (uint64_t)o->no_split, (uint64_t)o->reduction};
    uint64_t hash = TSR_HASH_SEED;
    for (size_t i = 0; i < plan->count; i++)
        hash = tsr_hash_word(tsr_hash_word(hash, plan->items[i].given_src->hash), plan->items[i].given_dst->hash);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = tsr_hash_word(hash, words[i]);
    const double costs[] = {plan->profile.inside.latency, plan->profile.inside.bandwidth, plan->profile.between.latency,
                            plan->profile.between.bandwidth};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        uint64_t bits;
        memcpy(&bits, &costs[i], sizeof bits);
        hash = tsr_hash_word(hash, bits);
    }
    return plan->measured ? tsr_hash_word(hash, plan->measured->hash) : hash;
}

static void sum_up(tsr_plan *plan)
{
    plan->local = true;
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_item *item = &plan->items[i];
        plan->inside |= item->in_src || item->in_dst;
        plan->local &= item->problem.local;
        plan->results |= item->results;
        plan->shares |= item->shares;
        plan->fills |= item->fills;
        plan->workspace_bytes += tsr_item_staged_bytes(item);
    }
    /* Not with no_split: ranks that have no tensors take part then, and do not know whether the
     * tensors are on the host. */
    plan->eager = plan->count == 1 && !plan->options.no_split && tsr_item_is_eager(&plan->items[0], plan->options.mode);
    plan->hash = hash_plan(plan);
}

/* Gives the workspace room for the mail or for the engine's own collective: prepare finds out which
 * of the two is used. */
static void widen_workspace(tsr_plan *plan)
{
    const size_t bytes = plan->items[0].native.workspace_bytes;
    plan->workspace_bytes = plan->workspace_bytes < bytes ? bytes : plan->workspace_bytes;
}

static tsr_status build(tsr_plan *plan, const char *call, const tsr_layout *const *src, const tsr_layout *const *dst)
{
    plan->host = tsr_device_resolve(plan->context, tsr_device_host());
    plan->meter = tsr_meter_of(call, src[0], dst[0]);
    for (size_t i = 0; i < plan->count; i++) {
        plan->meter.from = src[i];
        plan->meter.to = dst[i];
        TSR_TRY(tsr_item_build(&plan->items[i], plan, src[i], dst[i]));
    }
    TSR_TRY(check_total(plan));
    sum_up(plan);
    TSR_TRY(tsr_small_build(plan));
    if (plan->options.mode == TSR_MODE_MESSAGE && !plan->local && plan->options.rank >= 0)
        TSR_TRY(tsr_mail_build(plan));
    widen_workspace(plan);
    return TSR_OK;
}

/* The nodes of the options, or else those that a mesh knows; an owned reference. NULL: not
 * known. */
static tsr_status pick_nodes(const tsr_layout *src, const tsr_layout *dst, const tsr_plan_options *options,
                             tsr_node_map **out)
{
    TSR_TRY(tsr_node_map_create("tsr_plan_options.nodes", src->context, &options->nodes, out));
    if (!*out)
        *out = tsr_node_map_retain(tsr_mesh_node_map(src->mesh) ? tsr_mesh_node_map(src->mesh)
                                                                : tsr_mesh_node_map(dst->mesh));
    return TSR_OK;
}

/* Refuses nodes that are listed, but not for all ranks of the layouts' meshes. */
static tsr_status check_nodes(const tsr_nodes *nodes, size_t count, const tsr_layout *const *layouts)
{
    for (size_t i = 0; i < count; i++) {
        int64_t lowest, highest;
        tsr_grid_ends(tsr_mesh_grid(layouts[i]->mesh), &lowest, &highest);
        TSR_TRY(tsr_nodes_check_ranks("tsr_plan_options.nodes, or those that the first mesh knows,", nodes, highest));
    }
    return TSR_OK;
}

/* A measured profile comes before links, and the options' profile before the context's. */
static void take_profile(tsr_plan *plan, const tsr_plan_options *options)
{
    const tsr_settings *settings = tsr_context_settings(plan->context);
    tsr_profile *measured = options->measured || options->profile ? options->measured : settings->measured;
    if (measured && tsr_profile_has_tables(measured))
        plan->measured = tsr_profile_retain(measured);
    if (measured)
        plan->profile = tsr_profile_links(measured);
    else
        plan->profile = options->profile ? *options->profile : settings->profile;
}

/* Takes the options, in which the mode has been picked, and picks rank, nodes and profile. */
static tsr_status take_options(tsr_plan *plan, const tsr_plan_options *options, tsr_node_map *nodes)
{
    plan->options = *options;
    plan->options.rank = pick_rank(plan->comm, options);
    plan->streams = plan->comm && tsr_comm_has_streams(plan->comm);
    plan->nodes = tsr_node_map_retain(nodes);
    plan->options.nodes = tsr_node_map_value(nodes);
    take_profile(plan, options);
    plan->options.profile = NULL;
    plan->options.measured = NULL;
    return tsr_profile_check("tsr_plan_options.profile", &plan->profile);
}

static tsr_status make_plan(const char *call, const tsr_common_layouts *layouts, const tsr_plan_options *options,
                            tsr_node_map *nodes, tsr_plan **out)
{
    void *memory, *items;
    tsr_context *context = layouts->src[0]->context;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof(tsr_plan) + sizeof(tsr_plan_findings), &memory));
    tsr_plan *plan = memory;
    plan->found = (tsr_plan_findings *)(plan + 1);
    plan->references = 1;
    plan->context = tsr_context_retain(context);
    plan->comm = layouts->comm;
    tsr_status status = tsr_allocate_array(context, layouts->count, sizeof(tsr_item), &items);
    if (status == TSR_OK) {
        plan->items = items;
        plan->count = layouts->count;
        for (size_t i = 0; i < plan->count; i++)
            plan->items[i] = (tsr_item){.context = context, .meter = &plan->meter};
        status = take_options(plan, options, nodes);
    }
    if (status == TSR_OK)
        status = build(plan, call, layouts->src, layouts->dst);
    if (status != TSR_OK) {
        tsr_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TSR_OK;
}

static tsr_status create_over_one(const char *call, const tsr_common_layouts *layouts, const tsr_plan_options *given,
                                  tsr_plan **out)
{
    tsr_plan_options options = *given;
    tsr_node_map *nodes;
    TSR_TRY(pick_nodes(layouts->src[0], layouts->dst[0], &options, &nodes));
    const tsr_nodes said = options.nodes.count > 0 ? options.nodes : tsr_node_map_value(nodes);
    tsr_status status = check_nodes(&said, layouts->count, layouts->src);
    if (status == TSR_OK)
        status = check_nodes(&said, layouts->count, layouts->dst);
    if (status == TSR_OK) {
        options.mode = pick_mode(layouts, &options, nodes);
        status = make_plan(call, layouts, &options, nodes, out);
    }
    tsr_node_map_destroy(nodes);
    return status;
}

tsr_status tsr_plan_create_for(const char *call, size_t count, const tsr_layout *const *src,
                               const tsr_layout *const *dst, const tsr_plan_options *given, tsr_plan **out)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    for (size_t i = 0; i < count; i++)
        TSR_TRY(check_layouts(call, src[i], dst[i]));
    TSR_TRY(tsr_options_read(call, given, &options, sizeof options));
    TSR_TRY(check_options(&options));
    tsr_common_layouts layouts;
    tsr_status status = tsr_common_layouts_find(call, count, src, dst, &layouts);
    if (status == TSR_OK)
        status = create_over_one(call, &layouts, &options, out);
    tsr_common_layouts_free(&layouts);
    return status;
}

tsr_status tsr_plan_create_like(const char *call, const tsr_plan *plan, const tsr_layout *const *src,
                                const tsr_layout *const *dst, int64_t rank, tsr_plan **out)
{
    const tsr_common_layouts layouts = {
        .comm = plan->comm, .src = src, .dst = dst, .context = plan->context, .count = plan->count};
    tsr_plan_options options = plan->options;
    options.rank = rank;
    options.profile = &plan->profile;
    options.measured = plan->measured;
    return make_plan(call, &layouts, &options, plan->nodes, out);
}

tsr_status tsr_plan_create(const tsr_layout *src, const tsr_layout *dst, const tsr_plan_options *options,
                           tsr_plan **out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_create: out is NULL");
    return tsr_plan_create_for("tsr_plan_create", 1, &src, &dst, options, out);
}

tsr_status tsr_plan_create_batch(size_t count, const tsr_layout *const *src, const tsr_layout *const *dst,
                                 const tsr_plan_options *options, tsr_plan **out)
{
    if (count == 0 || !src || !dst || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_create_batch: %s",
                              count == 0 ? "count is 0; a batch has at least one tensor"
                              : !src     ? "src is NULL"
                              : !dst     ? "dst is NULL"
                                         : "out is NULL");
    return tsr_plan_create_for("tsr_plan_create_batch", count, src, dst, options, out);
}

tsr_plan *tsr_plan_retain(tsr_plan *plan)
{
    if (plan)
        tsr_references_add(&plan->references);
    return plan;
}

void tsr_plan_destroy(tsr_plan *plan)
{
    if (!plan || !tsr_references_drop(&plan->references))
        return;
    tsr_context *context = plan->context;
    for (size_t i = 0; i < plan->count; i++)
        tsr_item_free(&plan->items[i]);
    tsr_mail_free(plan);
    tsr_small_free(plan);
    tsr_node_map_destroy(plan->nodes);
    tsr_profile_destroy(plan->measured);
    tsr_release(context, plan->items);
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

size_t tsr_plan_count(const tsr_plan *plan)
{
    return plan->count;
}

tsr_status tsr_plan_layouts(const tsr_plan *plan, size_t item, const tsr_layout **src, const tsr_layout **dst)
{
    if (!plan || !src || !dst)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_layouts: %s is NULL",
                              !plan  ? "plan"
                              : !src ? "src"
                                     : "dst");
    if (item >= plan->count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_layouts: item is %zu, but the plan has %zu", item,
                              plan->count);
    *src = plan->items[item].given_src;
    *dst = plan->items[item].given_dst;
    return TSR_OK;
}

const tsr_layout *tsr_plan_source(const tsr_plan *plan)
{
    return plan->items[0].given_src;
}

const tsr_layout *tsr_plan_destination(const tsr_plan *plan)
{
    return plan->items[0].given_dst;
}

size_t tsr_plan_workspace_bytes(const tsr_plan *plan)
{
    return plan->workspace_bytes;
}

int64_t tsr_plan_bytes_received(const tsr_plan *plan)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_item *item = &plan->items[i];
        bytes += (item->moves.elements + item->given.elements + item->relayed.elements + item->term_elements) *
                 (int64_t)item->src->element_bytes;
    }
    return bytes;
}

int64_t tsr_plan_bytes_sent(const tsr_plan *plan)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->count; i++)
        bytes += (plan->items[i].sends.elements + plan->items[i].gives.elements + plan->items[i].relays.elements) *
                 (int64_t)plan->items[i].src->element_bytes;
    return bytes;
}

int tsr_plan_in_place(const tsr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!plan->items[i].problem.in_place)
            return 0;
    return 1;
}
