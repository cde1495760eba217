#include "ops/kernels/lines/cumulate.h"

#include "ops/kernels/lines/positions.h"
#include "ops/kernels/lines/ranking.h"
#include "ops/kernels/norms/norms.h"

#include <tessera/sys/status.h>

#define CHUNK 512

/* A record begins with the first index of each interval, -1 past the last; then it has for each
 * line the sum of each interval. */
typedef struct cumulation {
    const tsr_pointwise_kernels *kernels;
    const tsr_kernel_call *call;
    tsr_axes lines; /* of x and the output */
    int dim;
    bool real, reverse;
    tsr_positions positions;
    int64_t room;      /* intervals of a record */
    tsr_ranked *order; /* intervals of all ranks in the order in which they are added: `value` is the
                          first index, `position` the place among those of all records */
    int64_t order_count;
    tsr_number *offsets; /* what is added before each interval of this rank */
} cumulation;

static int find_dim(const tsr_kernel_call *call)
{
    return tsr_softmax_dim(&call->attributes[0], call->inputs[0].ndim);
}

static int64_t count_room(const tsr_kernel_call *call)
{
    int64_t elements, intervals;
    tsr_positions_most(call->layouts[0], call->coordinate, find_dim(call), &elements, &intervals);
    return intervals;
}

/* The most intervals of all ranks that may exchange. */
static int64_t count_all(const tsr_kernel_call *call)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(call->layouts[0]);
    int64_t ranks = 1;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        ranks *= tsr_mesh_size(mesh, k);
    return ranks * count_room(call);
}

static const int64_t *record_of(const cumulation *c, int rank)
{
    return (const void *)((const char *)c->call->records + rank * c->call->record_stride);
}

/* Orders the intervals of all records. */
static void order_intervals(cumulation *c, tsr_ranked *spare)
{
    const tsr_ranking ranking = {.real = false, .descending = c->reverse};
    for (int rank = 0; rank < c->call->record_count; rank++) {
        const int64_t *const begins = record_of(c, rank);
        for (int64_t i = 0; i < c->room && begins[i] >= 0; i++) {
            c->order[c->order_count].value.integer = begins[i];
            c->order[c->order_count++].position = rank * c->room + i;
        }
    }
    tsr_ranked_sort(&ranking, c->order, spare, c->order_count);
}

static tsr_status begin(const tsr_kernel_call *call, cumulation *c)
{
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->outputs[0]};
    *c = (cumulation){.kernels = tsr_pointwise_kernels_for(call->kernels), .call = call, .dim = find_dim(call)};
    c->real = tsr_dtype_get(call->inputs[0].dtype)->kind == TSR_CLASS_FLOAT;
    c->reverse = call->code;
    c->room = count_room(call);
    c->order = call->workspace;
    const int64_t all = count_all(call);
    c->offsets = (tsr_number *)(void *)(c->order + 2 * all);
    tsr_axes_lines(&c->lines, 2, tensors, c->dim);
    tsr_interval *const list = (tsr_interval *)(void *)(c->offsets + c->room);
    TSR_TRY(tsr_positions_read(call->layouts[0], call->coordinate, c->dim, list, &c->positions));
    if (call->stage > 0)
        order_intervals(c, c->order + all);
    return TSR_OK;
}

static tsr_number add(const cumulation *c, tsr_number a, tsr_number b)
{
    tsr_number sum;
    if (c->real)
        sum.real = a.real + b.real;
    else
        sum.integer = (int64_t)((uint64_t)a.integer + (uint64_t)b.integer);
    return sum;
}

/* Adds elements of a line from `from` to `to`, in the order of this op, to `sum`; writes each sum
 * if `writes` is set. */
static tsr_number add_elements(const cumulation *c, int64_t from, int64_t to, tsr_number sum, bool writes)
{
    tsr_number values[CHUNK];
    const tsr_tensor *const x = &c->call->inputs[0], *const out = &c->call->outputs[0];
    const int64_t bytes = (int64_t)tsr_dtype_bytes(x->dtype), in = x->strides[c->dim], stride = out->strides[c->dim];
    for (int64_t done = 0; done < to - from; done += CHUNK) {
        const int64_t n = to - from - done < CHUNK ? to - from - done : CHUNK;
        const int64_t first = c->reverse ? to - done - n : from + done;
        tsr_numbers_read(c->kernels, x->dtype, c->lines.at[0] + first * in * bytes, in, n, values);
        for (int64_t i = 0; i < n; i++) {
            tsr_number *const value = &values[c->reverse ? n - 1 - i : i];
            *value = sum = add(c, sum, *value);
        }
        if (writes)
            tsr_numbers_write(c->kernels, x->dtype, values, n, c->lines.at[1] + first * stride * bytes, stride);
    }
    return sum;
}

static int64_t interval_begin(const cumulation *c, int64_t interval)
{
    return interval ? c->positions.list[interval - 1].end : 0;
}

/* Writes the sums of a line's intervals to the record. */
static void fill_record(const cumulation *c, int64_t line)
{
    int64_t *const begins = c->call->record;
    tsr_number *const sums = (tsr_number *)(void *)(begins + c->room) + line * c->room;
    for (int64_t i = 0; i < c->room; i++) {
        const bool own = i < c->positions.count;
        sums[i].integer = 0;
        begins[i] = own ? c->positions.list[i].begin : -1;
        if (own)
            sums[i] = add_elements(c, interval_begin(c, i), c->positions.list[i].end, sums[i], false);
    }
}

/* Adds up what comes before each interval of this rank. */
static void find_offsets(const cumulation *c, int64_t line)
{
    tsr_number sum = {.integer = 0};
    for (int64_t i = 0; i < c->room; i++)
        c->offsets[i].integer = 0;
    for (int64_t i = 0; i < c->order_count; i++) {
        const int rank = (int)(c->order[i].position / c->room);
        const int64_t interval = c->order[i].position % c->room;
        const tsr_number *const sums = (const tsr_number *)(const void *)(record_of(c, rank) + c->room);
        if (rank == c->call->own_record)
            c->offsets[interval] = sum;
        sum = add(c, sum, sums[line * c->room + interval]);
    }
}

tsr_status tsr_cumulate_run(const tsr_kernel_call *call)
{
    cumulation c;
    TSR_TRY(begin(call, &c));
    const int64_t count = tsr_axes_count(&c.lines);
    for (int64_t line = 0; line < count; line++) {
        if (call->stage == 0)
            fill_record(&c, line);
        else
            find_offsets(&c, line);
        for (int64_t i = 0; i < c.positions.count && call->stage != 0; i++)
            add_elements(&c, interval_begin(&c, i), c.positions.list[i].end, c.offsets[i], true);
        tsr_axes_next(&c.lines);
    }
    return TSR_OK;
}

int64_t tsr_cumulate_record_bytes(const tsr_kernel_call *call)
{
    return (tsr_axes_count_lines(&call->inputs[0], find_dim(call)) + 1) * count_room(call) *
           (int64_t)sizeof(tsr_number);
}

int64_t tsr_cumulate_workspace_bytes(const tsr_kernel_call *call)
{
    return 2 * count_all(call) * (int64_t)sizeof(tsr_ranked) + count_room(call) * (int64_t)sizeof(tsr_number) +
           tsr_positions_count(call->layouts[0], call->coordinate, find_dim(call)) * (int64_t)sizeof(tsr_interval);
}
