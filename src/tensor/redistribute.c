#include "comm/core/lineage.h"
#include "device/device.h"
#include "placement/layout.h"
#include "placement/print.h"
#include "redistribute/execute/bind.h"
#include "tensor/dtensor.h"
#include "tensor/plan_cache.h"

#include <tessera/sys/dtensor.h>
#include <tessera/sys/status.h>

static tsr_status execute_entry(const tsr_cached_plan *entry, const tsr_tensor *src, const tsr_tensor *dst,
                                tsr_stream stream, tsr_status local)
{
    return tsr_plan_run(entry->plan, entry->group, src, dst, entry->workspace, entry->workspace_bytes, stream, local);
}

/* Executes a cached plan. `local` is this rank's status so far; after a failure it takes part as
 * failed. */
static tsr_status run_entry(tsr_cached_plan *entry, const tsr_tensor *src, const tsr_tensor *dst, tsr_stream stream,
                            tsr_status local)
{
    if (!entry->group)
        return local;
    if (!entry->event || local != TSR_OK)
        return execute_entry(entry, src, dst, stream, local);
    const tsr_status begun = tsr_cached_begin(entry, stream);
    const tsr_status status = execute_entry(entry, src, dst, stream, begun);
    return begun == TSR_OK ? tsr_cached_end(entry, stream, status) : status;
}

/* Tells peers that this rank's arguments are wrong (tsr_cache_tell()); returns `fault`. */
static tsr_status tell_fault(const tsr_dtensor *x, tsr_status fault)
{
    return tsr_cache_tell(x->layout, x->local.device, fault);
}

static tsr_status refuse_null(const char *call, const char *name)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
}

static bool on_one_mesh(const tsr_layout *a, const tsr_layout *b)
{
    return tsr_mesh_equal(a->mesh, b->mesh) && tsr_mesh_comm(a->mesh) == tsr_mesh_comm(b->mesh);
}

/* For a sentence about two layouts that are not on one mesh: says so if only their communicators
 * differ. */
static const char *where_else(const tsr_layout *a, const tsr_layout *b)
{
    return tsr_mesh_equal(a->mesh, b->mesh) ? ", over another communicator" : "";
}

static tsr_status check_pair(const tsr_dtensor *x, const tsr_dtensor *y)
{
    if (!x || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is NULL", !x ? "x" : "y");
    const tsr_layout *a = x->layout, *b = y->layout;
    char from[512], to[512];
    if (!tsr_layout_same_tensor(a, b))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "x is %s, y is %s: both must have the same global shape and dtype",
                              tsr_layout_describe(a, from, sizeof from), tsr_layout_describe(b, to, sizeof to));
    if (!tsr_device_same(x->local.device, y->local.device)) {
        char here[64], there[64];
        return tsr_status_set(TSR_ERROR_ARGUMENT, "x is on device %s, y on %s: both must be on one device",
                              tsr_device_print(x->local.device, here), tsr_device_print(y->local.device, there));
    }
    return TSR_OK;
}

#define INTO "tsr_redistribute_into"

/* Tells all ranks of `comm`, if they may be there, that this rank's arguments are wrong. */
static tsr_status tell_fault_across(const tsr_dtensor *x, tsr_comm *comm, tsr_status fault)
{
    return comm == x->comm ? tell_fault(x, fault) : tsr_cache_tell_across(comm, fault);
}

/* find_plan() for tensors on different meshes, of which `comm` is the nearest common communicator;
 * if there is none, x's. */
static tsr_status find_plan_across(const tsr_dtensor *x, const tsr_dtensor *y, tsr_comm *comm, tsr_cached_plan **entry)
{
    *entry = tsr_device_same(x->local.device, y->local.device)
                 ? tsr_cache_recall_across(comm, x->layout, y->layout, x->local.device)
                 : NULL;
    if (*entry)
        return TSR_OK;
    const tsr_status fault = tsr_name_call(INTO, check_pair(x, y));
    if (fault != TSR_OK)
        return tell_fault_across(x, comm, fault);
    const tsr_status status = tsr_cache_find_across(INTO, comm, x->layout, y->layout, x->local.device, entry);
    if (status == TSR_OK)
        tsr_cache_remember(*entry, x->layout, y->layout);
    else if (!tsr_comm_common(x->comm, y->comm))
        return tell_fault(x, status);
    return status;
}

static tsr_status move_across(const tsr_dtensor *x, tsr_dtensor *y, tsr_comm *comm, tsr_stream stream)
{
    tsr_cached_plan *entry;
    TSR_TRY(find_plan_across(x, y, comm, &entry));
    const tsr_item *item = entry->plan->items;
    return run_entry(entry, item->in_src ? &x->local : NULL, item->in_dst ? &y->local : NULL, stream, TSR_OK);
}

