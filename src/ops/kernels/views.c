#include "ops/kernels/views.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Intervals that are read without allocating memory. */
#define FEW 32

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int tsr_view_dim(const tsr_attribute *attribute, int ndim)
{
    const int64_t dim = attribute->integer == -1 ? ndim - 1 : attribute->integer;
    return dim < 0 || dim >= ndim ? -1 : (int)dim;
}

tsr_view_range tsr_view_range_of(int code, const tsr_attribute *attributes, int ndim, const int64_t *shape,
                                 const int64_t *like)
{
    tsr_view_range range = {.dim = tsr_view_dim(&attributes[0], ndim), .step = 1};
    const int64_t size = shape[range.dim], start = code == TSR_VIEW_REST ? 0 : attributes[1].integer;
    range.start = code == TSR_VIEW_REST && like ? like[range.dim] : start;
    range.end = size;
    if (code == TSR_VIEW_SLICE || code == TSR_VIEW_SLICE_GRADIENT) {
        range.end = smaller(attributes[2].integer, size);
        range.step = smaller(attributes[3].integer, larger(size, 1));
    } else if (code == TSR_VIEW_NARROW || code == TSR_VIEW_NARROW_GRADIENT)
        range.end = start + attributes[2].integer;
    else if (code == TSR_VIEW_SLICE_LIKE)
        range.end = start + like[range.dim];
    return range;
}

bool tsr_view_order_of(int code, const tsr_attribute *attributes, int ndim, int order[TSR_MAX_DIMS])
{
    bool named[TSR_MAX_DIMS] = {false};
    for (int dim = 0; dim < ndim; dim++)
        order[dim] = dim;
    if (code == TSR_VIEW_TRANSPOSE) {
        const int a = tsr_view_dim(&attributes[0], ndim), b = tsr_view_dim(&attributes[1], ndim);
        if (a < 0 || b < 0)
            return false;
        order[a] = b;
        order[b] = a;
        return true;
    }
    const tsr_attribute *const dims = &attributes[0];
    for (int i = 0; i < dims->count; i++) {
        if (dims->count != ndim || dims->list[i] < 0 || dims->list[i] >= ndim || named[dims->list[i]])
            return false;
        named[dims->list[i]] = true;
        if (code == TSR_VIEW_PERMUTE)
            order[i] = (int)dims->list[i];
        else
            order[dims->list[i]] = i;
    }
    return dims->count == ndim;
}

static void put_integer(uint64_t bits, size_t bytes, unsigned char *out)
{
    const uint8_t byte = (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const void *const from[] = {[1] = &byte, [2] = &half, [4] = &word, [8] = &bits};
    memcpy(out, from[bytes], bytes);
}

tsr_status tsr_view_element(tsr_dtype dtype, double value, unsigned char *out)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    const bool complex = info->kind == TSR_CLASS_COMPLEX;
    void *self;
    memset(out, 0, 16);
    if (info->kind != TSR_CLASS_FLOAT && !complex) {
        put_integer(value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value, info->bytes, out);
        return TSR_OK;
    }
    const tsr_dtype real = !complex ? dtype : info->bytes == 8 ? TSR_F32 : TSR_F64;
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, out, real, &value, TSR_F64, 1, NULL);
}

/* A range of a tensor along a dim: `count` elements from `first` on, `step` apart. */
static tsr_tensor take_range(const tsr_tensor *tensor, int dim, int64_t first, int64_t count, int64_t step)
{
    tsr_tensor part = *tensor;
    part.shape[dim] = count;
    part.strides[dim] *= count > 1 ? step : 1;
    if (part.data && count > 0)
        part.data = (char *)part.data + first * tensor->strides[dim] * (int64_t)tsr_dtype_bytes(part.dtype);
    return part;
}

/* Copies a tensor to one of the same shape, which does not overlap it. */
static tsr_status copy_tensor(const tsr_kernel_call *call, const tsr_tensor *from, const tsr_tensor *to)
{
    const tsr_device_table *table;
    tsr_box_copy box = {.dst = to->data, .src = from->data, .element_bytes = tsr_dtype_bytes(to->dtype)};
    box.ndim = to->ndim;
    for (int dim = 0; dim < to->ndim; dim++) {
        if (to->shape[dim] == 0)
            return TSR_OK;
        box.shape[dim] = to->shape[dim];
        box.dst_strides[dim] = to->strides[dim];
        box.src_strides[dim] = from->strides[dim];
    }
    TSR_TRY(tsr_device_host_table(call->kernels, &table));
    return table->copy_boxes(NULL, 0, &box, 1, NULL);
}

