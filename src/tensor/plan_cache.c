#include "tensor/plan_cache.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/settings.h"
#include "base/text/text.h"
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "device/allocation.h"
#include "device/driver.h"
#include "mesh/derive.h"
#include "mesh/mesh.h"
#include "redistribute/execute/prepare.h"
#include "redistribute/match/common_comm.h"
#include "redistribute/match/confined.h"

#include <tessera/sys/log.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

typedef struct cache {
    tsr_context *context;
    tsr_mesh *mesh; /* a copy of the mesh without its communicator; NULL: a communicator keeps the cache */
    size_t capacity, count;
    uint64_t clock;
    tsr_cache_statistics statistics;
    tsr_cached_plan entries[];
} cache;

static void free_entry(cache *c, tsr_cached_plan *entry)
{
    const tsr_device_ops ops = tsr_device_resolve(c->context, entry->device);
    if (entry->event)
        ops.table->event_destroy(ops.self, ops.index, entry->event);
    if (entry->sharing)
        tsr_comm_free(entry->sharing, entry->workspace, entry->workspace_bytes);
    else
        tsr_device_release(c->context, entry->device, entry->workspace, entry->workspace_bytes);
    tsr_release(c->context, entry->tensors);
    tsr_plan_destroy(entry->plan);
    tsr_device_driver_release(entry->device.driver);
    *entry = (tsr_cached_plan){0};
}

static void cache_destroy(void *data)
{
    cache *c = data;
    for (size_t i = 0; i < c->count; i++)
        free_entry(c, &c->entries[i]);
    tsr_mesh_destroy(c->mesh);
    tsr_context *context = c->context;
    tsr_release(context, c);
    tsr_context_destroy(context);
}

/* What keeps a cache: a mesh, or (`mesh` NULL) a communicator, for moves between meshes. All ranks
 * of `comm` make the moves that it keeps, so that all have the same entries. */
typedef struct holder {
    const tsr_mesh *mesh;
    tsr_comm *comm;
} holder;

static cache *cache_of(const holder *h)
{
    return h->mesh ? tsr_mesh_slot_get(h->mesh, TSR_MESH_SLOT_PLANS) : tsr_comm_kept(h->comm);
}

static tsr_status cache_create(const holder *h, cache **out)
{
    tsr_context *context = h->mesh ? tsr_mesh_context(h->mesh) : tsr_comm_context(h->comm);
    const size_t capacity = tsr_context_settings(context)->plan_cache_entries;
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof(cache) + capacity * sizeof(tsr_cached_plan), &memory));
    cache *c = memory;
    const tsr_status status = h->mesh ? tsr_mesh_copy(h->mesh, &c->mesh) : TSR_OK;
    if (status != TSR_OK) {
        tsr_release(context, c);
        return status;
    }
    c->context = tsr_context_retain(context);
    c->capacity = capacity;
    if (h->mesh)
        tsr_mesh_slot_set(h->mesh, TSR_MESH_SLOT_PLANS, c, cache_destroy);
    else
        tsr_comm_keep(h->comm, c, cache_destroy);
    *out = c;
    return TSR_OK;
}

static bool is_for(const tsr_cached_plan *entry, const tsr_layout_pairs *pairs, tsr_device device)
{
    if (entry->plan->count != pairs->count || !tsr_device_same(entry->device, device))
        return false;
    for (size_t i = 0; i < pairs->count; i++) {
        const tsr_item *item = &entry->plan->items[i];
        const tsr_layout *src, *dst;
        pairs->get(pairs->arg, i, &src, &dst);
        if (item->given_src->hash != src->hash || item->given_dst->hash != dst->hash ||
            !tsr_layout_equal(item->given_src, src) || !tsr_layout_equal(item->given_dst, dst))
            return false;
    }
    return true;
}

static tsr_cached_plan *lookup(cache *c, const tsr_layout_pairs *pairs, tsr_device device)
{
    for (size_t i = 0; i < c->count; i++)
        if (is_for(&c->entries[i], pairs, device))
            return &c->entries[i];
    return NULL;
}

