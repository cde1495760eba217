/* What an execution is given, checked against its plan. */
#include "redistribute/execute/bind.h"

#include "base/checked.h"
#include "base/sort.h"
#include "base/text/text.h"
#include "placement/print.h"

#include <tessera/sys/status.h>

/* What a tensor must be: the shard that a layout gives this rank. */
typedef struct expectation {
    const char *name;
    const tsr_layout *layout;
    bool inside;
    int ndim;
    const int64_t *shape, *strides; /* strides: of a tensor without gaps */
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

static tsr_span span_of(const expectation *x, const tsr_tensor *t, int64_t elements)
{
    const uintptr_t begin = (uintptr_t)t->data;
    return (tsr_span){.begin = begin, .end = begin + (uintptr_t)elements * x->layout->element_bytes};
}

/* True for what nearly all callers bring: the expected shard, row by row without gaps, and not
 * empty. Nothing can be wrong with it, for no layout has more bytes than can be counted. */
static bool is_plain(const expectation *x, const tsr_tensor *t, tsr_span *span)
{
    if (!t || !t->data || t->dtype != x->layout->dtype || t->ndim != x->ndim)
        return false;
    for (int dim = 0; dim < x->ndim; dim++)
        if (t->shape[dim] != x->shape[dim] || t->strides[dim] != x->strides[dim])
            return false;
    const int64_t elements = x->ndim > 0 ? x->shape[0] * x->strides[0] : 1;
    if (elements == 0)
        return false;
    *span = span_of(x, t, elements);
    return true;
}

/* Adds to `*last`, the last element's distance from the first, what dim `dim` adds. False if the
 * bytes up to its end would overflow. */
static bool add_distance(const expectation *x, const tsr_tensor *t, int dim, int64_t *last)
{
    int64_t step = 0, end;
    if (t->shape[dim] > 1 && !tsr_multiply(t->strides[dim], t->shape[dim] - 1, &step))
        return false;
    return tsr_add_sizes(*last, step, last) && tsr_add_sizes(*last, 1, &end) &&
           tsr_multiply(end, (int64_t)x->layout->element_bytes, &end);
}

static tsr_status refuse_strides(const expectation *x, const tsr_tensor *t)
{
    char shape[TSR_SHAPE_TEXT], buffer[TSR_SHAPE_TEXT];
    tsr_text strides = {buffer, sizeof buffer, 0};
    for (int dim = 0; dim < t->ndim; dim++)
        tsr_text_append(&strides, dim ? ",%lld" : "%lld", (long long)t->strides[dim]);
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "%s: strides %s make elements of shape %s share memory that is to be written; give each dim a stride "
        "larger than what the smaller strides span",
        x->name, buffer, tsr_shape_print(t->ndim, t->shape, shape));
}

static tsr_status check_strides(const expectation *x, const tsr_tensor *t, bool written, tsr_span *span)
{
    int64_t last = 0;
    for (int dim = 0; dim < x->ndim; dim++) {
        if (t->strides[dim] < 0 || !add_distance(x, t, dim, &last))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stride %lld of dim %d is negative or overflows", x->name,
                                  (long long)t->strides[dim], dim);
        if (written && t->shape[dim] > 1 && t->strides[dim] == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: stride 0 of dim %d makes %lld elements share memory that is to be written",
                                  x->name, dim, (long long)t->shape[dim]);
    }
    *span = span_of(x, t, last + 1);
    return written && tsr_tensor_overlaps(t) ? refuse_strides(x, t) : TSR_OK;
}

/* Checks the tensor of a rank in the mesh. If the shard is empty, the tensor may have no data. */
static tsr_status check_tensor(const expectation *x, const tsr_tensor *given, bool written, tsr_span *span)
{
    if (!given)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is NULL, but this rank has a shard of it", x->name);
    if (given->dtype != x->layout->dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is of %s, but the layout of %s", x->name,
                              tsr_dtype_name(given->dtype), tsr_dtype_name(x->layout->dtype));
    if (!shape_fits(x, given)) {
        char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT], layout[512];
        const bool sane = given->ndim >= 0 && given->ndim <= TSR_MAX_DIMS;
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s has local shape %s, but %s gives this rank %s", x->name,
                              sane ? tsr_shape_print(given->ndim, given->shape, have) : "of an impossible ndim",
                              tsr_layout_describe(x->layout, layout, sizeof layout),
                              tsr_shape_print(x->ndim, x->shape, want));
    }
    if (tsr_shape_is_empty(x->ndim, x->shape))
        return TSR_OK;
    if (!given->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s has no data, but this rank's shard is not empty", x->name);
    return check_strides(x, given, written, span);
}

static tsr_place place_of(const expectation *x, const tsr_tensor *given)
{
    return given ? (tsr_place){given->data, given->strides} : (tsr_place){NULL, x->strides};
}

static bool same_place(const expectation *x, tsr_place a, tsr_place b)
{
    bool same = a.base == b.base;
    for (int dim = 0; dim < x->ndim; dim++)
        same &= a.strides[dim] == b.strides[dim] || x->shape[dim] <= 1;
    return same;
}

static tsr_status refuse_overlap(const tsr_item *item)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "src and dst overlap: %s",
                          item->problem.in_place
                              ? "this plan works in place, but only with the same pointer and strides for both"
                              : "this plan does not work in place, because its cuts differ");
}

static tsr_status check_workspace(const tsr_plan *plan, const void *workspace, size_t bytes)
{
    if (plan->workspace_bytes == 0 || (workspace && bytes >= plan->workspace_bytes))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the workspace has %zu bytes%s, but the plan needs %zu", bytes,
                          workspace ? "" : " at NULL", plan->workspace_bytes);
}