static tsr_status fill_tensor(const tsr_kernel_call *call, const tsr_tensor *to, double value)
{
    const tsr_device_table *table;
    tsr_box_fill box = {.dst = to->data, .element_bytes = tsr_dtype_bytes(to->dtype), .ndim = to->ndim};
    for (int dim = 0; dim < to->ndim; dim++) {
        if (to->shape[dim] == 0)
            return TSR_OK;
        box.shape[dim] = to->shape[dim];
        box.dst_strides[dim] = to->strides[dim];
    }
    TSR_TRY(tsr_view_element(to->dtype, value, box.value));
    TSR_TRY(tsr_device_host_table(call->kernels, &table));
    return table->fill(NULL, 0, &box, NULL);
}

/* The indices of a dim that this rank owns. */
typedef struct owned {
    tsr_context *context;
    size_t count;
    tsr_interval *list, few[FEW];
    void *many;
} owned;

static tsr_status begin_owned(owned *own, const tsr_kernel_call *call, const tsr_layout *layout, int dim)
{
    own->context = tsr_mesh_context(tsr_layout_mesh(layout));
    own->list = own->few;
    own->many = NULL;
    TSR_TRY(tsr_layout_intervals(layout, call->coordinate, dim, own->few, FEW, &own->count));
    if (own->count <= FEW)
        return TSR_OK;
    TSR_TRY(tsr_allocate(own->context, own->count * sizeof *own->list, &own->many));
    own->list = own->many;
    const tsr_status status = tsr_layout_intervals(layout, call->coordinate, dim, own->list, own->count, &own->count);
    if (status != TSR_OK)
        tsr_release(own->context, own->many);
    return status;
}

static void end_owned(owned *own)
{
    tsr_release(own->context, own->many);
}

/* How many indices below `at` this rank owns. */
static int64_t count_below(const owned *own, int64_t at)
{
    int64_t count = 0;
    for (size_t i = 0; i < own->count && own->list[i].begin < at; i++)
        count += smaller(own->list[i].end, at) - own->list[i].begin;
    return count;
}

/* A run of a range within one interval that this rank owns: its elements in the local tensor. */
typedef struct local_run {
    int64_t first, count;
} local_run;

/* The run of a range in interval `i`; `before` elements of the local tensor lie before the
 * interval. */
static local_run find_run(const owned *own, size_t i, const tsr_view_range *range, int64_t before)
{
    const int64_t begin = larger(own->list[i].begin, range->start), end = smaller(own->list[i].end, range->end);
    const int64_t skipped = (begin - range->start + range->step - 1) / range->step;
    const int64_t at = range->start + skipped * range->step;
    if (at >= end)
        return (local_run){0, 0};
    return (local_run){before + at - own->list[i].begin, (end - at + range->step - 1) / range->step};
}

/* Copies between a tensor of which this rank owns `own` along the range's dim, and one that has the
 * elements of the range alone. */
static tsr_status copy_runs(const tsr_kernel_call *call, const owned *own, const tsr_view_range *range,
                            const tsr_tensor *all, const tsr_tensor *part, bool to_part)
{
    int64_t before = 0, done = 0;
    for (size_t i = 0; i < own->count; i++) {
        const local_run run = find_run(own, i, range, before);
        before += own->list[i].end - own->list[i].begin;
        if (run.count == 0)
            continue;
        const tsr_tensor a = take_range(all, range->dim, run.first, run.count, range->step);
        const tsr_tensor b = take_range(part, range->dim, done, run.count, 1);
        TSR_TRY(to_part ? copy_tensor(call, &a, &b) : copy_tensor(call, &b, &a));
        done += run.count;
    }
    return TSR_OK;
}

/* The range of this call's op in the whole tensor of which it is a range. */
static tsr_view_range range_of_call(const tsr_kernel_call *call, const tsr_layout *whole)
{
    const tsr_layout *const other = call->input_count > 1 ? call->layouts[1] : NULL;
    const int64_t *const like = other ? tsr_layout_shape(other) : NULL;
    return tsr_view_range_of(call->code, call->attributes, tsr_layout_ndim(whole), tsr_layout_shape(whole), like);
}

