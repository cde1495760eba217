#include "device/cuda/ops/updates.h"

#include "device/cuda/batch.h"
#include "device/cuda/launch.h"
#include "device/cuda/ops/storage.h"

#include <tessera/sys/ops.h>

#include <string.h>

/* The rows: how many states there are, and at which operands numbers and flags begin; -1: none. */
static const struct {
    const char *row;
    int states, kept, rate, root, first, finite;
} rows[] = {
    [TSR_CUDA_UPDATE_SGD] = {"sgd_update", 0, -1, 2, -1, -1, 3},
    [TSR_CUDA_UPDATE_MOMENTUM] = {"momentum_update", 1, -1, 3, -1, 4, 5},
    [TSR_CUDA_UPDATE_ADAMW] = {"adamw_update", 2, 4, 5, 6, -1, 7},
    [TSR_CUDA_UPDATE_LION] = {"lion_update", 1, 3, 4, -1, -1, 5},
};

static int find_update(const char *name)
{
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
        if (strcmp(rows[i].row, name) == 0)
            return i;
    return -1;
}

bool tsr_cuda_updates(const struct tsr_kernel_call *call)
{
    return find_update(call->op) >= 0;
}

/* A walk over elements before it is cut: sizes, innermost dim first. */
typedef struct box {
    int64_t sizes[TSR_CUDA_OP_DIMS];
    int count; /* of tensors */
    tsr_cuda_update given;
} box;

static tsr_status launch_part(const tsr_cuda *cuda, const box *part, int64_t units, tsr_stream stream)
{
    tsr_cuda_update given = part->given;
    given.units = (uint32_t)units;
    for (int d = 0; d < given.ndim; d++)
        given.by[d] = tsr_cuda_make_divisor((uint32_t)part->sizes[d]);
    void *arguments[] = {&given};
    return tsr_cuda_launch(cuda, given.is_wide ? TSR_CUDA_UPDATE_F64 : TSR_CUDA_UPDATE_F32,
                           (uint32_t)((units + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS), arguments, stream);
}

/* Launches a box, in halves where a kernel cannot number all of its elements. */
static tsr_status launch_box(const tsr_cuda *cuda, const box *whole, tsr_stream stream)
{
    int64_t units = 1;
    int longest = 0;
    for (int d = 0; d < whole->given.ndim; d++) {
        longest = whole->sizes[d] > whole->sizes[longest] ? d : longest;
        units = units > TSR_CUDA_UNITS ? units : units * whole->sizes[d];
    }
    if (units <= TSR_CUDA_UNITS)
        return launch_part(cuda, whole, units, stream);
    box part = *whole;
    const int64_t half = whole->sizes[longest] / 2;
    part.sizes[longest] = half;
    TSR_TRY(launch_box(cuda, &part, stream));
    part.sizes[longest] = whole->sizes[longest] - half;
    for (int i = 0; i < part.count; i++)
        part.given.tensors[i].data += part.given.tensors[i].strides[longest] * half;
    return launch_box(cuda, &part, stream);
}

/* Adds a dim, outside of those before; dims that are one in all tensors are joined. */
static void add_dim(box *b, const tsr_tensor *const *tensors, int dim)
{
    const int d = b->given.ndim;
    bool joins = d > 0;
    if (tensors[0]->shape[dim] == 1)
        return;
    for (int i = 0; i < b->count; i++) {
        int64_t *const strides = b->given.tensors[i].strides;
        strides[d] = tensors[i]->strides[dim] * (int64_t)tsr_dtype_bytes(tensors[i]->dtype);
        joins = joins && strides[d] == strides[d - 1] * b->sizes[d - 1];
    }
    b->sizes[d] = tensors[0]->shape[dim];
    if (joins)
        b->sizes[d - 1] *= tensors[0]->shape[dim];
    else
        b->given.ndim++;
}

static const unsigned char *find_data(const tsr_kernel_call *call, int operand)
{
    const bool given = operand >= 0 && operand < call->input_count && call->inputs[operand].ndim >= 0;
    return given ? call->inputs[operand].data : NULL;
}

/* Sets the attribute `name` of the formula, if a is that. */
static void read_attribute(const tsr_attribute *a, tsr_cuda_update *out)
{
    const struct {
        const char *name;
        double *number;
        int32_t *flag;
    } all[] = {{"beta1", &out->beta1, NULL},       {"beta2", &out->beta2, NULL},
               {"epsilon", &out->epsilon, NULL},   {"weight_decay", &out->weight_decay, NULL},
               {"momentum", &out->momentum, NULL}, {"dampening", &out->dampening, NULL},
               {"nesterov", NULL, &out->nesterov}, {"maximize", NULL, &out->maximizes}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, a->name) != 0)
            continue;
        if (all[i].number)
            *all[i].number = a->number;
        else
            *all[i].flag = a->integer != 0;
    }
}

tsr_status tsr_cuda_update_weight(const tsr_cuda *cuda, const struct tsr_kernel_call *call, tsr_stream stream)
{
    const int code = find_update(call->op), operands = 2 + rows[code].states;
    const tsr_tensor *tensors[TSR_CUDA_UPDATE_TENSORS];
    box b = {.count = operands + 1 + rows[code].states, .given = {.code = code, .states = rows[code].states}};
    for (int i = 0; i < b.count; i++) {
        tensors[i] = i < operands ? &call->inputs[i] : &call->outputs[i - operands];
        b.given.tensors[i].data = tensors[i]->data;
        b.given.tensors[i].storage = tsr_cuda_storage_of(tensors[i]->dtype);
    }
    for (int dim = 0; dim < tensors[0]->ndim; dim++)
        if (tensors[0]->shape[dim] == 0)
            return TSR_OK;
    for (int dim = tensors[0]->ndim - 1; dim >= 0; dim--)
        add_dim(&b, tensors, dim);
    for (const tsr_attribute *a = call->attributes; a->name; a++)
        read_attribute(a, &b.given);
    b.given.is_wide = tensors[0]->dtype == TSR_F64;
    b.given.kept = find_data(call, rows[code].kept);
    b.given.rate = find_data(call, rows[code].rate);
    b.given.root = find_data(call, rows[code].root);
    b.given.first = find_data(call, rows[code].first);
    b.given.finite = find_data(call, rows[code].finite);
    return launch_box(cuda, &b, stream);
}
