#include "tensor/experts/expert_plan.h"

#include "base/memory/memory.h"
#include "comm/core/traits.h"

#include <tessera/context.h>
#include <tessera/sys/status.h>

/* Numbers experts by row part and local position. */
static tsr_status number_experts(tsr_experts_plan *plan)
{
    tsr_row_table *const table = plan->table;
    for (int64_t expert = 0; expert < plan->count; expert++)
        plan->part_starts[tsr_row_find(&table->finder, expert).part + 1]++;
    for (int64_t part = 0; part < table->rows.count; part++)
        plan->part_starts[part + 1] += plan->part_starts[part];
    for (int64_t expert = 0; expert < plan->count; expert++) {
        const tsr_row_place place = tsr_row_find(&table->finder, expert);
        plan->numbers[expert] = plan->part_starts[place.part] + place.local;
        plan->parts[plan->numbers[expert]] = (int32_t)place.part;
    }
    plan->own_count = plan->part_starts[table->rows.own + 1] - plan->part_starts[table->rows.own];
    return TSR_OK;
}

/* An array that the plan keeps. */
typedef struct wanted {
    void *at; /* a pointer in the plan */
    int64_t count;
    size_t bytes;
} wanted;

static tsr_status allocate_all(const tsr_experts_plan *plan, const wanted *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *memory;
        TSR_TRY(tsr_allocate_array(plan->context, (size_t)arrays[i].count, arrays[i].bytes, &memory));
        *(void **)arrays[i].at = memory;
    }
    return TSR_OK;
}

#define WANTED(field, count)                                                                                           \
    {                                                                                                                  \
        (void *)&plan->field, count, sizeof *plan->field                                                               \
    }

static tsr_status allocate_by_expert(tsr_experts_plan *plan)
{
    const int64_t experts = plan->count, ranks = plan->group->count;
    const wanted arrays[] = {
        WANTED(numbers, experts), WANTED(parts, experts),         WANTED(part_starts, plan->table->rows.count + 1),
        WANTED(order, ranks),     WANTED(counts_memory, experts), WANTED(all_counts, ranks),
        WANTED(rooms, ranks),     WANTED(totals, experts),        WANTED(next, experts),
        WANTED(kept, experts),    WANTED(offsets, experts),       WANTED(sides, ranks),
    };
    return allocate_all(plan, arrays, sizeof arrays / sizeof *arrays);
}

static tsr_status allocate_by_token(tsr_experts_plan *plan)
{
    const int64_t columns = plan->table->columns.count;
    const wanted arrays[] = {
        WANTED(places, plan->tokens * plan->slots),
        WANTED(terms, plan->slots * columns),
        WANTED(weights, plan->slots),
        WANTED(sizes, plan->own_count),
        WANTED(arrivals, plan->own_count * plan->group->count),
        WANTED(sent, plan->table->rows.count),
    };
    return allocate_all(plan, arrays, sizeof arrays / sizeof *arrays);
}

tsr_status tsr_expert_plan_fill(tsr_experts_plan *plan)
{
    TSR_TRY(tsr_row_table_create(plan->layout, plan->group, &plan->table));
    plan->kernels = tsr_expert_kernels_of(tsr_context_kernels(plan->context));
    plan->loops = &plan->kernels->loops[plan->dtype];
    plan->call_rooms = (tsr_row_rooms){.context = plan->context, .sharing = plan->comm};
    plan->messages = !tsr_comm_shares_all(plan->group->comm) &&
                     !(tsr_comm_is_direct(plan->group->comm) && tsr_comm_shares_some(plan->comm));
    TSR_TRY(allocate_by_expert(plan));
    for (int position = 0; position < plan->group->count; position++)
        plan->order[plan->table->turns[position]] = position;
    TSR_TRY(number_experts(plan));
    return allocate_by_token(plan);
}

void tsr_experts_plan_destroy(tsr_experts_plan *plan)
{
    if (!plan)
        return;
    tsr_context *const context = plan->context;
    void *const arrays[] = {plan->numbers, plan->parts,         plan->part_starts,
                            plan->order,   plan->counts_memory, (void *)plan->all_counts,
                            plan->rooms,   plan->totals,        plan->next,
                            plan->kept,    plan->offsets,       plan->sides,
                            plan->places,  (void *)plan->terms, plan->weights,
                            plan->sizes,   plan->arrivals,      plan->sent};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        tsr_release(context, arrays[i]);
    if (plan->call_rooms.context)
        tsr_row_rooms_release(&plan->call_rooms);
    tsr_row_table_destroy(plan->table);
    tsr_layout_destroy(plan->layout);
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

int64_t tsr_experts_plan_count(const tsr_experts_plan *plan)
{
    return plan ? plan->own_count : 0;
}

int64_t tsr_experts_plan_needed(const tsr_experts_plan *plan)
{
    return plan ? plan->needed : 0;
}

int64_t tsr_experts_plan_dropped(const tsr_experts_plan *plan)
{
    return plan ? plan->dropped : 0;
}
