#include "redistribute/execute.h"

#include <tessera/sys/status.h>

#include "base/checked.h"
#include "redistribute/staging.h"

/* What a tensor must be: the shard that a layout gives this rank. */
typedef struct expectation {
    const char *name;
    const tsr_layout *layout;
    bool inside;
    int ndim;
    const int64_t *shape;
} expectation;

static bool shape_fits(const expectation *x, const tsr_tensor *t)
{
    if (t->ndim != x->ndim)
        return false;
    for (int dim = 0; dim < x->ndim; dim++)
        if (t->shape[dim] != x->shape[dim])
            return false;
    return true;
}

static bool is_empty(const expectation *x)
{
    for (int dim = 0; dim < x->ndim; dim++)
        if (x->shape[dim] == 0)
            return true;
    return false;
}

/* The last element's distance from the first grows by that along `dim`. False if bytes up to its end would overflow. */
static bool reach(const expectation *x, const tsr_tensor *t, int dim, int64_t *last)
{
    int64_t step = 0, end;
    if (t->shape[dim] > 1 && !tsr_multiply(t->strides[dim], t->shape[dim] - 1, &step))
        return false;
    return tsr_add(*last, step, last) && tsr_add(*last, 1, &end) && tsr_multiply(end, (int64_t)x->layout->element_bytes, &end);
}

static tsr_status check_strides(const expectation *x, const tsr_tensor *t, bool written)
{
    int64_t last = 0;
    for (int dim = 0; dim < x->ndim; dim++) {
        if (t->strides[dim] < 0 || !reach(x, t, dim, &last))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stride %lld of dim %d is negative or overflows", x->name,
                                  (long long)t->strides[dim], dim);
        if (written && t->shape[dim] > 1 && t->strides[dim] == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stride 0 of dim %d makes %lld elements share memory that is to be written",
                                  x->name, dim, (long long)t->shape[dim]);
    }
    return TSR_OK;
}

/* A rank outside the mesh, or with an empty shard, may bring nothing. */
static tsr_status check_tensor(const expectation *x, const tsr_tensor *given, bool written, tsr_tensor *taken)
{
    *taken = (tsr_tensor){.dtype = x->layout->dtype, .ndim = x->ndim};
    if (given)
        *taken = *given;
    if (!given && x->inside)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is NULL, but this rank has a shard of it", x->name);
    if (!x->inside)
        return TSR_OK;
    if (given->dtype != x->layout->dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is of %s, but the layout of %s", x->name, tsr_dtype_name(given->dtype),
                              tsr_dtype_name(x->layout->dtype));
    if (!shape_fits(x, given)) {
        char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT], layout[512];
        const bool sane = given->ndim >= 0 && given->ndim <= TSR_MAX_DIMS;
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s has local shape %s, but %s gives this rank %s", x->name,
                              sane ? tsr_shape_print(given->ndim, given->shape, have) : "of an impossible ndim",
                              tsr_layout_describe(x->layout, layout, sizeof layout), tsr_shape_print(x->ndim, x->shape, want));
    }
    if (is_empty(x))
        return TSR_OK;
    if (!given->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s has no data, but this rank's shard is not empty", x->name);
    return check_strides(x, given, written);
}

typedef struct span {
    uintptr_t begin, end;
} span;

static span span_of(const expectation *x, const tsr_tensor *t)
{
    if (!x->inside || is_empty(x) || !t->data)
        return (span){0, 0};
    int64_t last = 0;
    for (int dim = 0; dim < x->ndim; dim++)
        last += (t->shape[dim] - 1) * t->strides[dim];
    const uintptr_t begin = (uintptr_t)t->data;
    return (span){begin, begin + ((uintptr_t)last + 1) * x->layout->element_bytes};
}

static bool same_place(const expectation *x, const tsr_tensor *a, const tsr_tensor *b)
{
    bool same = a->data == b->data;
    for (int dim = 0; dim < x->ndim; dim++)
        same &= a->strides[dim] == b->strides[dim] || x->shape[dim] <= 1;
    return same;
}