static tsr_status copy_layout(const cache *c, const tsr_layout *layout, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_mesh *mesh = tsr_mesh_retain(c->mesh);
    if (!mesh)
        TSR_TRY(tsr_mesh_copy(layout->mesh, &mesh));
    tsr_placements_on(layout, mesh, placements);
    const tsr_status status = tsr_layout_create(mesh, placements, layout->ndim, layout->shape, layout->dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Copies all layouts: first the sources, then the destinations. */
static tsr_status copy_layouts(const cache *c, const tsr_layout_pairs *pairs, tsr_layout **copies)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const tsr_layout *src, *dst;
        pairs->get(pairs->arg, i, &src, &dst);
        TSR_TRY(copy_layout(c, src, &copies[i]));
        TSR_TRY(copy_layout(c, dst, &copies[pairs->count + i]));
    }
    return TSR_OK;
}

/* Plans with layouts on abstract meshes, so that no plan refers to the mesh or communicator that
 * holds the cache. All ranks of the communicator make these calls, so a communicator that cannot be
 * split need not be split. */
static tsr_status plan(cache *c, const tsr_layout_pairs *pairs, const tsr_comm *comm, tsr_plan **out)
{
    const size_t count = pairs->count;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = tsr_comm_rank(comm);
    options.no_split = !tsr_comm_can_split(comm);
    void *memory;
    TSR_TRY(tsr_allocate_array(c->context, 2 * count, sizeof(tsr_layout *), &memory));
    tsr_layout **copies = memory;
    tsr_status status = copy_layouts(c, pairs, copies);
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        if (!tsr_move_is_direct(comm, tsr_mesh_node_map(copies[i]->mesh), options.no_split, copies[i],
                                copies[count + i]))
            options.mode = TSR_MODE_MESSAGE;
    if (status == TSR_OK)
        status = tsr_plan_create_for(tsr_comm_call_in_flight(comm), count, (const tsr_layout *const *)copies,
                                     (const tsr_layout *const *)copies + count, &options, out);
    for (size_t i = 0; i < 2 * count; i++)
        tsr_layout_destroy(copies[i]);
    tsr_release(c->context, copies);
    return status;
}

/* On the host the workspace lies in shared memory if ranks share some, so that peers read messages
 * where they are packed. */
static tsr_status allocate_workspace(cache *c, tsr_comm *comm, tsr_cached_plan *entry)
{
    if (entry->workspace_bytes == 0 || entry->device.driver || !tsr_comm_shares_some(comm))
        return tsr_device_allocate(c->context, entry->device, entry->workspace_bytes, &entry->workspace);
    TSR_TRY(tsr_comm_alloc_shared(comm, entry->workspace_bytes, &entry->workspace));
    entry->sharing = comm;
    return TSR_OK;
}

static tsr_status make_entry(cache *c, const tsr_layout_pairs *pairs, tsr_comm *comm, tsr_cached_plan *entry)
{
    TSR_TRY(plan(c, pairs, comm, &entry->plan));
    if (pairs->count > 1) {
        void *memory;
        TSR_TRY(tsr_allocate_array(c->context, 2 * pairs->count, sizeof(tsr_tensor), &memory));
        entry->tensors = memory;
    }
    entry->workspace_bytes = tsr_plan_workspace_bytes(entry->plan);
    TSR_TRY(allocate_workspace(c, comm, entry));
    const tsr_device_ops ops = tsr_device_resolve(c->context, entry->device);
    return entry->workspace && ops.table->event_create ? ops.table->event_create(ops.self, ops.index, &entry->event)
                                                       : TSR_OK;
}

/* A free place for an entry; if the cache is full, that of the least recently used entry, which is
 * freed. */
static tsr_cached_plan *place_for(cache *c)
{
    if (c->count < c->capacity)
        return &c->entries[c->count++];
    tsr_cached_plan *oldest = &c->entries[0];
    for (size_t i = 1; i < c->count; i++)
        if (c->entries[i].used < oldest->used)
            oldest = &c->entries[i];
    tsr_log(c->context, TSR_LOG_DEBUG, "plan cache of %zu entries is full: the least recently used goes", c->capacity);
    free_entry(c, oldest);
    return oldest;
}

/* Collective: makes an entry. `status` is this rank's status so far; a rank that failed still takes
 * part in tsr_plan_prepare_with(). */
