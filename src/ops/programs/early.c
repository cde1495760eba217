/* Where the engine overlaps, moves start as soon as their operands are made, and are finished where
 * a step reads a result, or before the next meeting: at most one is open. Steps keep their order,
 * so every rank meets the others in the same order, wherever it starts and finishes. */
#include "ops/programs/early.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/plan.h>

#include <string.h>

/* Moves of one exchange: the steps from `at` on, of which the first runs all. */
typedef struct moves {
    const tsr_executable *x;
    const tsr_step *steps;
    int at, count;
} moves;

static bool is_move(const tsr_step *step)
{
    return !step->c.op;
}

static bool may_be_view(const tsr_step *step)
{
    return is_move(step) || step->c.op->view || strcmp(step->c.op->name, "vary") == 0;
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

/* True if a step stores into a state that one of the moves reads. A view of it is no matter: what
 * is read after a store is a copy. */
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

static bool reads_result(const moves *m, const tsr_step *step)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        for (int k = 0; k < m->count && step->operands[i] >= 0; k++)
            if (m->steps[m->at + k].results[0] == step->operands[i])
                return true;
    return false;
}

/* From where to where the moves may be open. `everywhere`: on any rank, which all find alike. */
static tsr_early find(const moves *m, bool everywhere)
{
    const int end = (int)m->x->step_count;
    int first = m->at, last = m->at + m->count;
    while (first > 0 && !wants_comm(m->x, &m->steps[first - 1], everywhere) && !overwrites(m, &m->steps[first - 1]) &&
           !makes_operand(m, &m->steps[first - 1]))
        first--;
    while (last < end && !wants_comm(m->x, &m->steps[last], everywhere) && !overwrites(m, &m->steps[last]) &&
           !reads_result(m, &m->steps[last]))
        last++;
    return (tsr_early){.step = m->at, .first = first, .last = last};
}

/* True if there is work to do while the moves are open. */
static bool is_worth(const moves *m, const tsr_early *e)
{
    for (int i = e->first; i < e->last; i++)
        if (works(&m->steps[i]))
            return true;
    return false;
}

/* Adds moves that are open from `e.first` on, until which the moves before them are finished. */
static void add(tsr_executable *x, const moves *m, tsr_early e)
{
    while (x->early_count > 0 && x->early[x->early_count - 1].last > e.first) {
        tsr_early *const before = &x->early[x->early_count - 1];
        const moves those = {.x = x, .steps = x->steps};
        before->last = e.first;
        if (is_worth(&those, before))
            break;
        x->early_count--;
    }
    if (is_worth(m, &e))
        x->early[x->early_count++] = e;
}

static moves moves_at(const tsr_executable *x, int at)
{
    return (moves){.x = x, .steps = x->steps, .at = at, .count = x->plans[x->steps[at].plan].count};
}

static void find_all(tsr_executable *x)
{
    int latest = -1;
    for (int i = 0; i < (int)x->step_count; i++) {
        if (!meets(x, &x->steps[i]))
            continue;
        latest = i;
        if (!is_move(&x->steps[i]) || x->steps[i].place > 0)
            continue;
        const moves m = moves_at(x, i);
        add(x, &m, find(&m, false));
    }
    if (latest < 0 || !is_move(&x->steps[latest]))
        return;
    const moves m = moves_at(x, latest - x->steps[latest].place);
    const tsr_early e = find(&m, true);
    x->ends_open = is_worth(&m, &e);
}

/* Tells the steps of moves while which steps they are open. */
static void tell_steps(tsr_executable *x)
{
    for (int i = 0; i < (int)x->step_count; i++) {
        x->steps[i].first = i - x->steps[i].place;
        x->steps[i].last = i + 1;
    }
    for (size_t i = 0; i < x->early_count; i++) {
        const tsr_early *const e = &x->early[i];
        for (int k = 0; k < x->plans[x->steps[e->step].plan].count; k++) {
            x->steps[e->step + k].first = e->first;
            x->steps[e->step + k].last = e->last;
        }
    }
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
    x->ends_open = false;
    x->early_count = 0;
    for (size_t i = 0; overlaps && i < x->step_count; i++)
        count += meets(x, &x->steps[i]);
    if (count) {
        tsr_release(x->context, x->early);
        x->early = NULL;
        TSR_TRY(tsr_program_array(x->context, count, sizeof *x->early, &memory));
        x->early = memory;
        find_all(x);
    }
    tell_steps(x);
    return TSR_OK;
}
