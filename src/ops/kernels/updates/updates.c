#include "ops/kernels/updates/updates.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/pointwise.h"
#include "ops/kernels/walked.h"

#include <string.h>

/* Elements that go through buffers at once, so that they stay in the first-level cache. */
#define CHUNK 512

/* The most tensors: operands and results. */
#define TENSORS (2 * TSR_UPDATE_TENSORS - 1)

static const tsr_updates_kernels *const sets[] = TSR_KERNEL_SETS(tsr_updates_kernels);

static const tsr_update_operands all_operands[TSR_UPDATE_END] = {
    [TSR_UPDATE_SGD] = {.states = 0, .kept = -1, .rate = 2, .root = -1, .first = -1, .finite = 3},
    [TSR_UPDATE_MOMENTUM] = {.states = 1, .kept = -1, .rate = 3, .root = -1, .first = 4, .finite = 5},
    [TSR_UPDATE_ADAMW] = {.states = 2, .kept = 4, .rate = 5, .root = 6, .first = -1, .finite = 7},
    [TSR_UPDATE_LION] = {.states = 1, .kept = 3, .rate = 4, .root = -1, .first = -1, .finite = 5},
};

const tsr_update_operands *tsr_update_operands_of(int code)
{
    return &all_operands[code];
}

typedef struct walk {
    const tsr_pointwise_kernels *moves;
    tsr_update_loop *loop;
    tsr_update_numbers numbers;
    tsr_dtype computed;
    int in_count, count; /* operands, and with the results behind them */
    tsr_walked tensors[TENSORS];
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
} walk;

/* Elements between neighbours of a row; a single element is a row, too. */
static int64_t row_stride(const walk *w, int tensor)
{
    return w->ndim ? w->tensors[tensor].strides[w->ndim - 1] : 1;
}

/* True if a loop can read or write the tensor's own rows. */
static bool is_direct(const walk *w, int tensor)
{
    return w->tensors[tensor].dtype == w->computed && row_stride(w, tensor) == 1;
}

/* Updates n elements, of which `at` has the first of each tensor: CHUNK at most, unless all tensors
 * are direct. */
static void run_chunk(const walk *w, char *const *at, int64_t n)
{
    _Alignas(64) char buffers[TENSORS][CHUNK * sizeof(double)];
    const void *in[TSR_UPDATE_TENSORS] = {NULL};
    void *out[TSR_UPDATE_TENSORS] = {NULL};
    for (int i = 0; i < w->count; i++) {
        void *const array = is_direct(w, i) ? at[i] : buffers[i];
        if (i >= w->in_count)
            out[i - w->in_count] = array;
        else
            in[i] = array;
        if (i < w->in_count && array != at[i])
            w->moves->gather[w->tensors[i].dtype](at[i], array, n, row_stride(w, i));
    }
    w->loop(in, out, n, &w->numbers);
    for (int i = w->in_count; i < w->count; i++)
        if (!is_direct(w, i))
            w->moves->scatter[w->tensors[i].dtype](buffers[i], at[i], n, row_stride(w, i));
}

static void run_row(const walk *w, char *const *begin)
{
    char *at[TENSORS];
    const int64_t length = w->ndim ? w->shape[w->ndim - 1] : 1;
    int64_t most = length;
    for (int i = 0; i < w->count; i++) {
        at[i] = begin[i];
        most = is_direct(w, i) || most < CHUNK ? most : CHUNK;
    }
    for (int64_t done = 0, n; done < length; done += n) {
        n = length - done < most ? length - done : most;
        run_chunk(w, at, n);
        for (int i = 0; i < w->count; i++)
            at[i] += n * row_stride(w, i) * w->tensors[i].bytes;
    }
}

/* True if in all tensors a dim goes on where the walk's last one before it ended: they are one. */
static bool is_one_dim(const walk *w, int64_t const *strides)
{
    for (int i = 0; i < w->count && w->ndim; i++)
        if (w->tensors[i].strides[w->ndim - 1] != strides[i] * w->shape[w->ndim])
            return false;
    return w->ndim > 0;
}