static tsr_status check_overlap(const tsr_plan *plan, const expectation *src, const tsr_tensor *s, const expectation *dst,
                                const tsr_tensor *d)
{
    const span a = span_of(src, s), b = span_of(dst, d);
    if (a.begin >= b.end || b.begin >= a.end || (plan->problem.in_place && same_place(src, s, d)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "src and dst overlap: %s",
                          plan->problem.in_place ? "this plan works in place, but only with the same pointer and strides for both"
                                                 : "this plan does not work in place, because its cuts differ");
}

static tsr_status check_workspace(const tsr_plan *plan, const void *workspace, size_t bytes)
{
    if (plan->workspace_bytes == 0 || (workspace && bytes >= plan->workspace_bytes))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the workspace has %zu bytes%s, but the plan needs %zu", bytes, workspace ? "" : " at NULL",
                          plan->workspace_bytes);
}

static tsr_status check_devices(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst)
{
    if (!plan->in_src || !plan->in_dst || tsr_device_same(src->device, dst->device))
        return TSR_OK;
    char a[64], b[64];
    return tsr_status_set(TSR_ERROR_ARGUMENT, "src is on device %s, but dst on %s: both must be on one", tsr_device_print(src->device, a),
                          tsr_device_print(dst->device, b));
}

static tsr_status take_tensors(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, const void *workspace, size_t bytes)
{
    const tsr_plan *plan = e->plan;
    const expectation from = {"src", plan->src, plan->in_src, plan->src_ndim, plan->src_shape};
    const expectation to = {"dst", plan->dst, plan->in_dst, plan->dst_ndim, plan->dst_shape};
    TSR_TRY(check_tensor(&from, src, false, &e->src));
    TSR_TRY(check_tensor(&to, dst, true, &e->dst));
    TSR_TRY(check_devices(plan, &e->src, &e->dst));
    TSR_TRY(check_overlap(plan, &from, &e->src, &to, &e->dst));
    return check_workspace(plan, workspace, bytes);
}

static tsr_status fill(const tsr_execution *e)
{
    return tsr_device_fill_identity(&e->ops, &e->dst, e->plan->problem.fill, e->stream);
}

/* Fills of new Partial terms come last: where source and destination are one memory, peers have read it by then. The shortcut's come first,
 * under what is kept. */
static tsr_status run(const tsr_execution *e, tsr_status local)
{
    const tsr_plan *plan = e->plan;
    if (plan->problem.shortcut && plan->fills && local == TSR_OK)
        TSR_TRY(fill(e));
    const bool messages = plan->mode == TSR_MODE_MESSAGE && e->group;
    TSR_TRY(messages ? tsr_execute_message(e, local) : tsr_execute_direct(e, local));
    return plan->fills && !plan->problem.shortcut ? fill(e) : TSR_OK;
}

tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst, void *workspace,
                        size_t bytes, tsr_stream stream, tsr_status local)
{
    tsr_execution e = {.plan = plan, .group = plan->problem.local ? NULL : group, .workspace = workspace, .stream = stream};
    if (local == TSR_OK)
        local = take_tensors(&e, src, dst, workspace, bytes);
    if (local != TSR_OK) {
        e.src = (tsr_tensor){0};
        e.dst = (tsr_tensor){0};
    }
    e.device = plan->in_dst ? e.dst.device : e.src.device;
    e.ops = tsr_device_resolve(plan->context, e.device);
    e.eager = plan->eager && !e.device.driver;
    e.result = e.dst;
    if (tsr_plan_stages_results(plan) && !e.eager && e.src.data == e.dst.data && e.dst.data)
        e.result = tsr_tensor_contiguous(workspace, e.dst.dtype, e.dst.ndim, e.dst.shape);
    return run(&e, local);
}

tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst, void *workspace,
                            size_t bytes, tsr_stream stream)
{
    if (!plan || !comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_execute: %s is NULL", !plan ? "plan" : "comm");
    if (plan->rank != tsr_comm_rank(comm))
        return tsr_status_set(TSR_ERROR_STATE, "the plan is for rank %lld, but the communicator is that of rank %d", (long long)plan->rank,
                              tsr_comm_rank(comm));
    if (!plan->in_src && !plan->in_dst)
        return TSR_OK;
    const uint64_t key = __atomic_load_n(&plan->group_key, __ATOMIC_ACQUIRE);
    const tsr_group *group = key ? tsr_group_find(comm, key) : NULL;
    const bool prepared = group && group->scratch_bytes >= plan->scratch_bytes;
    const tsr_status local =
        prepared
            ? TSR_OK
            : tsr_status_set(TSR_ERROR_STATE, "the plan was not prepared on this communicator: every rank calls tsr_plan_prepare() first");
    /* A group that other plans made may have room enough for this one on some ranks, which wait for the others. */
    return group ? tsr_plan_run(plan, group, src, dst, workspace, bytes, stream, local) : local;
}
