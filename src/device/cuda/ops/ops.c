/* Ops on devices: finds the kernel by the row's name, describes strides to it, and launches it. */
#include "device/cuda/ops/ops.h"

#include "device/cuda/batch.h"
#include "device/cuda/launch.h"
#include "device/cuda/ops/indexing.h"
#include "device/cuda/ops/rows.h"
#include "device/cuda/ops/storage.h"
#include "device/cuda/ops/updates.h"

#include <tessera/layout.h>
#include <tessera/sys/ops.h>

#include <string.h>

static const char *const pointwise_rows[] = {
#define ROW(name, row) [TSR_CUDA_##name] = row,
    TSR_CUDA_POINTWISE(ROW)
#undef ROW
};

static const struct {
    const char *row;
    int statistics;
} norm_rows[] = {
#define ROW(name, row, statistics) [TSR_CUDA_NORM_##name] = {row, statistics},
    TSR_CUDA_NORMS(ROW)
#undef ROW
};

/* Per storage: the kernel that computes pointwise ops. */
static const tsr_cuda_kernel element_kernels[TSR_CUDA_STORAGE_END] = {
    [TSR_CUDA_AS_F64] = TSR_CUDA_ELEMENTS_F64,  [TSR_CUDA_AS_F32] = TSR_CUDA_ELEMENTS_F32,
    [TSR_CUDA_AS_F16] = TSR_CUDA_ELEMENTS_F32,  [TSR_CUDA_AS_BF16] = TSR_CUDA_ELEMENTS_F32,
    [TSR_CUDA_AS_I64] = TSR_CUDA_ELEMENTS_I64,  [TSR_CUDA_AS_I32] = TSR_CUDA_ELEMENTS_I32,
    [TSR_CUDA_AS_BOOL] = TSR_CUDA_ELEMENTS_BOOL};

/* An op that is launched. */
typedef struct op_launch {
    const tsr_cuda *cuda;
    const tsr_kernel_call *call;
    tsr_stream stream;
} op_launch;

static int find_pointwise(const char *op)
{
    for (int code = 0; code < TSR_CUDA_POINTWISE_END; code++)
        if (strcmp(pointwise_rows[code], op) == 0)
            return code;
    return -1;
}

static int find_norm(const char *op)
{
    for (int code = 0; code < TSR_CUDA_NORM_END; code++)
        if (strcmp(norm_rows[code].row, op) == 0)
            return code;
    return -1;
}

/* True if kernels can read and write a tensor; one that is left out, too. */
static bool is_taken(const tsr_tensor *tensor)
{
    return tensor->ndim < 0 ||
           (tsr_cuda_storage_of(tensor->dtype) >= 0 && (uintptr_t)tensor->data % tsr_dtype_bytes(tensor->dtype) == 0);
}

static bool are_taken(const tsr_kernel_call *call)
{
    for (int i = 0; i < call->input_count; i++)
        if (!is_taken(&call->inputs[i]))
            return false;
    for (int i = 0; i < call->output_count; i++)
        if (!is_taken(&call->outputs[i]))
            return false;
    return true;
}

/* A walk over elements before it is cut: sizes, innermost dim first. */
typedef struct box {
    int64_t sizes[TSR_CUDA_OP_DIMS];
    tsr_cuda_elements given;
} box;

/* True if dim d + 1 goes on where dim d ends in all tensors. */
static bool is_one_dim(const box *b, int d)
{
    for (int i = 0; i < 4; i++)
        if (b->given.tensors[i].strides[d + 1] != b->given.tensors[i].strides[d] * b->sizes[d])
            return false;
    return true;
}

/* Adds a dim of the output, outside of those before; dims that are one are joined. */
static void add_dim(box *b, const op_launch *op, int dim)
{
    const tsr_tensor *const out = &op->call->outputs[0];
    const int d = b->given.ndim;
    if (out->shape[dim] == 1)
        return;
    for (int i = 0; i < 4; i++) {
        const tsr_tensor *const t = i < b->given.inputs ? &op->call->inputs[i] : out;
        const int own = dim - (out->ndim - t->ndim);
        const bool whole = own >= 0 && t->shape[own] == out->shape[dim];
        b->given.tensors[i].strides[d] = whole ? t->strides[own] * (int64_t)tsr_dtype_bytes(t->dtype) : 0;
        if (i >= b->given.inputs && i < 3)
            b->given.tensors[i].strides[d] = 0;
    }
    b->sizes[d] = out->shape[dim];
    if (d > 0 && is_one_dim(b, d - 1))
        b->sizes[d - 1] *= out->shape[dim];
    else
        b->given.ndim++;
}