/* A slice is a view if its local elements are equally far apart. */
static tsr_status view_slice(const tsr_kernel_call *call, tsr_tensor *out, bool *fits)
{
    owned own;
    const tsr_view_range range = range_of_call(call, call->layouts[0]);
    int64_t before = 0, done = 0, first = 0, step = range.step;
    TSR_TRY(begin_owned(&own, call, call->layouts[0], range.dim));
    for (size_t i = 0; i < own.count; i++) {
        const local_run run = find_run(&own, i, &range, before);
        before += own.list[i].end - own.list[i].begin;
        if (run.count == 0)
            continue;
        first = done == 0 ? run.first : first;
        step = done == 1 ? run.first - first : step;
        *fits = *fits && run.first == first + done * step && (run.count == 1 || step == range.step || done == 0);
        done += run.count;
    }
    end_owned(&own);
    *out = take_range(&call->inputs[0], range.dim, first, done, step);
    return TSR_OK;
}

static tsr_status copy_slice(const tsr_kernel_call *call)
{
    owned own;
    const tsr_view_range range = range_of_call(call, call->layouts[0]);
    TSR_TRY(begin_owned(&own, call, call->layouts[0], range.dim));
    const tsr_status status = copy_runs(call, &own, &range, &call->inputs[0], &call->outputs[0], true);
    end_owned(&own);
    return status;
}

static tsr_status copy_slice_gradient(const tsr_kernel_call *call)
{
    owned own;
    const tsr_view_range range = range_of_call(call, call->result_layouts[0]);
    TSR_TRY(fill_tensor(call, &call->outputs[0], 0));
    TSR_TRY(begin_owned(&own, call, call->result_layouts[0], range.dim));
    const tsr_status status = copy_runs(call, &own, &range, &call->outputs[0], &call->inputs[0], false);
    end_owned(&own);
    return status;
}

static void view_permuted(const tsr_kernel_call *call, tsr_tensor *out)
{
    int order[TSR_MAX_DIMS];
    const tsr_tensor *const in = &call->inputs[0];
    tsr_view_order_of(call->code, call->attributes, in->ndim, order);
    out->data = in->data;
    for (int dim = 0; dim < in->ndim; dim++)
        out->strides[dim] = in->strides[order[dim]];
}

static void view_expanded(const tsr_kernel_call *call, tsr_tensor *out)
{
    const tsr_tensor *const in = &call->inputs[0];
    out->data = in->data;
    for (int dim = 0; dim < out->ndim; dim++) {
        const int own = dim - (out->ndim - in->ndim);
        out->strides[dim] = own < 0 || in->shape[own] != out->shape[dim] ? 0 : in->strides[own];
    }
}

/* The strides of the dims that a tensor is reshaped to, if there are such: dims of both that have
 * equally many elements are taken together, and those of the tensor must be one dim. */
static bool find_strides(const tsr_tensor *in, tsr_tensor *out)
{
    int own = 0, dim = 0;
    out->data = in->data;
    while (dim < out->ndim) {
        int64_t have = 1, want = out->shape[dim];
        const int first = dim++;
        int last = -1;
        bool joined = true;
        while (have < want) {
            if (in->shape[own] != 1) {
                joined = joined && (last < 0 || in->strides[last] == in->strides[own] * in->shape[own]);
                have *= in->shape[own];
                last = own;
            }
            own++;
            for (; have > want && dim < out->ndim; dim++)
                want *= out->shape[dim];
        }
        if (!joined)
            return false;
        int64_t stride = last < 0 ? 1 : in->strides[last];
        for (int d = dim - 1; d >= first; d--) {
            out->strides[d] = stride;
            stride *= out->shape[d];
        }
    }
    return true;
}

static bool is_empty(const tsr_tensor *tensor)
{
    for (int dim = 0; dim < tensor->ndim; dim++) {
        if (tensor->shape[dim] == 0)
            return true;
    }
    return false;
}

/* Views a tensor under the shape that is set in `out`. */
static bool view_reshaped(const tsr_tensor *in, tsr_tensor *out)
{
    if (!is_empty(out))
        return find_strides(in, out);
    const tsr_tensor contiguous = tsr_tensor_contiguous(in->data, in->dtype, out->ndim, out->shape);
    memcpy(out->strides, contiguous.strides, sizeof out->strides);
    out->data = in->data;
    return true;
}

tsr_status tsr_view_make(const tsr_kernel_call *call, tsr_tensor *out, bool *fits)
{
    *fits = true;
    switch (call->code) {
    case TSR_VIEW_TRANSPOSE:
    case TSR_VIEW_PERMUTE:
    case TSR_VIEW_PERMUTE_BACK:
        view_permuted(call, out);
        return TSR_OK;
    case TSR_VIEW_EXPAND:
        view_expanded(call, out);
        return TSR_OK;
    case TSR_VIEW_RESHAPE:
        *fits = view_reshaped(&call->inputs[0], out);
        return TSR_OK;
    default:
        return view_slice(call, out, fits);
    }
}

