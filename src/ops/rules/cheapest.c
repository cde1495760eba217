#include "ops/rules/cheapest.h"

#include "ops/rules/choices.h"
#include "ops/rules/cost.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Combinations of choices that are all tried. */
#define EXACT 1024
/* Rounds through all mesh dims where there are more. */
#define ROUNDS 4
/* Costs that are remembered. */
#define MEMORY 512

/* Layouts for the operands, and what they cost. */
typedef struct answer {
    tsr_layout *operands[TSR_OP_OPERANDS];
    tsr_move_cost cost;
    bool fits;
} answer;

/* The cost of a move of an operand that was planned. */
typedef struct remembered {
    int operand;
    tsr_layout *to;
    tsr_move_cost cost;
} remembered;

typedef struct hunt {
    const tsr_op_question *q;
    const tsr_mesh *mesh;
    int mesh_ndim;
    int count[TSR_MAX_DIMS];
    tsr_choice choices[TSR_MAX_DIMS][TSR_CHOICES];
    answer best;
    int memory_count;
    remembered memory[MEMORY];
} hunt;

static void clear_answer(answer *a)
{
    for (int i = 0; i < TSR_OP_OPERANDS; i++)
        tsr_layout_destroy(a->operands[i]);
    memset(a, 0, sizeof *a);
}

/* Adds the cost of a move of an operand. */
static tsr_status add_cost(hunt *h, int operand, tsr_layout *to, tsr_move_cost *cost)
{
    tsr_move_cost own = {0};
    int at = 0;
    while (at < h->memory_count && (h->memory[at].operand != operand || !tsr_layout_equal(h->memory[at].to, to)))
        at++;
    if (at == h->memory_count) {
        TSR_TRY(tsr_move_cost_add(h->q->operands[operand], to, &own));
        if (at < MEMORY)
            h->memory[h->memory_count++] = (remembered){operand, tsr_layout_retain(to), own};
    } else {
        own = h->memory[at].cost;
    }
    cost->bytes += own.bytes;
    cost->busiest += own.busiest;
    cost->seconds += own.seconds;
    cost->moves += own.moves;
    return TSR_OK;
}

/* True if the policy lets an operand go to other placements. */
static bool is_allowed(const hunt *h, int operand, const tsr_layout *to)
{
    const tsr_placement *const own = tsr_layout_placements(h->q->operands[operand]);
    const tsr_placement *const then = tsr_layout_placements(to);
    if (h->q->policy != TSR_POLICY_PARTIALS || tsr_layout_equal(h->q->operands[operand], to))
        return true;
    for (int k = 0; k < h->mesh_ndim; k++) {
        const bool same = tsr_placement_same(&own[k], &then[k]) && own[k].order == then[k].order;
        if (!same && (own[k].kind != TSR_PARTIAL || then[k].kind == TSR_PARTIAL) && tsr_mesh_size(h->mesh, k) > 1)
            return false;
    }
    return true;
}

/* Gives an operand other placements; `*made` false: they are no layout. */
static tsr_status give(const hunt *h, int operand, const tsr_placement *placements, answer *a, bool *made)
{
    tsr_layout *layout;
    const tsr_status status = tsr_layout_with(h->q->operands[operand], placements, &layout);
    *made = status == TSR_OK;
    if (!*made)
        return status == TSR_ERROR_ARGUMENT ? TSR_OK : status;
    if (tsr_layout_equal(h->q->operands[operand], layout)) {
        tsr_layout_destroy(layout);
        layout = tsr_layout_retain((tsr_layout *)h->q->operands[operand]);
    }
    tsr_layout_destroy(a->operands[operand]);
    a->operands[operand] = layout;
    return TSR_OK;
}

/* Adds what it costs to bring results to the placements that are wanted. Of layouts that cost the
 * same, those should win that give a cut result at once, with less work; so moves count double. */
static tsr_status add_results(const hunt *h, const tsr_op_fitted *fitted, tsr_move_cost *cost)
{
    const tsr_op_question *const q = h->q;
    for (int i = 0; q->wanted && i < q->form->rule->result_count; i++) {
        tsr_layout *made = NULL, *wanted = NULL;
        const int ndim = q->form->results[i].ndim;
        if (!q->wanted[i])
            continue;
        tsr_status status = tsr_layout_create(h->mesh, fitted->results[i], ndim, q->shapes[i], q->dtypes[i], &made);
        if (status == TSR_OK)
            status = tsr_layout_create(h->mesh, q->wanted[i], ndim, q->shapes[i], q->dtypes[i], &wanted);
        if (status == TSR_OK)
            status = tsr_move_cost_add(made, wanted, cost);
        cost->moves += status == TSR_OK && !tsr_layout_equal(made, wanted);
        tsr_layout_destroy(wanted);
        tsr_layout_destroy(made);
        TSR_TRY(status);
    }
    return TSR_OK;
}

/* Fits the answer's layouts; operands that are added once get what they must have. */
static tsr_status fit_answer(const hunt *h, answer *a, tsr_move_cost *results)
{
    tsr_op_fitted fitted;
    bool made = true;
    for (int turn = 0; turn <= h->q->form->rule->operand_count && made; turn++) {
        tsr_op_placements placements = {0};
        for (int i = 0; i < h->q->form->rule->operand_count; i++)
            placements[i] = a->operands[i] ? tsr_layout_placements(a->operands[i]) : NULL;
        tsr_status status = tsr_op_place(h->q->form, h->mesh, placements, h->q->placing, &fitted);
        a->fits = status == TSR_OK && fitted.misfit.kind == TSR_OP_FITS;
        made = status == TSR_OK && fitted.misfit.kind == TSR_OP_ADDED;
        if (made)
            status = give(h, fitted.misfit.operand, fitted.misfit.wanted, a, &made);
        else if (a->fits)
            status = add_results(h, &fitted, results);
        tsr_op_fitted_clear(&fitted);
        TSR_TRY(status);
    }
    return TSR_OK;
}