/* Launches a box, in halves where a kernel cannot number all of its elements. */
static tsr_status launch_box(const op_launch *op, tsr_cuda_kernel kernel, const box *whole)
{
    int64_t units = 1, largest = 0;
    int longest = 0;
    for (int d = 0; d < whole->given.ndim; d++) {
        longest = whole->sizes[d] > largest ? d : longest;
        largest = whole->sizes[longest];
    }
    for (int d = 0; d < whole->given.ndim; d++)
        units = units > TSR_CUDA_UNITS ? units : units * whole->sizes[d];
    box part = *whole;
    if (units > TSR_CUDA_UNITS) {
        part.sizes[longest] = largest / 2;
        TSR_TRY(launch_box(op, kernel, &part));
        part.sizes[longest] = largest - largest / 2;
        for (int i = 0; i < 4; i++)
            if (part.given.tensors[i].data)
                part.given.tensors[i].data += part.given.tensors[i].strides[longest] * (largest / 2);
        return launch_box(op, kernel, &part);
    }
    part.given.units = (uint32_t)units;
    for (int d = 0; d < part.given.ndim; d++)
        part.given.by[d] = tsr_cuda_make_divisor((uint32_t)part.sizes[d]);
    void *arguments[] = {&part.given};
    return tsr_cuda_launch(op->cuda, kernel, (uint32_t)((units + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS), arguments,
                           op->stream);
}

static tsr_cuda_view view_of(const tsr_tensor *tensor)
{
    return (tsr_cuda_view){.data = tensor->data, .storage = tsr_cuda_storage_of(tensor->dtype)};
}

static tsr_status launch_pointwise(const op_launch *op, int code)
{
    const tsr_kernel_call *const call = op->call;
    const tsr_tensor *const out = &call->outputs[0];
    const bool by_input = code == TSR_CUDA_COPY || code >= TSR_CUDA_EQ;
    box b = {.given = {.code = code, .inputs = call->input_count}};
    for (int dim = 0; dim < out->ndim; dim++)
        if (out->shape[dim] == 0)
            return TSR_OK;
    for (int i = 0; i < call->input_count; i++)
        b.given.tensors[i] = view_of(&call->inputs[i]);
    b.given.tensors[3] = view_of(out);
    for (int i = 0; i < 2 && call->attributes[i].name; i++) {
        const tsr_attribute *const a = &call->attributes[i];
        b.given.parameters[i] = a->kind == TSR_ATTRIBUTE_FLOAT ? a->number : (double)a->integer;
    }
    for (int dim = out->ndim - 1; dim >= 0; dim--)
        add_dim(&b, op, dim);
    return launch_box(op, element_kernels[tsr_cuda_storage_of(by_input ? call->inputs[0].dtype : out->dtype)], &b);
}

static bool is_softmax(int code)
{
    return code <= TSR_CUDA_NORM_LOG_SOFTMAX_GRADIENT;
}

/* True if the op's second operand has all dims, too, and so has the first. */
static bool is_gradient(int code)
{
    return code == TSR_CUDA_NORM_SOFTMAX_GRADIENT || code == TSR_CUDA_NORM_LOG_SOFTMAX_GRADIENT ||
           code == TSR_CUDA_NORM_RMS_GRADIENT || code == TSR_CUDA_NORM_LAYER_GRADIENT;
}

/* True if dim `dim` of `ndim` is within rows. */
static bool is_along(const tsr_kernel_call *call, int code, int dim, int ndim)
{
    if (is_softmax(code))
        return dim == (call->attributes[0].integer == -1 ? ndim - 1 : call->attributes[0].integer);
    return dim >= ndim - call->attributes[1].integer;
}

/* Elements within a row, or rows. */
static int64_t count(const tsr_kernel_call *call, int code, bool along)
{
    const tsr_tensor *const x = &call->inputs[0];
    int64_t elements = 1;
    for (int dim = 0; dim < x->ndim; dim++)
        if (is_along(call, code, dim, x->ndim) == along)
            elements = elements > TSR_CUDA_UNITS ? elements : elements * x->shape[dim];
    return elements;
}

/* A tensor whose last dims are those of x. */
static tsr_cuda_row_view row_view(const tsr_kernel_call *call, int code, const tsr_tensor *tensor)
{
    const int ndim = call->inputs[0].ndim;
    tsr_cuda_row_view view = {.data = NULL};
    int across = 0, along = 0;
    if (tensor->ndim < 0)
        return view;
    view.data = tensor->data;
    for (int dim = ndim - 1; dim >= 0; dim--) {
        const int own = dim - (ndim - tensor->ndim);
        const int64_t stride = own < 0 ? 0 : tensor->strides[own] * (int64_t)tsr_dtype_bytes(tensor->dtype);
        if (is_along(call, code, dim, ndim))
            view.along[along++] = stride;
        else
            view.across[across++] = stride;
    }
    return view;
}

static tsr_cuda_walk walk_of(const tsr_kernel_call *call, int code, bool along)
{
    const tsr_tensor *const x = &call->inputs[0];
    tsr_cuda_walk walk = {.count = (uint32_t)count(call, code, along)};
    for (int dim = x->ndim - 1; dim >= 0; dim--)
        if (is_along(call, code, dim, x->ndim) == along)
            walk.by[walk.ndim++] = tsr_cuda_make_divisor(walk.count ? (uint32_t)x->shape[dim] : 1);
    return walk;
}

/* True if this rank's sums over rows count: those that do not depend on weight are the whole sums,
 * which one rank alone adds where weight is a Partial sum. */
static bool counts(const tsr_kernel_call *call)
{
    const tsr_layout *const weight = call->layouts[2];
    bool first = true;
    for (int k = 0; weight && k < tsr_mesh_ndim(tsr_layout_mesh(weight)); k++) {
        const tsr_placement *const at = &tsr_layout_placements(weight)[k];
        first = first && (at->kind != TSR_PARTIAL || at->op != TSR_SUM || call->coordinate[k] == 0);
    }
    return first;
}

static tsr_status launch_rows(const op_launch *op, tsr_cuda_norm *given)
{
    void *arguments[] = {given};
    return given->across.count > 0
               ? tsr_cuda_launch(op->cuda, TSR_CUDA_NORM_ROWS, given->across.count, arguments, op->stream)
               : TSR_OK;
}

/* Gradients with sums over rows: dx, which may lie where dout or x does, is made last. */
static tsr_status launch_sums(const op_launch *op, tsr_cuda_norm *given)
{
    void *arguments[] = {given};
    const tsr_cuda_row_view dx = given->out;
    given->out = (tsr_cuda_row_view){.data = NULL};
    given->kept = op->call->workspace;
    TSR_TRY(launch_rows(op, given));
    TSR_TRY(tsr_cuda_launch(op->cuda, TSR_CUDA_NORM_SUMS,
                            (given->along.count + TSR_CUDA_SUM_COLUMNS - 1) / TSR_CUDA_SUM_COLUMNS, arguments,
                            op->stream));
    given->out = dx;
    given->kept = NULL;
    return launch_rows(op, given);
}

static tsr_status launch_norm(const op_launch *op, int code)
{
    const tsr_kernel_call *const call = op->call;
    const int elements = is_gradient(code) ? 2 : 1;
    tsr_cuda_norm given = {.epsilon = is_softmax(code) ? 0 : call->attributes[0].number,
                           .code = code,
                           .storage = tsr_cuda_storage_of(call->inputs[0].dtype),
                           .statistics = norm_rows[code].statistics,
                           .across = walk_of(call, code, false),
                           .along = walk_of(call, code, true)};
    for (int i = 0; i < elements; i++)
        given.in[i] = row_view(call, code, &call->inputs[i]);
    if (elements < call->input_count)
        given.weight = row_view(call, code, &call->inputs[elements]);
    if (elements + 1 < call->input_count)
        given.bias = row_view(call, code, &call->inputs[elements + 1]);
    given.out = row_view(call, code, &call->outputs[0]);
    for (int i = 1; i < call->output_count; i++)
        given.sums[i - 1] = row_view(call, code, &call->outputs[i]);
    if (given.along.count == 0)
        return TSR_OK;
    if (call->output_count == 1)
        return launch_rows(op, &given);
    given.counted = counts(call);
    return launch_sums(op, &given);
}

/* Answers the bytes of workspace of a call. */
static tsr_status answer(const tsr_kernel_call *call, int pointwise, int norm)
{
    const int64_t rows = norm >= 0 ? count(call, norm, false) : 0;
    int64_t bytes = call->output_count > 1 ? rows * TSR_CUDA_STATISTICS * (int64_t)sizeof(double) : 0;
    if (tsr_cuda_lists_rows(call))
        bytes = tsr_cuda_takes_rows(call) ? 0 : -1;
    else if (tsr_cuda_indexes(call))
        bytes = tsr_cuda_indexing_bytes(call);
    else if (tsr_cuda_updates(call))
        bytes = are_taken(call) ? 0 : -1;
    else if ((pointwise < 0 && norm < 0) || !are_taken(call) || rows > TSR_CUDA_UNITS ||
             (norm >= 0 && count(call, norm, true) > TSR_CUDA_UNITS))
        bytes = -1;
    if (bytes < 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: no kernel takes this call of %s", call->op);
    *call->query = bytes;
    return TSR_OK;
}

static tsr_status launch(const op_launch *op, tsr_cuda *cuda, int index)
{
    const int pointwise = find_pointwise(op->call->op);
    TSR_TRY(tsr_cuda_faults_report(&cuda->gpu[index].faults, &cuda->mutex, op->stream));
    if (tsr_cuda_lists_rows(op->call))
        return tsr_cuda_combine_rows(cuda, op->call, op->stream);
    if (tsr_cuda_indexes(op->call))
        return tsr_cuda_index_table(cuda, index, op->call, op->stream);
    if (tsr_cuda_updates(op->call))
        return tsr_cuda_update_weight(cuda, op->call, op->stream);
    return pointwise >= 0 ? launch_pointwise(op, pointwise) : launch_norm(op, find_norm(op->call->op));
}

tsr_status tsr_cuda_run_op(void *self, int index, const struct tsr_kernel_call *call, tsr_stream stream)
{
    const op_launch op = {.cuda = self, .call = call, .stream = stream};
    int previous;
    if (call->query)
        return answer(call, find_pointwise(call->op), find_norm(call->op));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = launch(&op, self, index);
    tsr_cuda_leave(previous);
    return status;
}
