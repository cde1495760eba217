/* Moves that no step waits for share an exchange, and are spread among kernels. */
#include "ops/programs/compiled/batches.h"

#include "ops/programs/compiled/follow.h"
#include "ops/programs/merge.h"
#include "ops/programs/plans.h"
#include "ops/programs/told/work.h"

#include <tessera/sys/memory.h>

/* Moves are put off for others while all of them together have at most so many bytes, as whole
 * tensors: beyond, what a shared exchange saves is small, and caches forget what moves. */
#define MOST_BYTES (INT64_C(1) << 20)

/* Moves that are put off, by their steps, and are to share an exchange. */
typedef struct put_off {
    int moves[TSR_BATCH], count;
    int64_t bytes;
} put_off;

/* Steps in a new order, in which moves are put off. */
typedef struct ordering {
    tsr_executable *x;
    tsr_step *steps; /* in the new order */
    size_t count;
    put_off *batches; /* of which those without moves were made; the last takes more */
    int first, last;
    int *waiting;  /* for each value the batch that makes it; -1: it is there */
    int *follower; /* for each step the first that follows it, then for each of these the next; -1: none */
    bool *follows; /* steps that have another place */
} ordering;

/* Makes the moves of a batch one. */
static tsr_status join(ordering *o, const put_off *moves)
{
    int from[TSR_BATCH], to[TSR_BATCH], plan;
    tsr_executable *const x = o->x;
    void *items = x->batches;
    for (int i = 0; i < moves->count; i++) {
        from[i] = x->values[x->steps[moves->moves[i]].operands[0]].form;
        to[i] = x->values[x->steps[moves->moves[i]].results[0]].form;
    }
    TSR_TRY(tsr_executable_add_plan(x, moves->count, from, to, &plan));
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->batches, x->batch_count, &x->batch_room, &items));
    x->batches = items;
    for (int i = 0; i < moves->count; i++) {
        tsr_step *const step = &x->steps[moves->moves[i]];
        step->plan = plan;
        step->place = i;
        step->batch = (int)x->batch_count;
    }
    x->batch_count++;
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

static void add_to(const ordering *o, put_off *moves, int at)
{
    moves->moves[moves->count++] = at;
    moves->bytes += count_bytes(tsr_form_of(o->x, o->x->steps[at].results[0])->largest);
}

/* Gives the moves of a batch their places, behind the steps that have theirs: all, or those that
 * are no sums. */
static tsr_status make(ordering *o, int batch, bool sums)
{
    put_off *const moves = &o->batches[batch], now = {.count = 0}, rest = {.count = 0};
    for (int i = 0; i < moves->count; i++)
        add_to(o, sums || !tsr_step_sums(o->x, &o->x->steps[moves->moves[i]]) ? &now : &rest, moves->moves[i]);
    if (now.count > 1)
        TSR_TRY(join(o, &now));
    for (int i = 0; i < now.count; i++) {
        const tsr_step *const step = &o->x->steps[now.moves[i]];
        o->waiting[step->results[0]] = -1;
        o->x->plans[step->plan].is_used = true;
        o->steps[o->count++] = *step;
    }
    *moves = rest;
    return TSR_OK;
}

static tsr_status make_all(ordering *o)
{
    for (; o->first < o->last; o->first++)
        TSR_TRY(make(o, o->first, true));
    return make(o, o->last, true);
}

/* True if a step reads a sum of the batch. */
static bool reads_sum(const ordering *o, const tsr_step *step, const put_off *moves)
{
    bool found = false;
    for (int k = 0; k < moves->count; k++) {
        const tsr_step *const move = &o->x->steps[moves->moves[k]];
        for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
            found |= move->results[0] == step->operands[i] && tsr_step_sums(o->x, move);
    }
    return found;
}

/* Makes what a step reads. Moves that wait with it share the exchange, but for sums where the step
 * reads none: a gather would wait for terms that were made just now. */
static tsr_status make_read(ordering *o, const tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        const int batch = step->operands[i] >= 0 ? o->waiting[step->operands[i]] : -1;
        if (batch >= 0)
            TSR_TRY(make(o, batch, reads_sum(o, step, &o->batches[batch])));
    }
    return TSR_OK;
}

/* Makes the batches that read a state before a step stores into it. Those that read a view of it
 * need not be made, because a value that is read behind a store is copied before it. */