static tsr_status add_entry(cache *c, tsr_status status, const tsr_layout_pairs *pairs, tsr_comm *comm,
                            tsr_device device, tsr_cached_plan **out)
{
    tsr_cached_plan entry = {.device = {tsr_device_driver_retain(device.driver), device.index}};
    if (status == TSR_OK)
        status = make_entry(c, pairs, comm, &entry);
    status = tsr_plan_prepare_with(entry.plan, comm, status, &entry.group);
    if (status != TSR_OK) {
        if (c)
            free_entry(c, &entry);
        else
            tsr_device_driver_release(device.driver);
        return status;
    }
    tsr_cached_plan *place = place_for(c);
    *place = entry;
    *out = place;
    return TSR_OK;
}

/* TSR_ERROR_UNSUPPORTED if the stream is captured: the graph could use the workspace at any time,
 * even after the cache has freed it. */
static tsr_status refuse_capture(const tsr_device_ops *ops, tsr_stream stream)
{
    uint64_t id = 0;
    if (ops->table->capture)
        TSR_TRY(ops->table->capture(ops->self, ops->index, stream, &id));
    if (id == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "the stream is captured, but this move works in memory that belongs to the mesh's cache: "
                          "capture tsr_plan_execute() with a workspace of your own");
}

tsr_status tsr_cached_begin(const tsr_cached_plan *entry, tsr_stream stream)
{
    const tsr_device_ops ops = tsr_device_resolve(NULL, entry->device);
    TSR_TRY(refuse_capture(&ops, stream));
    return entry->recorded ? ops.table->event_wait(ops.self, ops.index, entry->event, stream) : TSR_OK;
}

tsr_status tsr_cached_end(tsr_cached_plan *entry, tsr_stream stream, tsr_status status)
{
    const tsr_device_ops ops = tsr_device_resolve(NULL, entry->device);
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    const tsr_status recorded = ops.table->event_record(ops.self, ops.index, entry->event, stream);
    entry->recorded = true;
    return status == TSR_OK ? recorded : tsr_status_restore(&kept, status);
}

static tsr_cached_plan *hit(cache *c, tsr_cached_plan *entry)
{
    c->statistics.hits++;
    entry->used = ++c->clock;
    return entry;
}

/* Inlined for hits; a miss makes a plan, which is slow anyway. */
static inline tsr_status find_entry(const holder *h, const tsr_layout_pairs *pairs, tsr_device device,
                                    tsr_cached_plan **out)
{
    cache *c = cache_of(h);
    tsr_cached_plan *entry = c ? lookup(c, pairs, device) : NULL;
    if (entry) {
        *out = hit(c, entry);
        return TSR_OK;
    }
    const tsr_status status = c ? TSR_OK : cache_create(h, &c);
    TSR_TRY(add_entry(c, status, pairs, h->comm, device, &entry));
    c->statistics.misses++;
    entry->used = ++c->clock;
    *out = entry;
    return TSR_OK;
}

tsr_status tsr_cache_find_batch(const tsr_layout_pairs *pairs, tsr_device device, tsr_cached_plan **out)
{
    const tsr_layout *first, *unused;
    pairs->get(pairs->arg, 0, &first, &unused);
    const holder h = {first->mesh, tsr_mesh_comm(first->mesh)};
    return find_entry(&h, pairs, device, out);
}

typedef struct pair {
    const tsr_layout *src, *dst;
} pair;

static void get_one(const void *arg, size_t i, const tsr_layout **src, const tsr_layout **dst)
{
    (void)i;
    *src = ((const pair *)arg)->src;
    *dst = ((const pair *)arg)->dst;
}

tsr_status tsr_cache_find(const tsr_layout *src, const tsr_layout *dst, tsr_device device, tsr_cached_plan **out)
{
    const pair one = {src, dst};
    const tsr_layout_pairs pairs = {1, get_one, &one};
    const holder h = {src->mesh, tsr_mesh_comm(src->mesh)};
    return find_entry(&h, &pairs, device, out);
}

void tsr_cache_remember(tsr_cached_plan *entry, tsr_layout *src, tsr_layout *dst)
{
    entry->source_id = tsr_layout_number(src);
    entry->destination_id = tsr_layout_number(dst);
}

/* Equal ids in one context mean the same layout, and layouts never change. */
static inline tsr_cached_plan *recall(cache *c, const tsr_layout *src, const tsr_layout *dst, tsr_device device)
{
    const uint64_t from = atomic_load_explicit(&src->id, memory_order_relaxed),
                   to = atomic_load_explicit(&dst->id, memory_order_relaxed);
    if (from == 0 || to == 0)
        c = NULL;
    for (size_t i = 0; c && i < c->count; i++) {
        tsr_cached_plan *entry = &c->entries[i];
        if (entry->source_id == from && entry->destination_id == to && src->context == dst->context &&
            tsr_device_same(entry->device, device))
            return hit(c, entry);
    }
    return NULL;
}

