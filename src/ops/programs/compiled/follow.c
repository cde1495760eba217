/* Gradients are summed, or added to earlier ones, while the backward goes on, and need no memory
 * until its end: what takes them is recorded behind it. */
#include "ops/programs/compiled/follow.h"

#include "ops/kernels/pointwise.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The most steps that go together. */
#define MOST_STEPS 4

/* What is known of steps. */
typedef struct seen {
    const tsr_executable *x;
    int *follower; /* as given out */
    bool *follows;
    int *maker; /* of each value the step; -1: none */
    int *reads; /* of each value, by how many steps */
    int *at;    /* of each step the one in whose place it is made: its own, or that of the one it follows */
} seen;

/* Steps that go together, the last one first. */
typedef struct chain {
    int steps[MOST_STEPS], count;
    int behind; /* the step that makes last what they read; -1: none */
} chain;

bool tsr_step_sums(const tsr_executable *x, const tsr_step *step)
{
    bool found = false;
    if (step->kind != TSR_DOES_MOVE || x->plans[step->plan].local)
        return false;
    const tsr_layout *const from = tsr_form_of(x, step->operands[0])->largest;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(from)); k++)
        found |= tsr_layout_placements(from)[k].kind == TSR_PARTIAL;
    return found;
}

/* True of a store of a state plus something, where nothing else reads the state as it was. */
static bool accumulates(const seen *s, const tsr_step *step)
{
    if (step->kind != TSR_DOES_STORE || step->operands[2] >= 0 || s->maker[step->operands[1]] < 0)
        return false;
    const int state = step->operands[0];
    const tsr_step *const sum = &s->x->steps[s->maker[step->operands[1]]];
    return s->reads[state] == 2 && sum->c.op && strcmp(sum->c.op->name, "add") == 0 &&
           (sum->operands[0] == state) != (sum->operands[1] == state);
}

/* True of a pointwise step whose result one step reads. */
static bool serves(const seen *s, int at)
{
    const tsr_step *const step = &s->x->steps[at];
    return step->c.op && step->c.op->host == tsr_pointwise_run && !s->follows[at] && s->reads[step->results[0]] == 1 &&
           step->kind != TSR_DOES_STORE && step->kind != TSR_DOES_COPY;
}

/* Adds what makes the operands of the chain's steps, as far as it goes with them. */
static chain find_chain(const seen *s, int at)
{
    chain c = {.steps = {at}, .count = 1, .behind = -1};
    for (int i = 0; i < c.count; i++) {
        const tsr_step *const step = &s->x->steps[c.steps[i]];
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++) {
            const int maker = step->operands[j] >= 0 ? s->maker[step->operands[j]] : -1;
            if (maker >= 0 && c.count < MOST_STEPS && serves(s, maker))
                c.steps[c.count++] = maker;
            else if (maker >= 0 && (c.behind < 0 || s->at[maker] > s->at[c.behind]))
                c.behind = maker;
        }
    }
    return c;
}

/* Lets the steps of a chain follow, in the order in which they were recorded. Those that are made
 * before the step which they would follow stay: a store may lie between. */
static void follow(const seen *s, chain *c)
{
    int before = c->behind;
    while (s->follower[before] >= 0)
        before = s->follower[before];
    for (int left = c->count; left > 0; left--) {
        int first = 0;
        for (int i = 1; i < left; i++)
            first = c->steps[i] < c->steps[first] ? i : first;
        const int at = c->steps[first];
        c->steps[first] = c->steps[left - 1];
        if (at < s->at[c->behind])
            continue;
        s->follower[before] = at;
        s->follows[at] = true;
        s->at[at] = s->at[c->behind];
        before = at;
    }
}

/* Counts how many steps read each value; copies into outputs, which are the last steps and which
 * ranks do not have alike, are not counted. */
static void count_reads(const seen *s)
{
    for (size_t i = 0; i < s->x->step_count; i++)
        for (int j = 0; j < TSR_OP_MOST_OPERANDS && s->x->steps[i].kind != TSR_DOES_COPY; j++)
            if (s->x->steps[i].operands[j] >= 0)
                s->reads[s->x->steps[i].operands[j]]++;
}

static void find_all(const seen *s)
{
    for (int i = 0; i < (int)s->x->step_count; i++) {
        const tsr_step *const step = &s->x->steps[i];
        for (int j = 0; j < TSR_OP_MOST_RESULTS && step->kind != TSR_DOES_COPY; j++)
            if (step->results[j] >= 0)
                s->maker[step->results[j]] = i;
        if (!tsr_step_sums(s->x, step) && !accumulates(s, step))
            continue;
        chain c = find_chain(s, i);
        if (c.behind >= 0)
            follow(s, &c);
    }
}

tsr_status tsr_compile_followers(const tsr_executable *x, int *follower, bool *follows)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, 2 * x->value_count + x->step_count, sizeof(int), &memory));
    int *const maker = memory, *const reads = maker + x->value_count;
    const seen s = {x, follower, follows, maker, reads, reads + x->value_count};
    for (size_t i = 0; i < x->value_count; i++)
        s.maker[i] = -1;
    for (size_t i = 0; i < x->step_count; i++) {
        follower[i] = -1;
        s.at[i] = (int)i;
    }
    count_reads(&s);
    find_all(&s);
    tsr_release(x->context, memory);
    return TSR_OK;
}