/* Copies a tensor to one of another shape, by row-major order; one of them has the strides of the
 * other's shape. */
static tsr_status copy_reshaped(const tsr_kernel_call *call)
{
    tsr_tensor from = call->outputs[0], to = call->inputs[0];
    if (view_reshaped(&call->inputs[0], &from))
        return copy_tensor(call, &from, &call->outputs[0]);
    if (view_reshaped(&call->outputs[0], &to))
        return copy_tensor(call, &call->inputs[0], &to);
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: neither tensor can be viewed under the other's shape", call->op);
}

static tsr_status copy_view(const tsr_kernel_call *call)
{
    bool fits;
    tsr_tensor from = call->outputs[0];
    TSR_TRY(tsr_view_make(call, &from, &fits));
    return copy_tensor(call, &from, &call->outputs[0]);
}

static tsr_status copy_concat(const tsr_kernel_call *call)
{
    const tsr_tensor *const out = &call->outputs[0];
    const int dim = tsr_view_dim(&call->attributes[0], out->ndim);
    int64_t at = 0;
    for (int i = 0; i < call->input_count; i++) {
        const tsr_tensor *const in = &call->inputs[i];
        if (in->ndim < 0)
            continue;
        const tsr_tensor part = take_range(out, dim, at, in->shape[dim], 1);
        TSR_TRY(copy_tensor(call, in, &part));
        at += in->shape[dim];
    }
    return TSR_OK;
}

static tsr_status copy_padded(const tsr_kernel_call *call)
{
    owned own;
    const tsr_tensor *const in = &call->inputs[0], *const out = &call->outputs[0];
    const int dim = tsr_view_dim(&call->attributes[0], out->ndim);
    TSR_TRY(begin_owned(&own, call, call->result_layouts[0], dim));
    const int64_t before = count_below(&own, call->attributes[1].integer), behind = before + in->shape[dim];
    end_owned(&own);
    const double value = call->attributes[3].number;
    const tsr_tensor head = take_range(out, dim, 0, before, 1);
    const tsr_tensor middle = take_range(out, dim, before, in->shape[dim], 1);
    const tsr_tensor tail = take_range(out, dim, behind, out->shape[dim] - behind, 1);
    TSR_TRY(fill_tensor(call, &head, value));
    TSR_TRY(fill_tensor(call, &tail, value));
    return copy_tensor(call, in, &middle);
}

static tsr_status copy_flipped(const tsr_kernel_call *call)
{
    const tsr_attribute *const dims = &call->attributes[0];
    tsr_tensor from = call->inputs[0];
    if (is_empty(&from))
        return TSR_OK;
    for (int dim = 0; dim < from.ndim; dim++) {
        bool flipped = dims->count == 0;
        for (int i = 0; i < dims->count; i++)
            flipped = flipped || dims->list[i] == dim;
        if (flipped)
            from = take_range(&from, dim, from.shape[dim] - 1, from.shape[dim], -1);
    }
    return copy_tensor(call, &from, &call->outputs[0]);
}

static tsr_status copy_rolled(const tsr_kernel_call *call)
{
    const tsr_tensor *const in = &call->inputs[0], *const out = &call->outputs[0];
    const int dim = tsr_view_dim(&call->attributes[0], out->ndim);
    const int64_t size = out->shape[dim];
    if (size == 0)
        return TSR_OK;
    int64_t shift = call->attributes[1].integer % size;
    shift = call->code == TSR_VIEW_ROLL ? shift : -shift;
    shift += shift < 0 ? size : 0;
    const tsr_tensor first = take_range(in, dim, 0, size - shift, 1);
    const tsr_tensor last = take_range(in, dim, size - shift, shift, 1);
    const tsr_tensor head = take_range(out, dim, 0, shift, 1), tail = take_range(out, dim, shift, size - shift, 1);
    TSR_TRY(copy_tensor(call, &first, &tail));
    return copy_tensor(call, &last, &head);
}

/* Copies row `local` of matrices, of which the first `low` columns stay, or are 0. */
static tsr_status mask_row(const tsr_kernel_call *call, int64_t local, int64_t low)
{
    const tsr_tensor *const in = &call->inputs[0], *const out = &call->outputs[0];
    const int row = out->ndim - 2, column = row + 1;
    const int64_t columns = out->shape[column];
    const bool lower = call->code == TSR_VIEW_TRIL;
    const tsr_tensor from = take_range(in, row, local, 1, 1), to = take_range(out, row, local, 1, 1);
    const int64_t kept = lower ? 0 : low, kept_count = lower ? low : columns - low;
    const tsr_tensor source = take_range(&from, column, kept, kept_count, 1);
    const tsr_tensor target = take_range(&to, column, kept, kept_count, 1);
    const tsr_tensor zeros = take_range(&to, column, lower ? low : 0, columns - kept_count, 1);
    TSR_TRY(copy_tensor(call, &source, &target));
    return fill_tensor(call, &zeros, 0);
}

