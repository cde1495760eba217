#include "redistribute/explain/steps.h"

#include "base/text/text.h"
#include "placement/ownership.h"
#include "placement/placement.h"

#include <tessera/sys/status.h>

static const char *const op_names[] = {
    [TSR_STEP_COPY] = "copy",
    [TSR_STEP_FILL] = "fill",
    [TSR_STEP_EXCHANGE] = "exchange",
    [TSR_STEP_ALL_GATHER] = "all_gather",
    [TSR_STEP_REDUCE_SCATTER] = "reduce_scatter",
    [TSR_STEP_ALL_REDUCE] = "all_reduce",
    [TSR_STEP_BROADCAST] = "broadcast",
};

const char *tsr_step_op_name(tsr_step_op op)
{
    const size_t index = (size_t)op;
    return index < sizeof op_names / sizeof *op_names ? op_names[index] : NULL;
}

/* Every mesh dim of more than one rank keeps its placement, or goes from `kind` to Replicate. */
static bool only_replicates(const tsr_problem *problem, tsr_placement_kind kind)
{
    for (int i = 0; i < problem->src.ndim; i++) {
        const int twin = problem->src.twin[i];
        if (twin < 0)
            continue;
        const tsr_placement *a = &problem->src.layout->placements[i], *b = &problem->dst.layout->placements[twin];
        if (!tsr_placement_same(a, b) && !(a->kind == kind && b->kind == TSR_REPLICATE))
            return false;
    }
    return true;
}

static bool is_all_reduce(const tsr_problem *problem)
{
    return problem->in_place && only_replicates(problem, TSR_PARTIAL);
}

static bool is_all_gather(const tsr_problem *problem)
{
    return problem->same_mesh && only_replicates(problem, TSR_SHARD) && tsr_problem_cuts_nest(problem, false);
}

/* True if one rank owns the whole source: the owner of the first element owns all, and there are no
 * replicas. */
static bool one_rank_has_all(const tsr_problem *problem)
{
    const tsr_layout *src = problem->src.layout;
    if (problem->replicas > 1)
        return false;
    for (int dim = 0; dim < src->ndim; dim++) {
        int64_t owner[TSR_MAX_DIMS];
        if (src->shape[dim] == 0)
            return false;
        tsr_layout_owner_along(src, dim, 0, owner);
        if (tsr_layout_length(src, dim, owner) < src->shape[dim])
            return false;
    }
    return true;
}

static bool is_broadcast(const tsr_problem *problem)
{
    const tsr_side *dst = &problem->dst;
    return tsr_side_count(dst, TSR_ROLE_FREE) == tsr_mesh_count(dst->layout->mesh) &&
           tsr_mesh_count(dst->layout->mesh) > 1 && one_rank_has_all(problem);
}

static tsr_step_op op_of(const tsr_item *item)
{
    const tsr_problem *problem = &item->problem;
    if (problem->reduces)
        return is_all_reduce(problem) ? TSR_STEP_ALL_REDUCE : TSR_STEP_REDUCE_SCATTER;
    if (item->shares)
        return TSR_STEP_EXCHANGE;
    if (is_broadcast(problem))
        return TSR_STEP_BROADCAST;
    return is_all_gather(problem) ? TSR_STEP_ALL_GATHER : TSR_STEP_EXCHANGE;
}

static bool op_reduces(tsr_step_op op)
{
    return op == TSR_STEP_ALL_REDUCE || op == TSR_STEP_REDUCE_SCATTER;
}

/* The op of a step that makes two moves, of ops `a` and `b`. */
static tsr_step_op join_ops(tsr_step_op a, tsr_step_op b)
{
    if (a == b)
        return a;
    return op_reduces(a) && op_reduces(b) ? TSR_STEP_REDUCE_SCATTER : TSR_STEP_EXCHANGE;
}

static tsr_step_op first_op(const tsr_plan *plan)
{
    tsr_step_op op = TSR_STEP_COPY;
    for (size_t i = 0; i < plan->count; i++)
        if (!plan->items[i].problem.local)
            op = op == TSR_STEP_COPY ? op_of(&plan->items[i]) : join_ops(op, op_of(&plan->items[i]));
    return op;
}

static bool fills(const tsr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (tsr_side_count(&plan->items[i].problem.dst, TSR_ROLE_ZERO) > 1)
            return true;
    return false;
}

