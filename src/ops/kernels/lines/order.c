#include "ops/kernels/lines/order.h"

#include "ops/kernels/lines/positions.h"
#include "ops/kernels/lines/ranking.h"
#include "ops/kernels/norms/norms.h"

#include <tessera/sys/status.h>

#define CHUNK 512

/* The place of attributes. */
enum { DIM, DESCENDING_OR_K };

typedef struct ordering {
    const tsr_pointwise_kernels *kernels;
    const tsr_kernel_call *call;
    tsr_ranking ranking;
    tsr_axes lines; /* of x, values and positions */
    int dim;
    tsr_positions positions; /* of this rank's elements */
    int64_t entries;         /* of a line in each record */
    tsr_ranked *elements, *spare;
} ordering;

static int find_dim(const tsr_kernel_call *call)
{
    return tsr_softmax_dim(&call->attributes[DIM], call->inputs[0].ndim);
}

/* The size of the dim, and the most elements of it that a rank has. */
static int64_t find_size(const tsr_kernel_call *call, int64_t *longest)
{
    int64_t intervals;
    tsr_positions_most(call->layouts[0], call->coordinate, find_dim(call), longest, &intervals);
    return tsr_layout_shape(call->layouts[0])[find_dim(call)];
}

/* The most elements of a line that are exchanged by one rank. */
static int64_t count_entries(const tsr_kernel_call *call)
{
    int64_t longest;
    find_size(call, &longest);
    const int64_t k = call->attributes[DESCENDING_OR_K].integer;
    return call->code == TSR_ORDER_TOP && k < longest ? k : longest;
}

static tsr_status begin(const tsr_kernel_call *call, ordering *o)
{
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->outputs[0], &call->outputs[1]};
    int64_t longest;
    *o = (ordering){.kernels = tsr_pointwise_kernels_for(call->kernels), .call = call, .dim = find_dim(call)};
    o->ranking.real = tsr_dtype_get(call->inputs[0].dtype)->kind == TSR_CLASS_FLOAT;
    o->ranking.descending = call->code == TSR_ORDER_TOP || call->attributes[DESCENDING_OR_K].integer;
    o->entries = count_entries(call);
    o->elements = call->workspace;
    o->spare = o->elements + find_size(call, &longest);
    tsr_axes_lines(&o->lines, 3, tensors, o->dim);
    tsr_interval *const list = (tsr_interval *)(void *)(o->spare + find_size(call, &longest));
    return tsr_positions_read(call->layouts[0], call->coordinate, o->dim, list, &o->positions);
}

/* Orders a line's elements of this rank; returns how many of them may count. */
static int64_t order_own(const ordering *o)
{
    tsr_number values[CHUNK];
    const tsr_tensor *const x = &o->call->inputs[0];
    const int64_t length = x->shape[o->dim], stride = x->strides[o->dim];
    /* Of a sort all are kept, as they come. */
    const int64_t most = o->call->code == TSR_ORDER_SORT ? length + 1 : o->entries;
    int64_t count = 0, interval = 0;
    for (int64_t done = 0; done < length; done += CHUNK) {
        const int64_t n = length - done < CHUNK ? length - done : CHUNK;
        const char *const at = o->lines.at[0] + done * stride * (int64_t)tsr_dtype_bytes(x->dtype);
        tsr_numbers_read(o->kernels, x->dtype, at, stride, n, values);
        for (int64_t i = 0; i < n; i++) {
            const tsr_interval *const list = o->positions.list;
            interval += done + i == list[interval].end;
            const int64_t first = interval ? list[interval - 1].end : 0;
            const tsr_ranked element = {values[i], list[interval].begin + done + i - first};
            tsr_ranked_offer(&o->ranking, element, o->elements, most, &count);
        }
    }
    tsr_ranked_sort(&o->ranking, o->elements, o->spare, count);
    return count;
}

/* Writes a line's elements and positions of this record, and marks the end. */
static void fill_record(const ordering *o, int64_t line)
{
    tsr_ranked *const to = (tsr_ranked *)o->call->record + line * o->entries;
    const int64_t count = order_own(o);
    if (count)
        memcpy(to, o->elements, (size_t)count * sizeof *to);
    for (int64_t i = count; i < o->entries; i++)
        to[i].position = -1;
}

/* Merges a line of all records. */
static int64_t merge_records(const ordering *o, int64_t line)
{
    int64_t count = 0;
    for (int rank = 0; rank < o->call->record_count; rank++) {
        const tsr_ranked *const from =
            (const tsr_ranked *)(const void *)((const char *)o->call->records + rank * o->call->record_stride) +
            line * o->entries;
        for (int64_t i = 0; i < o->entries && from[i].position >= 0; i++)
            o->elements[count++] = from[i];
    }
    tsr_ranked_sort(&o->ranking, o->elements, o->spare, count);
    return count;
}

/* Writes those of a line's elements in order that this rank has in the results. */
static void write_line(const ordering *o)
{
    tsr_number values[CHUNK], positions[CHUNK];
    const tsr_tensor *const out = o->call->outputs;
    const int64_t length = out[0].shape[o->dim];
    for (int64_t done = 0; done < length; done += CHUNK) {
        const int64_t n = length - done < CHUNK ? length - done : CHUNK;
        for (int64_t i = 0; i < n; i++) {
            const bool all = o->call->code == TSR_ORDER_TOP;
            const tsr_ranked *const from = &o->elements[all ? done + i : tsr_positions_global(&o->positions, done + i)];
            values[i] = from->value;
            positions[i].integer = from->position;
        }
        for (int k = 0; k < 2; k++)
            tsr_numbers_write(o->kernels, out[k].dtype, k ? positions : values, n,
                              o->lines.at[k + 1] +
                                  done * out[k].strides[o->dim] * (int64_t)tsr_dtype_bytes(out[k].dtype),
                              out[k].strides[o->dim]);
    }
}

tsr_status tsr_order_run(const tsr_kernel_call *call)
{
    ordering o;
    TSR_TRY(begin(call, &o));
    const int64_t count = tsr_axes_count(&o.lines);
    for (int64_t line = 0; line < count; line++) {
        if (call->stage == 0) {
            fill_record(&o, line);
        } else {
            if (call->stage == TSR_STAGE_WHOLE)
                order_own(&o);
            else
                merge_records(&o, line);
            write_line(&o);
        }
        tsr_axes_next(&o.lines);
    }
    return TSR_OK;
}

int64_t tsr_order_record_bytes(const tsr_kernel_call *call)
{
    return tsr_axes_count_lines(&call->inputs[0], find_dim(call)) * count_entries(call) * (int64_t)sizeof(tsr_ranked);
}

int64_t tsr_order_workspace_bytes(const tsr_kernel_call *call)
{
    int64_t longest;
    return 2 * find_size(call, &longest) * (int64_t)sizeof(tsr_ranked) +
           tsr_positions_count(call->layouts[0], call->coordinate, find_dim(call)) * (int64_t)sizeof(tsr_interval);
}