static tsr_status refuse_device(const tsr_execution *e, const tsr_tensor *t, const char *name)
{
    char a[64], b[64];
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s is on device %s, but src is on %s: all tensors of an execution must be on one device",
                          name, tsr_device_print(t->device, a), tsr_device_print(e->device, b));
}

/* This rank's first tensor decides on which device all must be. */
static tsr_status agree_on_device(tsr_execution *e, const expectation *x, const tsr_tensor *t)
{
    if (!e->placeless)
        return tsr_device_same(t->device, e->device) ? TSR_OK : refuse_device(e, t, x->name);
    e->placeless = false;
    e->device = t->device;
    return tsr_host_is_meant(t->device, e->stream) ? TSR_OK : tsr_refuse_host(x->name, t->device, e->stream);
}

/* A rank outside the mesh may bring no tensor. */
static tsr_status take_tensor(tsr_execution *e, const expectation *x, const tsr_tensor *given, bool written,
                              tsr_span *span)
{
    *span = (tsr_span){0};
    if (!x->inside)
        return TSR_OK;
    if (!is_plain(x, given, span))
        TSR_TRY(check_tensor(x, given, written, span));
    return agree_on_device(e, x, given);
}

static expectation expect_source(const tsr_item *item)
{
    const tsr_division *d = item->division;
    if (d)
        return (expectation){"src", item->given_src, item->in_src, d->from.ndim, d->from.shape, d->from.strides};
    return (expectation){"src", item->src, item->in_src, item->src_ndim, item->src_shape, item->src_strides};
}

static expectation expect_destination(const tsr_item *item)
{
    const tsr_division *d = item->division;
    if (d)
        return (expectation){"dst", item->given_dst, item->in_dst, d->to.ndim, d->to.shape, d->to.strides};
    return (expectation){"dst", item->dst, item->in_dst, item->dst_ndim, item->dst_shape, item->dst_strides};
}

/* Makes the strides of src and dst those of the divided dims. A rank outside a mesh does not use
 * its strides, and gets the item's. */
static void divide_places(tsr_bound *b)
{
    const tsr_item *item = b->item;
    const tsr_division *d = item->division;
    if (item->in_src)
        tsr_division_strides(d, &d->from, b->src.strides, b->divided[0]);
    if (item->in_dst)
        tsr_division_strides(d, &d->to, b->dst.strides, b->divided[1]);
    b->src.strides = item->in_src ? b->divided[0] : item->src_strides;
    b->dst.strides = item->in_dst ? b->divided[1] : item->dst_strides;
}

/* `spans`: the memory of the source, and of the destination; an empty span where a tensor is empty
 * or not there. */
static tsr_status take_pair(tsr_execution *e, tsr_bound *b, const tsr_tensor *src, const tsr_tensor *dst,
                            tsr_span *spans)
{
    const tsr_item *item = b->item;
    const expectation from = expect_source(item), to = expect_destination(item);
    TSR_TRY(take_tensor(e, &from, src, false, &spans[0]));
    TSR_TRY(take_tensor(e, &to, dst, true, &spans[1]));
    b->src = place_of(&from, src);
    b->dst = place_of(&to, dst);
    const bool apart = spans[0].begin >= spans[1].end || spans[1].begin >= spans[0].end;
    if (!apart && !(item->problem.in_place && same_place(&from, b->src, b->dst)))
        return refuse_overlap(item);
    if (item->division)
        divide_places(b);
    return TSR_OK;
}

static int by_begin(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_span *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Adds the memory of an item, if not empty, to the list. What the item moves in place is listed
 * once, as written. */
static size_t list_spans(tsr_span *list, size_t count, size_t item, const tsr_span *spans)
{
    for (int side = 1; side >= 0; side--) {
        const bool in_place = side == 0 && spans[0].begin == spans[1].begin;
        if (spans[side].begin == spans[side].end || in_place)
            continue;
        list[count] = spans[side];
        list[count].item = item;
        list[count++].written = side == 1;
    }
    return count;
}

/* Tensors of a batch may read the same memory; what one of them writes, no other may touch. */
static tsr_status check_apart(const tsr_execution *e, size_t count)
{
    tsr_sort_array(e->spans, count, sizeof *e->spans, by_begin, NULL);
    const tsr_span *last = NULL, *last_written = NULL; /* the spans seen that end last */
    for (size_t i = 0; i < count; i++) {
        const tsr_span *s = &e->spans[i], *before = s->written ? last : last_written;
        if (before && before->end > s->begin)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "dst of tensor %zu of %zu overlaps memory of tensor %zu: a destination shares memory "
                                  "with no other tensor",
                                  s->written ? s->item : before->item, e->plan->count,
                                  s->written ? before->item : s->item);
        if (!last || s->end > last->end)
            last = s;
        if (s->written && (!last_written || s->end > last_written->end))
            last_written = s;
    }
    return TSR_OK;
}

tsr_status tsr_name_tensor(size_t i, size_t count, tsr_status status)
{
    return count == 1 ? status : tsr_status_set(status, "tensor %zu of %zu: %s", i, count, tsr_status_message());
}

tsr_status tsr_execution_take(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes)
{
    size_t listed = 0;
    for (size_t i = 0; i < e->plan->count; i++) {
        tsr_span spans[2];
        const tsr_status status = take_pair(e, &e->bound[i], src ? &src[i] : NULL, dst ? &dst[i] : NULL, spans);
        if (status != TSR_OK)
            return tsr_name_tensor(i, e->plan->count, status);
        if (e->plan->count > 1)
            listed = list_spans(e->spans, listed, i, spans);
    }
    if (listed > 1)
        TSR_TRY(check_apart(e, listed));
    return check_workspace(e->plan, e->workspace, bytes);
}