tsr_steps tsr_steps_of(const tsr_plan *plan)
{
    tsr_steps steps = {.count = 1, .ops = {first_op(plan)}};
    if (plan->results && steps.ops[0] != TSR_STEP_ALL_REDUCE) {
        steps.of_phase[1] = steps.count;
        steps.ops[steps.count++] = TSR_STEP_ALL_GATHER;
    }
    if (plan->shares && steps.ops[0] != TSR_STEP_ALL_REDUCE) {
        steps.of_phase[2] = steps.count;
        steps.ops[steps.count++] = TSR_STEP_ALL_GATHER;
    }
    if (fills(plan))
        steps.ops[steps.count++] = TSR_STEP_FILL;
    return steps;
}

size_t tsr_plan_step_count(const tsr_plan *plan)
{
    return tsr_steps_of(plan).count;
}

/* Appends " along tp": the source's mesh dims of `role`, but cut dims only if the destination does
 * not cut them; nothing for a batch. */
static void append_dims(tsr_text *text, const tsr_plan *plan, tsr_role role)
{
    const tsr_side *side = &plan->items[0].problem.src;
    const char *separator = " along ";
    for (int i = 0; i < side->ndim && plan->count == 1; i++) {
        const char *name = tsr_mesh_name(side->layout->mesh, i);
        if (side->roles[i] != role ||
            (role == TSR_ROLE_CUT && plan->items[0].problem.dst.roles[side->twin[i]] == TSR_ROLE_CUT))
            continue;
        if (name)
            tsr_text_append(text, "%s%s", separator, name);
        else
            tsr_text_append(text, "%smesh dim %d", separator, i);
        separator = ", ";
    }
}

static bool any(const tsr_plan *plan, bool reducing, bool each)
{
    for (size_t i = 0; i < plan->count; i++)
        if (reducing ? plan->items[i].problem.reduces && (!each || plan->items[i].problem.each) : plan->items[i].shares)
            return true;
    return false;
}

/* Appends the words for a reduction; `all`: it is an all-reduce. */
static void append_reduction(tsr_text *text, const tsr_plan *plan, bool all)
{
    const tsr_item *item = &plan->items[0];
    tsr_text_append(text, "terms");
    append_dims(text, plan, TSR_ROLE_REDUCED);
    tsr_text_append(text, " are reduced");
    if (plan->count == 1)
        tsr_text_append(text, " (%s)", item->problem.divisor > 1 ? "avg" : tsr_reduce_op_name(item->problem.op));
    if (any(plan, true, true))
        tsr_text_append(text, ", by every owner for itself");
    else if (all)
        tsr_text_append(text, ", a part by each owner, who gives it to the others");
    else
        tsr_text_append(text, ", each part once");
}

static void append_sentence(tsr_text *text, const tsr_plan *plan, const tsr_steps *steps, size_t index)
{
    const tsr_step_op op = steps->ops[index];
    if (op == TSR_STEP_COPY)
        tsr_text_append(text, "each rank copies what it keeps");
    else if (op == TSR_STEP_FILL)
        tsr_text_append(text, "what holds no value of a new Partial is filled with what changes nothing");
    else if (op_reduces(op))
        append_reduction(text, plan, op == TSR_STEP_ALL_REDUCE);
    else if (op == TSR_STEP_BROADCAST)
        tsr_text_append(text, "one rank has all, and every rank gets it");
    else if (op == TSR_STEP_EXCHANGE && any(plan, false, false))
        tsr_text_append(text, "what a node lacks crosses into it once, a share to each of its ranks");
    else if (op == TSR_STEP_EXCHANGE)
        tsr_text_append(text, "each rank takes just the boxes that it lacks");
    else if (plan->shares && index == steps->of_phase[2])
        tsr_text_append(text, "ranks of a node give each other their shares");
    else if (plan->results && index == steps->of_phase[1])
        tsr_text_append(text, plan->shares ? "results go to their owners, into each node once"
                                           : "results go to all their owners");
    else {
        tsr_text_append(text, "pieces");
        append_dims(text, plan, TSR_ROLE_CUT);
        tsr_text_append(text, " go to every rank there");
    }
}

size_t tsr_plan_step_print(const tsr_plan *plan, size_t index, char *buffer, size_t capacity)
{
    const tsr_steps steps = tsr_steps_of(plan);
    tsr_text text = {buffer, capacity, 0};
    tsr_text_append(&text, "%s", "");
    if (index < steps.count)
        append_sentence(&text, plan, &steps, index);
    return text.length;
}