static tsr_status make_overwritten(ordering *o, const tsr_step *step)
{
    for (int batch = o->first; batch <= o->last && step->kind == TSR_DOES_STORE; batch++) {
        const put_off *const moves = &o->batches[batch];
        bool found = false;
        for (int i = 0; i < moves->count; i++)
            found |= o->x->steps[moves->moves[i]].operands[0] == step->operands[0];
        if (found)
            TSR_TRY(make(o, batch, true));
    }
    return TSR_OK;
}

/* True if a move is on the mesh of those of a batch, so that a rank is inside all or none. */
static bool is_on_one(const ordering *o, const put_off *moves, const tsr_step *step)
{
    const tsr_mesh *const from = tsr_layout_mesh(tsr_form_of(o->x, step->operands[0])->largest);
    const tsr_mesh *const to = tsr_layout_mesh(tsr_form_of(o->x, step->results[0])->largest);
    const int first = moves->count ? o->x->steps[moves->moves[0]].operands[0] : step->operands[0];
    const tsr_mesh *const mesh = tsr_layout_mesh(tsr_form_of(o->x, first)->largest);
    return tsr_op_are_on_one_mesh(from, mesh) && tsr_op_are_on_one_mesh(to, mesh);
}

/* Puts a move off until a step needs it. */
static tsr_status add_move(ordering *o, int at)
{
    const tsr_step *const step = &o->x->steps[at];
    const int64_t bytes = count_bytes(tsr_form_of(o->x, step->results[0])->largest);
    put_off *moves = &o->batches[o->last];
    if (moves->count && (moves->count == TSR_BATCH || moves->bytes + bytes > MOST_BYTES || !is_on_one(o, moves, step)))
        moves = &o->batches[++o->last];
    const bool alone = !is_on_one(o, moves, step);
    add_to(o, moves, at);
    o->waiting[step->results[0]] = o->last;
    return alone ? make(o, o->last, true) : TSR_OK;
}

/* Makes the first of the full batches behind a product: so those that are put off together are
 * spread, and where the engine overlaps each has work to hide it. */
static tsr_status pace(ordering *o, const tsr_step *step)
{
    if (!step->c.op || !tsr_is_product(step->c.op))
        return TSR_OK;
    while (o->first < o->last && !o->batches[o->first].count)
        o->first++;
    return o->first < o->last ? make(o, o->first, true) : TSR_OK;
}

static tsr_status take(ordering *o, int at)
{
    const tsr_step *const step = &o->x->steps[at];
    TSR_TRY(make_read(o, step));
    TSR_TRY(make_overwritten(o, step));
    if (step->kind == TSR_DOES_MOVE && !o->x->plans[step->plan].local)
        return add_move(o, at);
    /* Ranks that keep what they have prepare the plan with those that do not. */
    if (step->kind == TSR_DOES_MOVE || (step->kind == TSR_DOES_SAME && !step->c.op))
        o->x->plans[step->plan].is_used = true;
    o->steps[o->count++] = *step;
    return pace(o, step);
}

static tsr_status order(ordering *o)
{
    for (int i = 0; i < (int)o->x->step_count; i++)
        for (int k = o->follows[i] ? -1 : i; k >= 0; k = o->follower[k])
            TSR_TRY(take(o, k));
    return make_all(o);
}

/* Orders the steps; all memory but that of `o->steps` is taken for it alone. */
static tsr_status order_with(ordering *o)
{
    void *batches, *numbers = NULL, *follows = NULL;
    const tsr_executable *const x = o->x;
    const size_t steps = x->step_count, values = x->value_count;
    TSR_TRY(tsr_program_array(x->context, steps + 1, sizeof(put_off), &batches));
    o->batches = batches;
    tsr_status status = tsr_program_array(x->context, values + steps, sizeof(int), &numbers);
    if (status == TSR_OK)
        status = tsr_program_array(x->context, steps, sizeof(bool), &follows);
    if (status == TSR_OK) {
        o->waiting = numbers;
        o->follower = o->waiting + values;
        o->follows = follows;
        for (size_t i = 0; i < values; i++)
            o->waiting[i] = -1;
        status = tsr_compile_followers(x, o->follower, o->follows);
    }
    if (status == TSR_OK)
        status = order(o);
    tsr_release(x->context, batches);
    tsr_release(x->context, numbers);
    tsr_release(x->context, follows);
    return status;
}

tsr_status tsr_compile_batches(tsr_executable *x)
{
    void *steps;
    ordering o = {.x = x};
    TSR_TRY(tsr_program_array(x->context, x->step_count, sizeof *x->steps, &steps));
    o.steps = steps;
    const tsr_status status = order_with(&o);
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