/* Finds the plan for x and y on one mesh. Layouts never change, so a pair that was checked before
 * is not checked again. */
static tsr_status find_plan(const tsr_dtensor *x, const tsr_dtensor *y, tsr_cached_plan **entry)
{
    const tsr_status fault = tsr_name_call(INTO, check_pair(x, y));
    if (fault != TSR_OK)
        return tell_fault(x, fault);
    TSR_TRY(tsr_cache_find(x->layout, y->layout, x->local.device, entry));
    tsr_cache_remember(*entry, x->layout, y->layout);
    return TSR_OK;
}

static inline tsr_status redistribute_into(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream)
{
    if (!y)
        return tell_fault(x, refuse_null(INTO, "y"));
    tsr_cached_plan *entry = tsr_device_same(x->local.device, y->local.device)
                                 ? tsr_cache_recall(x->layout, y->layout, x->local.device)
                                 : NULL;
    if (!entry) {
        if (!on_one_mesh(x->layout, y->layout))
            return move_across(x, y, x->comm, stream);
        TSR_TRY(find_plan(x, y, &entry));
    }
    return run_entry(entry, &x->local, &y->local, stream, TSR_OK);
}

/* For tensors over two communicators: `common` is the nearest one from which both descend; NULL:
 * there is none, and ranks tell each other so over x's. */
static tsr_status redistribute_between(const tsr_dtensor *x, tsr_dtensor *y, tsr_comm *common, tsr_stream stream)
{
    tsr_comm *const comm = common ? common : x->comm;
    TSR_TRY(tsr_comm_enter(comm, INTO));
    return tsr_comm_leave(comm, move_across(x, y, comm, stream));
}

tsr_status tsr_redistribute_into(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream)
{
    if (!x)
        return refuse_null(INTO, "x");
    if (y && y->comm != x->comm)
        return redistribute_between(x, y, tsr_comm_common(x->comm, y->comm), stream);
    TSR_TRY(tsr_comm_enter(x->comm, INTO));
    return tsr_comm_leave(x->comm, redistribute_into(x, y, stream));
}

typedef struct batch {
    size_t count;
    const tsr_dtensor *const *x;
    tsr_dtensor *const *y;
} batch;

static void get_layouts(const void *arg, size_t i, const tsr_layout **src, const tsr_layout **dst)
{
    const batch *b = arg;
    *src = b->x[i]->layout;
    *dst = b->y[i]->layout;
}

static tsr_status check_mesh(const tsr_dtensor *x, const tsr_dtensor *y)
{
    const tsr_layout *a = x->layout, *b = y->layout;
    char from[512], to[512];
    if (on_one_mesh(a, b))
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT, "x is %s, y is %s%s: both must be on one mesh (tsr_redistribute_into() takes two)",
        tsr_layout_describe(a, from, sizeof from), tsr_layout_describe(b, to, sizeof to), where_else(a, b));
}

/* Checks a tensor of a batch against the first one, whose mesh keeps the plan. */
static tsr_status check_like(const tsr_dtensor *x, const tsr_dtensor *first)
{
    char here[512], there[512];
    if (!on_one_mesh(x->layout, first->layout))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "x is %s, that of tensor 0 is %s%s: all must be on one mesh (tsr_plan_create_batch() takes several)",
            tsr_layout_describe(x->layout, here, sizeof here), tsr_layout_describe(first->layout, there, sizeof there),
            where_else(x->layout, first->layout));
    if (!tsr_device_same(x->local.device, first->local.device))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "x is on device %s, that of tensor 0 on %s: all must be on one device",
                              tsr_device_print(x->local.device, here), tsr_device_print(first->local.device, there));
    return TSR_OK;
}

static tsr_status check_batch(const batch *b)
{
    if (b->count == 0 || !b->x || !b->y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_redistribute_batch: %s",
                              b->count == 0 ? "count is 0; a batch has at least one tensor"
                              : !b->x       ? "x is NULL"
                                            : "y is NULL");
    for (size_t i = 0; i < b->count; i++) {
        tsr_status status = check_pair(b->x[i], b->y[i]);
        if (status == TSR_OK)
            status = check_mesh(b->x[i], b->y[i]);
        if (status == TSR_OK)
            status = check_like(b->x[i], b->x[0]);
        if (status != TSR_OK)
            return tsr_name_call("tsr_redistribute_batch", tsr_name_tensor(i, b->count, status));
    }
    return TSR_OK;
}