static tsr_status mask_rows(const tsr_kernel_call *call, const owned *rows, const owned *columns)
{
    const int64_t diagonal = larger(smaller(call->attributes[0].integer, INT64_MAX / 4), -INT64_MAX / 4);
    const int64_t first = diagonal + (call->code == TSR_VIEW_TRIL);
    int64_t local = 0;
    for (size_t i = 0; i < rows->count; i++) {
        for (int64_t row = rows->list[i].begin; row < rows->list[i].end; row++)
            TSR_TRY(mask_row(call, local++, count_below(columns, row + first)));
    }
    return TSR_OK;
}

static tsr_status copy_masked(const tsr_kernel_call *call)
{
    owned rows, columns;
    const tsr_layout *const layout = call->result_layouts[0];
    const int ndim = tsr_layout_ndim(layout);
    TSR_TRY(begin_owned(&rows, call, layout, ndim - 2));
    tsr_status status = begin_owned(&columns, call, layout, ndim - 1);
    if (status == TSR_OK) {
        status = mask_rows(call, &rows, &columns);
        end_owned(&columns);
    }
    end_owned(&rows);
    return status;
}

static tsr_status copy_apart(const tsr_kernel_call *call)
{
    switch (call->code) {
    case TSR_VIEW_RESHAPE:
        return copy_reshaped(call);
    case TSR_VIEW_SLICE:
    case TSR_VIEW_NARROW:
    case TSR_VIEW_SLICE_LIKE:
    case TSR_VIEW_REST:
        return copy_slice(call);
    case TSR_VIEW_SLICE_GRADIENT:
    case TSR_VIEW_NARROW_GRADIENT:
        return copy_slice_gradient(call);
    case TSR_VIEW_CONCAT:
        return copy_concat(call);
    case TSR_VIEW_PAD:
        return copy_padded(call);
    case TSR_VIEW_FLIP:
        return copy_flipped(call);
    case TSR_VIEW_ROLL:
    case TSR_VIEW_ROLL_BACK:
        return copy_rolled(call);
    case TSR_VIEW_TRIL:
    case TSR_VIEW_TRIU:
        return copy_masked(call);
    default:
        return copy_view(call);
    }
}

/* The bytes behind a tensor's first element, up to its last one's end; its strides are not
 * negative. */
static uintptr_t span_of(const tsr_tensor *tensor)
{
    int64_t last = 0;
    for (int dim = 0; dim < tensor->ndim; dim++)
        last += (tensor->shape[dim] - 1) * tensor->strides[dim];
    return (uintptr_t)(last + 1) * tsr_dtype_bytes(tensor->dtype);
}

static bool may_overlap(const tsr_tensor *a, const tsr_tensor *b)
{
    if (a->ndim < 0 || is_empty(a) || is_empty(b))
        return false;
    const uintptr_t first = (uintptr_t)a->data, second = (uintptr_t)b->data;
    return first < second + span_of(b) && second < first + span_of(a);
}

int64_t tsr_view_workspace(const tsr_kernel_call *call)
{
    const tsr_tensor *const out = &call->outputs[0];
    const int read = call->code == TSR_VIEW_CONCAT ? call->input_count : 1;
    int64_t count = 0;
    bool needed = false;
    for (int i = 0; i < read; i++)
        needed = needed || may_overlap(&call->inputs[i], out);
    if (call->code == TSR_VIEW_RESHAPE && !needed) {
        tsr_tensor from = *out, to = call->inputs[0];
        needed = !view_reshaped(&call->inputs[0], &from) && !view_reshaped(out, &to);
    }
    return needed && tsr_tensor_count(out, &count) == TSR_OK ? count * (int64_t)tsr_dtype_bytes(out->dtype) : 0;
}

tsr_status tsr_view_copy(const tsr_kernel_call *call)
{
    if (!call->workspace)
        return copy_apart(call);
    tsr_kernel_call apart = *call;
    const tsr_tensor *const out = &call->outputs[0];
    const tsr_tensor between = tsr_tensor_contiguous(call->workspace, out->dtype, out->ndim, out->shape);
    apart.outputs = &between;
    TSR_TRY(copy_apart(&apart));
    return copy_tensor(call, &between, out);
}