/* Makes the layouts that choices give; `*made` false: some are none. */
static tsr_status make_layouts(const hunt *h, const int *chosen, answer *a, bool *made)
{
    const tsr_choice *choices[TSR_MAX_DIMS];
    tsr_status status = TSR_OK;
    *made = true;
    for (int k = 0; k < h->mesh_ndim; k++)
        choices[k] = &h->choices[k][chosen[k]];
    for (int i = 0; i < h->q->form->rule->operand_count && *made && status == TSR_OK; i++) {
        tsr_placement placements[TSR_MAX_DIMS];
        tsr_cut_lists lists = {tsr_mesh_context(h->mesh), NULL};
        if (!h->q->operands[i])
            continue;
        status = tsr_choices_place(h->q->form, h->q->operands, i, choices, &lists, placements, made);
        if (status == TSR_OK && *made)
            status = give(h, i, placements, a, made);
        tsr_cut_lists_clear(&lists);
    }
    return status;
}

/* The cost of the answer, if the policy and the limit allow it. */
static tsr_status cost_answer(hunt *h, answer *a)
{
    tsr_move_cost moves = {0};
    for (int i = 0; i < h->q->form->rule->operand_count && a->fits; i++) {
        if (!a->operands[i])
            continue;
        a->fits = is_allowed(h, i, a->operands[i]);
        if (a->fits)
            TSR_TRY(add_cost(h, i, a->operands[i], &moves));
    }
    a->fits = a->fits && (h->q->bytes == 0 || moves.busiest <= h->q->bytes);
    a->cost.bytes += moves.bytes;
    a->cost.seconds += moves.seconds;
    a->cost.moves += moves.moves;
    return TSR_OK;
}

/* Tries choices, and keeps them if they are cheaper than all before; `*better` says so. */
static tsr_status try_choices(hunt *h, const int *chosen, bool *better)
{
    answer a = {{NULL}};
    bool made;
    *better = false;
    tsr_status status = make_layouts(h, chosen, &a, &made);
    if (status == TSR_OK && made)
        status = fit_answer(h, &a, &a.cost);
    if (status == TSR_OK && a.fits)
        status = cost_answer(h, &a);
    if (status == TSR_OK && a.fits && (!h->best.fits || tsr_move_cost_compare(&a.cost, &h->best.cost) < 0)) {
        clear_answer(&h->best);
        h->best = a;
        *better = true;
        return TSR_OK;
    }
    clear_answer(&a);
    return status;
}

static tsr_status try_all(hunt *h)
{
    int chosen[TSR_MAX_DIMS] = {0}, k;
    bool better;
    do {
        TSR_TRY(try_choices(h, chosen, &better));
        for (k = h->mesh_ndim - 1; k >= 0; k--) {
            if (++chosen[k] < h->count[k])
                break;
            chosen[k] = 0;
        }
    } while (k >= 0);
    return TSR_OK;
}

/* Changes the choices of one mesh dim after the other, from those given, while that helps. */
static tsr_status improve(hunt *h, int *chosen)
{
    bool better, any;
    TSR_TRY(try_choices(h, chosen, &any));
    any = true;
    for (int round = 0; round < ROUNDS && any; round++) {
        any = false;
        for (int k = 0; k < h->mesh_ndim; k++) {
            int best = chosen[k];
            for (int i = 0; i < h->count[k]; i++) {
                chosen[k] = i;
                TSR_TRY(try_choices(h, chosen, &better));
                best = better ? i : best;
                any = any || better;
            }
            chosen[k] = best;
        }
    }
    return TSR_OK;
}

static tsr_status search(hunt *h)
{
    int64_t combinations = 1;
    for (int k = 0; k < h->mesh_ndim && combinations <= EXACT; k++)
        combinations *= h->count[k];
    if (combinations <= EXACT)
        return try_all(h);
    int kept[TSR_MAX_DIMS] = {0}, replicated[TSR_MAX_DIMS];
    for (int k = 0; k < h->mesh_ndim; k++)
        replicated[k] = h->count[k] - 1;
    TSR_TRY(improve(h, replicated));
    return improve(h, kept);
}

tsr_status tsr_op_find_cheapest(const tsr_op_question *question, tsr_layout *out[TSR_OP_OPERANDS], bool *found)
{
    int first = 0;
    void *memory;
    while (!question->operands[first])
        first++;
    const tsr_mesh *const mesh = tsr_layout_mesh(question->operands[first]);
    TSR_TRY(tsr_allocate(tsr_mesh_context(mesh), sizeof(hunt), &memory));
    hunt *const h = memory;
    memset(h, 0, sizeof *h);
    h->q = question;
    h->mesh = mesh;
    h->mesh_ndim = tsr_mesh_ndim(mesh);
    for (int k = 0; k < h->mesh_ndim; k++)
        h->count[k] = tsr_choices_list(question->form, question->operands, k, h->choices[k]);
    const tsr_status status = search(h);
    *found = status == TSR_OK && h->best.fits;
    if (*found)
        memcpy(out, h->best.operands, sizeof h->best.operands);
    else
        clear_answer(&h->best);
    for (int i = 0; i < h->memory_count; i++)
        tsr_layout_destroy(h->memory[i].to);
    tsr_release(tsr_mesh_context(mesh), memory);
    return status;
}