static tsr_status redistribute_batch(const batch *b, tsr_stream stream)
{
    const size_t count = b->count;
    const tsr_status fault = check_batch(b);
    if (fault != TSR_OK)
        return tell_fault(b->x[0], fault);
    const tsr_layout_pairs pairs = {count, get_layouts, b};
    tsr_cached_plan *entry;
    TSR_TRY(tsr_cache_find_batch(&pairs, b->x[0]->local.device, &entry));
    if (count == 1)
        return run_entry(entry, &b->x[0]->local, &b->y[0]->local, stream, TSR_OK);
    for (size_t i = 0; i < count; i++) {
        entry->tensors[i] = b->x[i]->local;
        entry->tensors[count + i] = b->y[i]->local;
    }
    return run_entry(entry, entry->tensors, entry->tensors + count, stream, TSR_OK);
}

tsr_status tsr_redistribute_batch(size_t count, const tsr_dtensor *const *x, tsr_dtensor *const *y, tsr_stream stream)
{
    const batch b = {count, x, y};
    if (count == 0 || !x || !x[0])
        return check_batch(&b);
    TSR_TRY(tsr_comm_enter(x[0]->comm, "tsr_redistribute_batch"));
    return tsr_comm_leave(x[0]->comm, redistribute_batch(&b, stream));
}

static tsr_status create_like(const tsr_dtensor *x, const tsr_layout_probe *to, tsr_dtensor **y)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_keep(to, &layout));
    const tsr_status status = tsr_dtensor_create(layout, x->local.device, y);
    tsr_layout_destroy(layout);
    return status;
}

/* Finds the plan before it allocates anything, so that a rank without memory can still take part as
 * failed while its peers wait. */
static tsr_status redistribute(const char *call, const tsr_dtensor *x, const tsr_placement *placements,
                               tsr_dtensor **out)
{
    tsr_cached_plan *entry;
    tsr_layout_probe to;
    tsr_status status =
        placements ? tsr_layout_probe_init(&to, x->layout, placements) : refuse_null(call, "placements");
    if (status != TSR_OK)
        return tell_fault(x, status);
    TSR_TRY(tsr_cache_find(x->layout, &to.layout, x->local.device, &entry));
    tsr_dtensor *y = NULL;
    status = out ? create_like(x, &to, &y) : refuse_null(call, "out");
    status = run_entry(entry, &x->local, y ? &y->local : NULL, NULL, status);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(y);
        return status;
    }
    *out = y;
    return TSR_OK;
}

/* Takes part in the plan that peers execute, if the placements name it. */
static tsr_status take_part_as_failed(const tsr_dtensor *x, const tsr_placement *placements, tsr_status failed)
{
    tsr_kept_sentence kept;
    tsr_layout_probe to;
    tsr_cached_plan *entry;
    tsr_status_keep_returned(&kept, failed);
    if (!placements || tsr_layout_probe_init(&to, x->layout, placements) != TSR_OK)
        return tell_fault(x, tsr_status_restore(&kept, failed));
    const tsr_status found = tsr_cache_find(x->layout, &to.layout, x->local.device, &entry);
    tsr_status_restore(&kept, failed);
    if (found == TSR_OK)
        run_entry(entry, &x->local, NULL, NULL, failed);
    return tsr_status_restore(&kept, failed);
}

tsr_status tsr_redistribute_failed(const tsr_dtensor *x, const tsr_placement *placements, tsr_status failed)
{
    tsr_kept_sentence kept;
    tsr_status_keep_returned(&kept, failed);
    if (tsr_comm_enter(x->comm, "tsr_redistribute_failed") != TSR_OK)
        return tsr_status_restore(&kept, failed);
    tsr_status_restore(&kept, failed);
    return tsr_comm_leave(x->comm, take_part_as_failed(x, placements, failed));
}

tsr_status tsr_redistribute(const tsr_dtensor *x, const tsr_placement *placements, tsr_dtensor **out)
{
    static const char call[] = "tsr_redistribute";
    if (!x)
        return refuse_null(call, "x");
    TSR_TRY(tsr_comm_enter(x->comm, call));
    return tsr_comm_leave(x->comm, redistribute(call, x, placements, out));
}

/* Numbers of `sizes=` and `blocks=` are kept on the stack, because a rank without memory for them
 * could not tell its peers, which look for the plan. */
static tsr_status redistribute_to(const char *call, const tsr_dtensor *x, const char *placements, tsr_dtensor **out)
{
    tsr_placement parsed[TSR_MAX_DIMS];
    int64_t numbers[1024];
    const size_t capacity = sizeof numbers / sizeof *numbers;
    if (!placements)
        return redistribute(call, x, NULL, out);
    const tsr_status status =
        tsr_name_call(call, tsr_placements_parse_for(x->layout->mesh, placements, parsed, numbers, capacity));
    return status == TSR_OK ? redistribute(call, x, parsed, out) : tell_fault(x, status);
}