tsr_cached_plan *tsr_cache_recall(const tsr_layout *src, const tsr_layout *dst, tsr_device device)
{
    return recall(tsr_mesh_slot_get(src->mesh, TSR_MESH_SLOT_PLANS), src, dst, device);
}

tsr_cached_plan *tsr_cache_recall_across(const tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst,
                                         tsr_device device)
{
    return recall(tsr_comm_kept(comm), src, dst, device);
}

/* True if every execution of the plan begins with a meeting of all ranks of `comm`. Not so if the
 * plan is local, if its group is smaller, or if executions do not tell of failures. */
static bool meets_all(const tsr_cached_plan *entry, const tsr_comm *comm)
{
    if (entry->plan->local || !entry->group || entry->group->comm != comm)
        return false;
    return tsr_comm_is_direct(comm) || (!entry->device.driver && tsr_comm_is_checked(comm));
}

static void describe_fault(const void *arg, char *text, size_t capacity)
{
    (void)arg;
    tsr_text words = {text, capacity, 0};
    tsr_text_append(&words, "a redistribution");
}

/* Tells all ranks of `comm`; returns `local`. */
static tsr_status tell_all(tsr_comm *comm, tsr_status local)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    tsr_comm_agree(comm, TSR_HASH_SEED, local, describe_fault, NULL);
    return tsr_status_restore(&kept, local);
}

/* True if peers that move a tensor of layout `src` may execute a plan of `c`, without meeting all
 * ranks of `comm`. */
static bool may_miss(const cache *c, const tsr_layout *src, tsr_device device, const tsr_comm *comm)
{
    for (size_t i = 0; c && i < c->count; i++) {
        const tsr_cached_plan *entry = &c->entries[i];
        if (tsr_device_same(entry->device, device) && tsr_layout_equal(entry->plan->items[0].given_src, src) &&
            !meets_all(entry, comm))
            return true;
    }
    return false;
}

tsr_status tsr_cache_tell(const tsr_layout *src, tsr_device device, tsr_status local)
{
    tsr_comm *const comm = tsr_mesh_comm(src->mesh);
    if (may_miss(tsr_mesh_slot_get(src->mesh, TSR_MESH_SLOT_PLANS), src, device, comm) ||
        may_miss(tsr_comm_kept(comm), src, device, comm))
        return local;
    return tell_all(comm, local);
}

tsr_status tsr_cache_tell_across(tsr_comm *comm, tsr_status local)
{
    const cache *c = tsr_comm_kept(comm);
    for (size_t i = 0; c && i < c->count; i++)
        if (!meets_all(&c->entries[i], comm))
            return local;
    return tell_all(comm, local);
}

/* Finds the plan among those of `comm`. A rank that cannot number the layouts' ranks as `comm` does
 * has no memory, and tells its peers so. */
tsr_status tsr_cache_find_across(const char *call, tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst,
                                 tsr_device device, tsr_cached_plan **out)
{
    tsr_common_layouts common;
    tsr_status status = tsr_common_layouts_find(call, 1, &src, &dst, &common);
    if (status == TSR_OK) {
        const pair one = {common.src[0], common.dst[0]};
        const tsr_layout_pairs pairs = {1, get_one, &one};
        const holder h = {NULL, comm};
        status = find_entry(&h, &pairs, device, out);
    } else if (common.comm == comm) {
        status = tsr_cache_tell_across(comm, status);
    }
    tsr_common_layouts_free(&common);
    return status;
}

static tsr_cache_statistics statistics_of(const cache *c)
{
    if (!c)
        return (tsr_cache_statistics){0, 0, 0};
    tsr_cache_statistics statistics = c->statistics;
    statistics.entries = (int64_t)c->count;
    return statistics;
}

tsr_cache_statistics tsr_mesh_cache_statistics(const tsr_mesh *mesh)
{
    return statistics_of(mesh ? tsr_mesh_slot_get(mesh, TSR_MESH_SLOT_PLANS) : NULL);
}

tsr_cache_statistics tsr_comm_cache_statistics(const tsr_comm *comm)
{
    return statistics_of(comm ? tsr_comm_kept(comm) : NULL);
}
