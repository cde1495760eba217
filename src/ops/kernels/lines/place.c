#include "ops/kernels/lines/place.h"

#include "ops/kernels/lines/positions.h"
#include "ops/kernels/lines/ranking.h"
#include "ops/kernels/norms/norms.h"

#include <tessera/sys/status.h>

#define CHUNK 512

typedef struct placing {
    const tsr_pointwise_kernels *kernels;
    const tsr_kernel_call *call;
    tsr_axes lines; /* of elements, positions and the output */
    int dim;
    tsr_positions positions; /* of the output */
    int64_t entries;         /* of a line in each record */
    tsr_number *line;        /* of the output */
} placing;

static int find_dim(const tsr_kernel_call *call)
{
    return tsr_softmax_dim(&call->attributes[0], call->inputs[0].ndim);
}

static int64_t count_entries(const tsr_kernel_call *call)
{
    int64_t longest, intervals;
    tsr_positions_most(call->layouts[0], call->coordinate, find_dim(call), &longest, &intervals);
    return longest;
}

static tsr_status begin(const tsr_kernel_call *call, placing *p)
{
    const tsr_tensor *const tensors[] = {&call->inputs[0], &call->inputs[1], &call->outputs[0]};
    *p = (placing){.kernels = tsr_pointwise_kernels_for(call->kernels), .call = call, .dim = find_dim(call)};
    p->entries = count_entries(call);
    p->line = call->workspace;
    tsr_axes_lines(&p->lines, 3, tensors, p->dim);
    tsr_interval *const list = (tsr_interval *)(void *)(p->line + call->outputs[0].shape[p->dim]);
    return tsr_positions_read(call->result_layouts[0], call->coordinate, p->dim, list, &p->positions);
}

static void place(const placing *p, tsr_ranked element)
{
    const int64_t local = tsr_positions_local(&p->positions, element.position);
    if (local >= 0)
        p->line[local] = element.value;
}

/* Takes a line's elements of this rank: to the record, or to the output's line. */
static void take_own(const placing *p, tsr_ranked *record)
{
    tsr_number values[CHUNK], positions[CHUNK];
    const tsr_tensor *const in = p->call->inputs;
    const int64_t length = in[0].shape[p->dim];
    for (int64_t done = 0; done < length; done += CHUNK) {
        const int64_t n = length - done < CHUNK ? length - done : CHUNK;
        for (int k = 0; k < 2; k++)
            tsr_numbers_read(p->kernels, in[k].dtype,
                             p->lines.at[k] + done * in[k].strides[p->dim] * (int64_t)tsr_dtype_bytes(in[k].dtype),
                             in[k].strides[p->dim], n, k ? positions : values);
        for (int64_t i = 0; i < n; i++) {
            const tsr_ranked element = {values[i], positions[i].integer};
            if (record)
                record[done + i] = element;
            else
                place(p, element);
        }
    }
    for (int64_t i = length; record && i < p->entries; i++)
        record[i].position = -1;
}

/* Takes a line's elements of all records. */
static void take_records(const placing *p, int64_t line)
{
    for (int rank = 0; rank < p->call->record_count; rank++) {
        const tsr_ranked *const from =
            (const tsr_ranked *)(const void *)((const char *)p->call->records + rank * p->call->record_stride) +
            line * p->entries;
        for (int64_t i = 0; i < p->entries; i++)
            place(p, from[i]);
    }
}

static void clear_line(const placing *p)
{
    for (int64_t i = 0; i < p->call->outputs[0].shape[p->dim]; i++)
        p->line[i].integer = 0;
}

tsr_status tsr_place_run(const tsr_kernel_call *call)
{
    placing p;
    const tsr_tensor *const out = &call->outputs[0];
    TSR_TRY(begin(call, &p));
    const int64_t count = tsr_axes_count(&p.lines);
    for (int64_t line = 0; line < count; line++) {
        if (call->stage == 0) {
            take_own(&p, (tsr_ranked *)call->record + line * p.entries);
        } else {
            clear_line(&p);
            if (call->stage == TSR_STAGE_WHOLE)
                take_own(&p, NULL);
            else
                take_records(&p, line);
            tsr_numbers_write(p.kernels, out->dtype, p.line, out->shape[p.dim], p.lines.at[2], out->strides[p.dim]);
        }
        tsr_axes_next(&p.lines);
    }
    return TSR_OK;
}

int64_t tsr_place_record_bytes(const tsr_kernel_call *call)
{
    return tsr_axes_count_lines(&call->inputs[0], find_dim(call)) * count_entries(call) * (int64_t)sizeof(tsr_ranked);
}

int64_t tsr_place_workspace_bytes(const tsr_kernel_call *call)
{
    const int dim = find_dim(call);
    return call->outputs[0].shape[dim] * (int64_t)sizeof(tsr_number) +
           tsr_positions_count(call->result_layouts[0], call->coordinate, dim) * (int64_t)sizeof(tsr_interval);
}
