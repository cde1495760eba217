#include "told_story.h"

#include "layouts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Order of transfers: negative where `a` comes first, 0 where they are equal. */
static int compare(const tsr_plan_transfer *a, const tsr_plan_transfer *b)
{
    const int64_t heads[][2] = {
        {(int64_t)a->step, (int64_t)b->step}, {a->peer, b->peer}, {(int64_t)a->item, (int64_t)b->item}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (heads[i][0] != heads[i][1])
            return heads[i][0] < heads[i][1] ? -1 : 1;
    for (int d = 0; d < a->ndim; d++) {
        if (a->begin[d] != b->begin[d])
            return a->begin[d] < b->begin[d] ? -1 : 1;
        if (a->end[d] != b->end[d])
            return a->end[d] < b->end[d] ? -1 : 1;
    }
    return 0;
}

static tsr_status collect(const tsr_plan_transfer *transfer, void *user)
{
    boxes *list = user;
    if (list->count > 0 && compare(&list->at[list->count - 1], transfer) >= 0)
        told_wrong("transfer %zu is not sorted behind the one before", list->count);
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 8;
        list->at = realloc(list->at, list->capacity * sizeof *list->at);
    }
    list->at[list->count++] = *transfer;
    return TSR_OK;
}

static tsr_plan_options options_of(const told_case *c, int64_t rank)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    options.mode = c->mode;
    options.objective = c->objective;
    if (c->nodes)
        options.nodes = (tsr_nodes){0, c->world, c->node};
    options.profile = &c->profile;
    return options;
}

void story_begin(story *s, const told_case *c)
{
    memset(s, 0, sizeof *s);
    s->c = c;
    oracle_move_make(&c->src, &c->dst, &s->move);
    s->elements = oracle_count(&c->src);
    s->src = abstract_layout(&c->src);
    s->dst = abstract_layout(&c->dst);
    for (int64_t r = 0; r < c->world; r++) {
        const tsr_plan_options options = options_of(c, r);
        expect_ok(tsr_plan_create(s->src, s->dst, &options, &s->plans[r]));
        expect_ok(tsr_plan_visit_receives(s->plans[r], collect, &s->receives[r]));
        expect_ok(tsr_plan_visit_sends(s->plans[r], collect, &s->sends[r]));
        expect_ok(tsr_plan_figures_of(s->plans[r], &s->figures[r]));
    }
    const tsr_plan_options options = options_of(c, TSR_RANK_NONE);
    tsr_plan *nobodys = NULL;
    expect_ok(tsr_plan_create(s->src, s->dst, &options, &nobodys));
    expect_ok(tsr_plan_survey_of(nobodys, &s->survey));
    tsr_plan_destroy(nobodys);
}

void story_end(story *s)
{
    for (int64_t r = 0; r < s->c->world; r++) {
        tsr_plan_destroy(s->plans[r]);
        free(s->receives[r].at);
        free(s->sends[r].at);
    }
    tsr_layout_destroy(s->src);
    tsr_layout_destroy(s->dst);
}
