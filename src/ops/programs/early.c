/* Where the engine overlaps, moves start as soon as their operands are made, and are finished where
 * a step reads a result, or before the next meeting: at most one is open. Steps keep their order,
 * so every rank meets the others in the same order, wherever it starts and finishes. */
#include "ops/programs/early.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/plan.h>

/* Moves of one exchange: the steps from `at` on, of which the first runs all. */
typedef struct moves {
    const tsr_executable *x;
    const tsr_step *steps;
    int at, count;
    const int *origin; /* of each value: the one over which it may lie on some rank; NULL: not asked */
} moves;

static bool is_move(const tsr_step *step)
{
    return !step->c.op;
}

static bool may_be_view(const tsr_step *step)
{
    return is_move(step) || step->c.op->view || step->c.op->passes;
}

static bool meets(const tsr_executable *x, const tsr_step *step)
{
    return is_move(step) ? !x->plans[step->plan].local : step->exchanged != 0;
}

/* True if a step takes time, on this rank or another. */
static bool works(const tsr_step *step)
{
    return step->kind != TSR_DOES_COPY && (step->kind == TSR_DOES_STORE || !may_be_view(step));
}

/* True if a step needs the communicator, so that no move may be open. A move within ranks does
 * where this rank makes it, but no rank waits for it. */
static bool wants_comm(const tsr_executable *x, const tsr_step *step, bool everywhere)
{
    return meets(x, step) || (!everywhere && step->kind == TSR_DOES_MOVE);
}

/* True if a step stores into a state that one of the moves reads. Moves that read a view of the
 * state need no check, because a value that is read after a store is copied before it. */
static bool overwrites(const moves *m, const tsr_step *step)
{
    for (int k = 0; k < m->count && step->kind == TSR_DOES_STORE; k++)
        if (step->operands[0] == m->steps[m->at + k].operands[0])
            return true;
    return false;
}

/* True if a step makes an operand of the moves. Results of a copy are no values. */
static bool makes_operand(const moves *m, const tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS && step->kind != TSR_DOES_COPY; i++)
        for (int k = 0; k < m->count && step->results[i] >= 0; k++)
            if (m->steps[m->at + k].operands[0] == step->results[i])
                return true;
    return false;
}

/* The value over which another lies on this rank, or may lie on some rank. */
static int find_base(const moves *m, int value, bool everywhere)
{
    return everywhere ? m->origin[value] : m->x->values[value].base;
}

/* True if a step reads a result of the moves. A view of it does not; what may be one on some rank
 * does not read everywhere, nor do copies, which ranks do not have alike. */
static bool reads_result(const moves *m, const tsr_step *step, bool everywhere)
{
    if (everywhere ? step->kind != TSR_DOES_STORE && may_be_view(step)
                   : step->kind == TSR_DOES_VIEW || step->kind == TSR_DOES_SAME)
        return false;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        for (int k = 0; k < m->count && step->operands[i] >= 0; k++)
            if (find_base(m, step->operands[i], everywhere) == find_base(m, m->steps[m->at + k].results[0], everywhere))
                return true;
    return false;
}

/* True if the moves may not be open while a step runs. */
static bool bounds(const moves *m, const tsr_step *step, bool everywhere)
{
    return wants_comm(m->x, step, everywhere) || overwrites(m, step);
}

/* From where to where the moves may be open. `everywhere`: on any rank, which all find alike. A
 * step may do its work later than in its turn, with those behind it. */
static tsr_early find(const moves *m, bool everywhere)
{
    const int end = (int)m->x->step_count;
    int first = m->at, last = m->at + m->count;
    while (first > 0 && !bounds(m, &m->steps[first - 1], everywhere) && !makes_operand(m, &m->steps[first - 1]))
        first--;
    if (first > 0)
        first = m->steps[first - 1].last;
    while (last < end && !bounds(m, &m->steps[last], everywhere) && !reads_result(m, &m->steps[last], everywhere))
        last++;
    return (tsr_early){.step = m->at, .first = first, .last = last};
}

/* The steps that do work from `first` up to `last`. */
static int count_work(const tsr_executable *x, int first, int last)
{
    int count = 0;
    for (int i = first; i < last; i++)
        count += works(&x->steps[i]);
    return count;
}

