#include "ops/kernels/lines/extreme.h"

#include "ops/kernels/lines/positions.h"
#include "ops/kernels/lines/ranking.h"
#include "ops/kernels/norms/norms.h"

#include <tessera/sys/status.h>

#define CHUNK 512

typedef struct search {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype dtype;
    tsr_ranking ranking;
    int dim;
    int64_t length, stride;
    tsr_axes lines; /* of the output and x */
} search;

static void begin(const tsr_kernel_call *call, search *s)
{
    const tsr_tensor *const x = &call->inputs[0], *const tensors[] = {&call->outputs[0], x};
    bool marked[TSR_MAX_DIMS] = {false};
    tsr_axes along;
    *s = (search){.kernels = tsr_pointwise_kernels_for(call->kernels), .dtype = x->dtype};
    s->ranking = (tsr_ranking){.real = tsr_dtype_get(x->dtype)->kind == TSR_CLASS_FLOAT,
                               .descending = call->code == TSR_EXTREME_LARGEST,
                               .nan_first = true};
    s->dim = tsr_softmax_dim(&call->attributes[0], x->ndim);
    s->length = x->shape[s->dim];
    s->stride = x->strides[s->dim];
    marked[s->dim] = true;
    tsr_axes_split(2, tensors, marked, false, &s->lines, &along);
}

/* Finds the extreme of a line of this rank. */
static tsr_ranked search_line(const search *s, const tsr_positions *positions)
{
    tsr_number values[CHUNK];
    tsr_ranked found = {{0}, -1};
    uint64_t best = UINT64_MAX;
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = s->length - done < CHUNK ? s->length - done : CHUNK;
        const char *const at = s->lines.at[1] + done * s->stride * (int64_t)tsr_dtype_bytes(s->dtype);
        tsr_numbers_read(s->kernels, s->dtype, at, s->stride, n, values);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = tsr_ranking_key(&s->ranking, values[i]);
            if (key < best || found.position < 0) {
                best = key;
                found = (tsr_ranked){values[i], done + i};
            }
        }
    }
    if (found.position >= 0)
        found.position = tsr_positions_global(positions, found.position);
    return found;
}

/* The extreme of a line among those that ranks found. */
static tsr_ranked choose(const tsr_kernel_call *call, const search *s, int64_t line)
{
    tsr_ranked best = {{0}, -1};
    for (int rank = 0; rank < call->record_count; rank++) {
        const tsr_ranked *const found =
            (const tsr_ranked *)(const void *)((const char *)call->records + rank * call->record_stride) + line;
        if (found->position >= 0 && (best.position < 0 || tsr_ranked_before(&s->ranking, found, &best)))
            best = *found;
    }
    return best;
}

tsr_status tsr_extreme_run(const tsr_kernel_call *call)
{
    search s;
    tsr_positions positions = {NULL, 0, 0};
    begin(call, &s);
    if (call->stage <= 0)
        TSR_TRY(tsr_positions_read(call->layouts[0], call->coordinate, s.dim, call->workspace, &positions));
    const int64_t count = tsr_axes_count(&s.lines);
    for (int64_t line = 0; line < count; line++) {
        const tsr_ranked found = call->stage > 0 ? choose(call, &s, line) : search_line(&s, &positions);
        if (call->stage == 0)
            ((tsr_ranked *)call->record)[line] = found;
        else
            *(int64_t *)(void *)s.lines.at[0] = found.position;
        tsr_axes_next(&s.lines);
    }
    return TSR_OK;
}

int64_t tsr_extreme_record_bytes(const tsr_kernel_call *call)
{
    search s;
    begin(call, &s);
    return tsr_axes_count(&s.lines) * (int64_t)sizeof(tsr_ranked);
}

int64_t tsr_extreme_workspace_bytes(const tsr_kernel_call *call)
{
    const int dim = tsr_softmax_dim(&call->attributes[0], call->inputs[0].ndim);
    return tsr_positions_count(call->layouts[0], call->coordinate, dim) * (int64_t)sizeof(tsr_interval);
}