/* Lists the dims that have more than one element, joined where they are one in all tensors. False:
 * there is no element. */
static bool list_dims(walk *w, const tsr_tensor *const *tensors)
{
    for (int dim = 0; dim < tensors[0]->ndim; dim++) {
        const int64_t size = tensors[0]->shape[dim];
        int64_t strides[TENSORS];
        if (size == 0)
            return false;
        if (size == 1)
            continue;
        for (int i = 0; i < w->count; i++)
            strides[i] = tensors[i]->strides[dim];
        w->shape[w->ndim] = size;
        if (is_one_dim(w, strides))
            w->shape[--w->ndim] *= size;
        for (int i = 0; i < w->count; i++)
            w->tensors[i].strides[w->ndim] = strides[i];
        w->ndim++;
    }
    return true;
}

/* A number without dims; a tile of a program has it repeated. */
static double read_number(const tsr_kernel_call *call, int operand, double otherwise)
{
    if (operand < 0)
        return otherwise;
    const void *const at = call->inputs[operand].data;
    return call->inputs[operand].dtype == TSR_F64 ? *(const double *)at : (double)*(const float *)at;
}

static bool read_flag(const tsr_kernel_call *call, int operand, bool otherwise)
{
    const bool given = operand >= 0 && operand < call->input_count && call->inputs[operand].ndim >= 0;
    return given ? *(const unsigned char *)call->inputs[operand].data != 0 : otherwise;
}

static double find_attribute(const tsr_kernel_call *call, const char *name)
{
    for (const tsr_attribute *a = call->attributes; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a->kind == TSR_ATTRIBUTE_FLOAT ? a->number : (double)a->integer;
    return 0;
}

static void read_numbers(const tsr_kernel_call *call, const tsr_update_operands *o, tsr_update_numbers *out)
{
    *out = (tsr_update_numbers){.kept = read_number(call, o->kept, 1),
                                .rate = read_number(call, o->rate, 0),
                                .root = read_number(call, o->root, 1),
                                .beta1 = find_attribute(call, "beta1"),
                                .beta2 = find_attribute(call, "beta2"),
                                .epsilon = find_attribute(call, "epsilon"),
                                .weight_decay = find_attribute(call, "weight_decay"),
                                .momentum = find_attribute(call, "momentum"),
                                .dampening = find_attribute(call, "dampening"),
                                .maximizes = find_attribute(call, "maximize") != 0,
                                .nesterov = find_attribute(call, "nesterov") != 0,
                                .is_first = read_flag(call, o->first, false)};
}

tsr_status tsr_update_run(const tsr_kernel_call *call)
{
    const tsr_update_operands *const o = tsr_update_operands_of(call->code);
    const tsr_updates_kernels *const kernels = sets[tsr_kernel_set(call->kernels)];
    walk w = {.moves = tsr_pointwise_kernels_for(call->kernels),
              .computed = tsr_pointwise_computes_in(call->inputs[0].dtype),
              .in_count = 2 + o->states,
              .count = 3 + 2 * o->states};
    const tsr_tensor *tensors[TENSORS];
    int64_t index[TSR_MAX_DIMS] = {0};
    char *at[TENSORS];
    for (int i = 0; i < w.count; i++) {
        const tsr_tensor *const t = i < w.in_count ? &call->inputs[i] : &call->outputs[i - w.in_count];
        tensors[i] = t;
        w.tensors[i] = (tsr_walked){.data = t->data, .dtype = t->dtype, .bytes = (int64_t)tsr_dtype_bytes(t->dtype)};
        at[i] = t->data;
    }
    if (!list_dims(&w, tensors))
        return TSR_OK;
    w.loop = read_flag(call, o->finite, true) ? kernels->loops[call->code][w.computed]
                                              : kernels->keep[o->states][w.computed];
    read_numbers(call, o, &w.numbers);
    do
        run_row(&w, at);
    while (tsr_walked_next_row(w.tensors, w.count, w.ndim, w.shape, index, at));
    return TSR_OK;
}