/* Adds moves. Where those before them could still be open, both have about as much work to hide
 * them. */
static void add(tsr_executable *x, tsr_early e)
{
    tsr_early *const before = x->early_count ? &x->early[x->early_count - 1] : NULL;
    if (before && before->last > e.first) {
        int own = count_work(x, e.first, e.last), others = count_work(x, before->first, e.first);
        for (; e.first < before->last && others < own; e.first++) {
            own -= works(&x->steps[e.first]);
            others += works(&x->steps[e.first]);
        }
        before->last = e.first;
        x->early_count -= !others;
    }
    if (count_work(x, e.first, e.last))
        x->early[x->early_count++] = e;
}

static moves moves_at(const tsr_executable *x, int at, const int *origin)
{
    return (moves){.x = x, .steps = x->steps, .at = at, .count = x->plans[x->steps[at].plan].count, .origin = origin};
}

static void find_all(tsr_executable *x)
{
    for (int i = 0; i < (int)x->step_count; i++) {
        if (!is_move(&x->steps[i]) || x->plans[x->steps[i].plan].local || x->steps[i].place > 0)
            continue;
        const moves m = moves_at(x, i, NULL);
        add(x, find(&m, false));
    }
}

static void find_origins(const tsr_executable *x, int *origin)
{
    for (size_t i = 0; i < x->value_count; i++)
        origin[i] = (int)i;
    for (size_t i = 0; i < x->step_count; i++) {
        const tsr_step *const step = &x->steps[i];
        if (step->kind != TSR_DOES_STORE && step->kind != TSR_DOES_COPY && !meets(x, step) && may_be_view(step))
            origin[step->results[0]] = origin[step->operands[0]];
    }
}

/* Tells moves that they are open in their turn alone. */
static void reset(tsr_executable *x)
{
    for (int i = 0; i < (int)x->step_count; i++) {
        if (x->steps[i].kind != TSR_DOES_MOVE)
            continue;
        x->steps[i].first = i - x->steps[i].place;
        x->steps[i].last = i + 1;
    }
}

/* Tells moves from where to where they may be open. */
static void tell_moves(tsr_executable *x)
{
    for (size_t i = 0; i < x->early_count; i++) {
        const tsr_early *const e = &x->early[i];
        for (int k = 0; k < x->plans[x->steps[e->step].plan].count; k++) {
            x->steps[e->step + k].first = e->first;
            x->steps[e->step + k].last = e->last;
        }
    }
}

tsr_status tsr_compile_ending(tsr_executable *x)
{
    void *memory;
    int latest = (int)x->step_count - 1;
    while (latest >= 0 && !meets(x, &x->steps[latest]))
        latest--;
    if (latest < 0 || !is_move(&x->steps[latest]))
        return TSR_OK;
    TSR_TRY(tsr_program_array(x->context, x->value_count, sizeof(int), &memory));
    find_origins(x, memory);
    const moves m = moves_at(x, latest - x->steps[latest].place, memory);
    const tsr_early e = find(&m, true);
    x->ends_open = count_work(x, e.first, e.last) > 0;
    tsr_release(x->context, memory);
    return TSR_OK;
}

bool tsr_executable_overlaps(const tsr_executable *x)
{
    for (size_t i = 0; i < x->form_count; i++) {
        tsr_comm *const comm = tsr_mesh_comm(tsr_layout_mesh(x->forms[i].largest));
        if (comm)
            return tsr_plan_overlaps(NULL, comm);
    }
    return false;
}

tsr_status tsr_compile_early(tsr_executable *x, bool overlaps)
{
    void *memory;
    size_t count = 0;
    x->overlaps = overlaps;
    x->has_rooms = false;
    x->early_count = 0;
    reset(x);
    for (size_t i = 0; overlaps && i < x->step_count; i++)
        count += meets(x, &x->steps[i]);
    if (!count)
        return TSR_OK;
    TSR_TRY(tsr_program_array(x->context, count, sizeof *x->early, &memory));
    tsr_release(x->context, x->early);
    x->early = memory;
    find_all(x);
    tell_moves(x);
    return TSR_OK;
}
