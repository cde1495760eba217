/* Moves that follow one another become one, and moves that no step waits for share an exchange. */
#include "ops/programs/merge.h"

#include "ops/programs/plans.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* Moves are put off for others while all of them together have at most so many bytes, as whole
 * tensors: beyond, what a shared exchange saves is small, and caches forget what moves. */
#define MOST_BYTES (INT64_C(1) << 20)

/* Counts how often each value is read. */
static void count_uses(const tsr_program *program, const bool *needed, int *uses)
{
    for (size_t i = 0; i < program->output_count; i++)
        uses[program->outputs[i].value]++;
    for (size_t i = 0; i < program->node_count; i++)
        for (int j = 0; needed[i] && j < TSR_OP_MOST_OPERANDS; j++)
            if (program->nodes[i].operands[j] != TSR_NONE)
                uses[program->nodes[i].operands[j]]++;
}

static bool is_move(const tsr_program_node *node)
{
    return !node->op && !node->stores;
}

/* True of nodes whose result has the operand's values. */
static bool passes(const tsr_program_node *node)
{
    return is_move(node) || (node->op && node->op->passes);
}

tsr_status tsr_compile_chains(const tsr_program *program, bool *needed, int *operand)
{
    void *memory;
    TSR_TRY(tsr_program_array(program->context, program->value_count, sizeof(int), &memory));
    int *const uses = memory;
    count_uses(program, needed, uses);
    for (size_t i = program->node_count; i > 0; i--) {
        const tsr_program_node *const node = &program->nodes[i - 1];
        operand[i - 1] = node->operands[0];
        if (!needed[i - 1] || !is_move(node))
            continue;
        int from = node->operands[0];
        while (uses[from] == 1 && program->values[from].kind == TSR_VALUE_RESULT &&
               passes(&program->nodes[program->values[from].node])) {
            needed[program->values[from].node] = false;
            from = program->nodes[program->values[from].node].operands[0];
        }
        operand[i - 1] = from;
    }
    tsr_release(program->context, memory);
    return TSR_OK;
}

/* Steps in a new order, in which moves are put off. */
typedef struct ordering {
    tsr_executable *x;
    tsr_step *steps; /* in the new order */
    size_t count;
    tsr_step pending[TSR_BATCH];
    int pending_count;
    int64_t bytes;
    bool *waiting; /* values that pending moves make */
} ordering;

/* Makes the pending moves one batch. */
static tsr_status join(ordering *o)
{
    int from[TSR_BATCH], to[TSR_BATCH], plan;
    tsr_executable *const x = o->x;
    void *items = x->batches;
    for (int i = 0; i < o->pending_count; i++) {
        from[i] = x->values[o->pending[i].operands[0]].form;
        to[i] = x->values[o->pending[i].results[0]].form;
    }
    TSR_TRY(tsr_executable_add_plan(x, o->pending_count, from, to, &plan));
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->batches, x->batch_count, &x->batch_room, &items));
    x->batches = items;
    for (int i = 0; i < o->pending_count; i++) {
        o->pending[i].plan = plan;
        o->pending[i].place = i;
        o->pending[i].batch = (int)x->batch_count;
    }
    x->batch_count++;
    return TSR_OK;
}

static tsr_status flush(ordering *o)
{
    if (o->pending_count > 1)
        TSR_TRY(join(o));
    for (int i = 0; i < o->pending_count; i++) {
        o->waiting[o->pending[i].results[0]] = false;
        o->x->plans[o->pending[i].plan].is_used = true;
        o->steps[o->count++] = o->pending[i];
    }
    o->pending_count = 0;
    o->bytes = 0;
    return TSR_OK;
}

/* Bytes of the whole tensor, the same on every rank. */
static int64_t count_bytes(const tsr_layout *layout)
{
    int64_t bytes = (int64_t)tsr_dtype_bytes(tsr_layout_dtype(layout));
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        bytes *= tsr_layout_shape(layout)[dim] ? tsr_layout_shape(layout)[dim] : 1;
    return bytes;
}

/* True if a move is on the mesh of those that are pending, so that a rank is inside all or none. */
static bool is_on_one(const ordering *o, const tsr_step *step)
{
    const tsr_mesh *const from = tsr_layout_mesh(tsr_form_of(o->x, step->operands[0])->largest);
    const tsr_mesh *const to = tsr_layout_mesh(tsr_form_of(o->x, step->results[0])->largest);
    const int first = o->pending_count ? o->pending[0].operands[0] : step->operands[0];
    const tsr_mesh *const mesh = tsr_layout_mesh(tsr_form_of(o->x, first)->largest);
    return tsr_op_are_on_one_mesh(from, mesh) && tsr_op_are_on_one_mesh(to, mesh);
}

static tsr_status put_off(ordering *o, const tsr_step *step)
{
    const int64_t bytes = count_bytes(tsr_form_of(o->x, step->results[0])->largest);
    if (o->pending_count == TSR_BATCH || o->bytes + bytes > MOST_BYTES || !is_on_one(o, step))
        TSR_TRY(flush(o));
    const bool alone = !is_on_one(o, step);
    o->pending[o->pending_count++] = *step;
    o->waiting[step->results[0]] = true;
    o->bytes += bytes;
    return alone ? flush(o) : TSR_OK;
}

static tsr_status take(ordering *o, const tsr_step *step)
{
    bool waits = step->kind == TSR_DOES_STORE;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        waits |= step->operands[i] >= 0 && o->waiting[step->operands[i]];
    if (waits)
        TSR_TRY(flush(o));
    if (step->kind == TSR_DOES_MOVE && !o->x->plans[step->plan].local)
        return put_off(o, step);
    /* Ranks that keep what they have prepare the plan with those that do not. */
    if (step->kind == TSR_DOES_MOVE || (step->kind == TSR_DOES_SAME && !step->c.op))
        o->x->plans[step->plan].is_used = true;
    o->steps[o->count++] = *step;
    return TSR_OK;
}

void tsr_step_point(tsr_step *step)
{
    step->c.operands = step->layouts;
    step->call.inputs = step->inputs;
    step->call.outputs = step->outputs;
    step->call.layouts = step->call.layouts ? step->layouts : NULL;
    step->call.result_layouts = step->call.result_layouts ? step->result_layouts : NULL;
    if (step->call.attributes && step->kind != TSR_DOES_COPY && step->kind != TSR_DOES_STORE)
        step->call.attributes = step->c.attributes;
}

static tsr_status order(ordering *o)
{
    for (size_t i = 0; i < o->x->step_count; i++)
        TSR_TRY(take(o, &o->x->steps[i]));
    return flush(o);
}

tsr_status tsr_compile_batches(tsr_executable *x)
{
    void *steps, *waiting = NULL;
    ordering o = {.x = x};
    TSR_TRY(tsr_program_array(x->context, x->step_count, sizeof *x->steps, &steps));
    o.steps = steps;
    tsr_status status = tsr_program_array(x->context, x->value_count, sizeof(bool), &waiting);
    o.waiting = waiting;
    if (status == TSR_OK)
        status = order(&o);
    tsr_release(x->context, waiting);
    if (status != TSR_OK) {
        tsr_release(x->context, steps);
        return status;
    }
    tsr_release(x->context, x->steps);
    x->steps = steps;
    for (size_t i = 0; i < x->step_count; i++) {
        tsr_step_point(&x->steps[i]);
        x->steps[i].first = (int)i;
        x->steps[i].last = (int)i + 1;
    }
    return TSR_OK;
}