tsr_status tsr_redistribute_to(const tsr_dtensor *x, const char *placements, tsr_dtensor **out)
{
    static const char call[] = "tsr_redistribute_to";
    if (!x)
        return refuse_null(call, "x");
    TSR_TRY(tsr_comm_enter(x->comm, call));
    return tsr_comm_leave(x->comm, redistribute_to(call, x, placements, out));
}

/* The layout to which x can be redistributed in its own memory. TSR_ERROR_UNSUPPORTED: the cuts
 * differ. */
static tsr_status probe_in_place(const tsr_dtensor *x, const tsr_placement *placements, tsr_layout_probe *probe)
{
    if (!placements)
        return refuse_null("tsr_redistribute_in_place", "placements");
    TSR_TRY(tsr_layout_probe_init(probe, x->layout, placements));
    tsr_problem problem;
    tsr_problem_init(&problem, x->layout, &probe->layout);
    if (problem.in_place)
        return TSR_OK;
    char from[512], into[512];
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "tsr_redistribute_in_place: from %s to %s the cuts differ: only Replicate and Partial can change in place",
        tsr_layout_describe(x->layout, from, sizeof from), tsr_layout_describe(&probe->layout, into, sizeof into));
}

static tsr_status in_place(tsr_dtensor *x, const tsr_placement *placements, tsr_stream stream)
{
    tsr_layout_probe probe;
    const tsr_status fault = probe_in_place(x, placements, &probe);
    if (fault != TSR_OK)
        return tell_fault(x, fault);
    const tsr_layout *const to = &probe.layout;
    tsr_cached_plan *entry;
    TSR_TRY(tsr_cache_find(x->layout, to, x->local.device, &entry));
    tsr_layout *layout = NULL;
    tsr_status status = tsr_layout_keep(&probe, &layout);
    status = run_entry(entry, &x->local, &x->local, stream, status);
    if (status != TSR_OK) {
        tsr_layout_destroy(layout);
        return status;
    }
    tsr_layout_destroy(x->layout);
    x->layout = layout;
    return TSR_OK;
}

tsr_status tsr_redistribute_in_place(tsr_dtensor *x, const tsr_placement *placements, tsr_stream stream)
{
    if (!x)
        return refuse_null("tsr_redistribute_in_place", "x");
    TSR_TRY(tsr_comm_enter(x->comm, "tsr_redistribute_in_place"));
    return tsr_comm_leave(x->comm, in_place(x, placements, stream));
}

static tsr_status find_gradient(const tsr_dtensor *dy, const tsr_layout *x_layout, tsr_placement *placements)
{
    const tsr_layout *from = dy->layout;
    if (!x_layout)
        return refuse_null("tsr_redistribute_backward", "x_layout");
    if (tsr_layout_same_tensor(from, x_layout) && tsr_mesh_congruent(from->mesh, x_layout->mesh))
        return tsr_gradient_placements(x_layout, from->mesh, placements);
    char have[512], want[512];
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "tsr_redistribute_backward: dy is %s, x was %s: both must have the same global shape, dtype and mesh",
        tsr_layout_describe(from, have, sizeof have), tsr_layout_describe(x_layout, want, sizeof want));
}

static tsr_status backward(const char *call, const tsr_dtensor *dy, const tsr_layout *x_layout, tsr_dtensor **dx)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const tsr_status fault = find_gradient(dy, x_layout, placements);
    return fault == TSR_OK ? redistribute(call, dy, placements, dx) : tell_fault(dy, fault);
}

tsr_status tsr_redistribute_backward(const tsr_dtensor *dy, const tsr_layout *x_layout, tsr_dtensor **dx)
{
    static const char call[] = "tsr_redistribute_backward";
    if (!dy)
        return refuse_null(call, "dy");
    TSR_TRY(tsr_comm_enter(dy->comm, call));
    return tsr_comm_leave(dy->comm, backward(call, dy, x_layout, dx));
}

tsr_status tsr_full_tensor(const tsr_dtensor *x, tsr_dtensor **out)
{
    static const char call[] = "tsr_full_tensor";
    tsr_placement placements[TSR_MAX_DIMS];
    if (!x)
        return refuse_null(call, "x");
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        placements[i] = tsr_replicate();
    TSR_TRY(tsr_comm_enter(x->comm, call));
    return tsr_comm_leave(x->comm, redistribute(call, x, placements, out));
}
