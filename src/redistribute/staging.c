#include "redistribute/staging.h"

#include <tessera/comm.h>

static size_t transfers_bytes(const tsr_plan *plan, const tsr_transfers *transfers)
{
    size_t bytes = 0;
    for (size_t i = 0; i < transfers->count; i++)
        if (transfers->at[i].peer != plan->rank)
            bytes += tsr_staging_bytes(plan, transfers->at[i].elements);
    return bytes;
}

/* Terms that come from other ranks, and their bytes. */
static size_t terms_bytes(const tsr_plan *plan, size_t *terms)
{
    size_t bytes = 0;
    for (size_t i = 0; i < plan->reduction_count; i++) {
        const tsr_reduction *r = &plan->reductions[i];
        for (size_t term = 0; term < (size_t)plan->problem.terms; term++) {
            if (plan->contributors[r->first_term + term] == plan->rank)
                continue;
            bytes += tsr_staging_bytes(plan, r->elements);
            (*terms)++;
        }
    }
    return bytes;
}

/* Of this rank's destination, where it holds the value. */
static size_t local_bytes(const tsr_plan *plan)
{
    int64_t elements = plan->in_dst && !plan->fills;
    for (int dim = 0; dim < plan->dst_ndim; dim++)
        elements *= plan->dst_shape[dim];
    return tsr_staging_bytes(plan, elements);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The second exchange begins when the first one's buffers are free again, so both share the workspace. */
void tsr_staging_measure(tsr_plan *plan)
{
    const size_t pointers = (size_t)plan->problem.terms + plan->owner_count;
    plan->scratch_bytes = pointers * (sizeof(void *) + sizeof(int64_t[TSR_MAX_DIMS]));
    if (tsr_plan_stages_results(plan))
        plan->workspace_bytes = local_bytes(plan);
    if (plan->mode != TSR_MODE_MESSAGE || plan->problem.local)
        return;
    size_t terms = 0, reduced = 0;
    const size_t first = transfers_bytes(plan, &plan->sends) + transfers_bytes(plan, &plan->moves) + terms_bytes(plan, &terms);
    for (size_t i = 0; i < plan->reduction_count; i++)
        reduced += tsr_staging_bytes(plan, plan->reductions[i].elements);
    const size_t second = tsr_plan_has_results(plan) ? reduced + transfers_bytes(plan, &plan->results) : 0;
    plan->workspace_bytes = larger(first, second);
    const size_t messages =
        larger(plan->sends.count + plan->moves.count + terms, plan->reduction_count * plan->owner_count + plan->results.count);
    plan->scratch_bytes += messages * sizeof(tsr_message);
}
