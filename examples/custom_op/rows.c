#include "rows.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

/* Both ops take one operand of f32. */
static tsr_status check_f32(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[0]);
    if (dtype != TSR_F32)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but must be f32", c->caller, c->op->operands[0],
                              tsr_dtype_name(dtype));
    results[0] = TSR_F32;
    return TSR_OK;
}

/* Where the rows of a tensor begin: its dims but the last are walked in row-major order. */
typedef struct rows {
    const tsr_tensor *tensor;
    int64_t index[TSR_MAX_DIMS];
} rows;

static int64_t count_rows(const tsr_tensor *t)
{
    int64_t count = t->ndim ? t->shape[t->ndim - 1] > 0 : 1;
    for (int dim = 0; dim < t->ndim - 1; dim++)
        count *= t->shape[dim];
    return count;
}

static float *next_row(rows *r)
{
    const tsr_tensor *const t = r->tensor;
    float *at = t->data;
    for (int dim = 0; dim < t->ndim - 1; dim++)
        at += r->index[dim] * t->strides[dim];
    for (int dim = t->ndim - 2; dim >= 0 && ++r->index[dim] == t->shape[dim]; dim--)
        r->index[dim] = 0;
    return at;
}

static int64_t row_length(const tsr_tensor *t, int64_t *stride)
{
    *stride = t->ndim ? t->strides[t->ndim - 1] : 1;
    return t->ndim ? t->shape[t->ndim - 1] : 1;
}

static tsr_status relu_squared(const tsr_kernel_call *call)
{
    int64_t from, to;
    rows x = {.tensor = &call->inputs[0]}, y = {.tensor = &call->outputs[0]};
    const int64_t length = row_length(x.tensor, &from), count = count_rows(x.tensor);
    row_length(y.tensor, &to);
    for (int64_t row = 0; row < count; row++) {
        const float *const in = next_row(&x);
        float *const out = next_row(&y);
        for (int64_t i = 0; i < length; i++) {
            const float value = in[i * from] > 0 ? in[i * from] : 0;
            out[i * to] = value * value;
        }
    }
    return TSR_OK;
}

const tsr_op example_relu_squared = {
    .size = sizeof(tsr_op),
    .name = "relu_squared",
    .rule = "... -> ...",
    .operands = {"x"},
    .results = {"out"},
    .check = check_f32,
    .host = relu_squared,
    .gradients = {"mul(dout, add(relu(x), relu(x)))"},
};

/* The rows of a call: those of the result, for a rank may hold none of x's columns. */
static int64_t count_all(const tsr_kernel_call *call)
{
    const tsr_tensor *const t = &call->outputs[0];
    int64_t count = 1;
    for (int dim = 0; dim < t->ndim - 1; dim++)
        count *= t->shape[dim];
    return count;
}

static int64_t unit_record_bytes(const tsr_kernel_call *call)
{
    return count_all(call) * (int64_t)sizeof(double);
}

/* The sum of squares of each row's part on this rank. */
static void sum_squares(const tsr_kernel_call *call, double *sums)
{
    int64_t stride;
    rows x = {.tensor = &call->inputs[0]};
    const int64_t length = row_length(x.tensor, &stride), count = count_rows(x.tensor);
    for (int64_t row = 0; row < count; row++) {
        const float *const in = next_row(&x);
        for (int64_t i = 0; i < length; i++)
            sums[row] += (double)in[i * stride] * in[i * stride];
    }
}

static void divide_rows(const tsr_kernel_call *call, const double *sums)
{
    int64_t from, to;
    rows x = {.tensor = &call->inputs[0]}, y = {.tensor = &call->outputs[0]};
    const int64_t length = row_length(x.tensor, &from), count = count_rows(x.tensor);
    row_length(y.tensor, &to);
    for (int64_t row = 0; row < count; row++) {
        const float *const in = next_row(&x);
        float *const out = next_row(&y);
        for (int64_t i = 0; i < length; i++)
            out[i * to] = (float)(in[i * from] / sqrt(sums[row]));
    }
}

/* Adds the sums of all ranks in the order of their coordinates, so that every rank has the same
 * bits. */
static void add_records(const tsr_kernel_call *call, double *sums)
{
    for (int rank = 0; rank < call->record_count; rank++) {
        const double *const record = (const void *)((const char *)call->records + rank * call->record_stride);
        for (int64_t row = 0; row < count_all(call); row++)
            sums[row] += record[row];
    }
}

static tsr_status unit(const tsr_kernel_call *call)
{
    double *const sums = call->stage == 0 ? call->record : call->workspace;
    memset(sums, 0, (size_t)unit_record_bytes(call));
    if (call->stage == 1)
        add_records(call, sums);
    else
        sum_squares(call, sums);
    if (call->stage != 0)
        divide_rows(call, sums);
    return TSR_OK;
}

const tsr_op example_unit = {
    .size = sizeof(tsr_op),
    .name = "unit",
    .rule = "... h -> ... h | h exchange",
    .operands = {"x"},
    .results = {"out"},
    .check = check_f32,
    .host = unit,
    .exchanges = 1,
    .record_bytes = unit_record_bytes,
    .workspace_bytes = unit_record_bytes,
};
