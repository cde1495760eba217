#include "redistribute/execute/scratch.h"

#include "base/checked.h"
#include "redistribute/execute/execution.h"

typedef struct cursor {
    char *base;
    size_t used;
} cursor;

static void *take_array(cursor *at, size_t count, size_t bytes)
{
    void *taken = at->base ? at->base + at->used : NULL;
    at->used += tsr_round_up(count * bytes, TSR_ALIGNMENT);
    return taken;
}

/* Takes the most that any item needs, for items reduce one after the other. */
static void take_reduce_arrays(const tsr_plan *plan, cursor *at, tsr_reduce_arrays *arrays)
{
    size_t terms = 0, owners = 0;
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->items[i].reduction_count == 0)
            continue;
        terms = tsr_max_bytes(terms, (size_t)plan->items[i].problem.terms);
        owners = tsr_max_bytes(owners, plan->items[i].owner_count);
    }
    arrays->src_strides = take_array(at, terms, sizeof *arrays->src_strides);
    arrays->dst_strides = take_array(at, owners, sizeof *arrays->dst_strides);
    arrays->src = take_array(at, terms, sizeof *arrays->src);
    arrays->dst = take_array(at, owners, sizeof *arrays->dst);
}

tsr_scratch tsr_scratch_divide(const tsr_plan *plan, void *base)
{
    tsr_scratch scratch;
    cursor at = {base, 0};
    scratch.pending = take_array(&at, 1, sizeof *scratch.pending);
    scratch.bound = take_array(&at, plan->count, sizeof *scratch.bound);
    scratch.spans = take_array(&at, plan->count > 1 ? 2 * plan->count : 0, sizeof *scratch.spans);
    scratch.views = take_array(&at, plan->options.mode == TSR_MODE_DIRECT ? plan->count : 0, sizeof *scratch.views);
    scratch.tensors = take_array(&at, 2 * plan->count, sizeof *scratch.tensors);
    take_reduce_arrays(plan, &at, &scratch.reduce);
    size_t messages = 0, parcels = 0;
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        messages = tsr_max_bytes(messages, plan->out[phase].messages + plan->in[phase].messages);
        parcels = tsr_max_bytes(parcels, plan->in[phase].count);
    }
    for (int half = 0; half < 2; half++) {
        scratch.messages[half] = take_array(&at, messages, sizeof *scratch.messages[half]);
        scratch.offsets[half] = take_array(&at, parcels, sizeof *scratch.offsets[half]);
    }
    scratch.bytes = at.used;
    return scratch;
}
