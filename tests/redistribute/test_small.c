/* Small moves: which plans have them as rows of bytes; and that ranks whose tensors have gaps,
 * which move boxes, meet ranks whose tensors have none. */
#include "ranks.h"
#include "redistribute/schedule/plan.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Upper bounds of the ranks and of the elements of a shard. */
enum { RANKS = 3, MOST = 1032 };

typedef struct move {
    const char *ranks;
    const char *from, *to, *shape;
    bool found[RANKS]; /* whether the rank has such rows */
} move;

static const move moves[] = {
    {"3", "S(0)", "S(1)", "6x9", {true, true, true}},
    {"3", "S(0)", "R", "12", {true, true, true}},
    {"3", "S(1)", "R", "3x6x5", {true, true, true}},
    {"3", "R", "S(1)", "4x6", {true, true, true}}, /* nothing crosses ranks */
    {"3", "P", "S(0)", "6x4", {true, true, true}},
    {"3", "P", "S(1)", "6x6", {false, false, false}}, /* terms that lie in rows are the device's */
    {"2", "P", "R", "16", {true, true}},
    {"3", "P", "R", "16", {false, false, false}}, /* which write into each other's memory */
    {"2", "P(max)", "R", "5x3", {true, true}},
    {"2", "P(avg)", "R", "4x4", {true, true}},
    {"3", "S(0;interleave=2)", "R", "12x2", {true, true, true}},
    {"3", "S(0)", "R", "7x2", {true, true, true}},         /* the last shard is smaller */
    {"3", "S(1)", "R", "2x7", {true, true, false}},        /* and is not shown as it lies */
    {"3", "S(0)", "R", "2x3", {true, true, false}},        /* the last rank has nothing */
    {"2", "S(0)", "S(1)", "128x8", {true, true}},          /* 64 rows in a box */
    {"3", "S(0)", "S(1)", "90x6", {true, true, true}},     /* 30 rows of 8 bytes */
    {"3", "S(0)", "S(1)", "150x6", {false, false, false}}, /* 50 such are too many */
    {"3", "S(0)", "R", "1032", {false, false, false}},     /* 4128 bytes are too many */
};

/* The tensors of a rank, with gaps (`step` is 2) or without. */
typedef struct side {
    tsr_tensor tensor;
    float memory[2 * MOST];
} side;

static tsr_status side_make(side *s, const tsr_layout *layout, int step)
{
    TSR_TRY(shard_over(layout, s->memory, &s->tensor));
    for (int dim = 0; dim < s->tensor.ndim; dim++)
        s->tensor.strides[dim] *= step;
    for (int i = 0; i < 2 * MOST; i++)
        s->memory[i] = -1;
    return TSR_OK;
}

static int side_count(const side *s)
{
    int count = 1;
    for (int dim = 0; dim < s->tensor.ndim; dim++)
        count *= (int)s->tensor.shape[dim];
    return count;
}

/* Runs the plan; this rank's tensors have gaps where `gaps` has its bit, the source's first. Gives
 * the result without them. */
static tsr_status run(const tsr_plan *plan, tsr_comm *comm, unsigned gaps, float *result, int *count)
{
    static _Thread_local side src, dst;
    const tsr_layout *from, *to;
    size_t bytes;
    const int rank = tsr_comm_rank(comm),
              steps[] = {1 + (int)(gaps >> 2 * rank & 1), 1 + (int)(gaps >> (2 * rank + 1) & 1)};
    void *workspace = workspace_for(plan, &bytes);
    TSR_TRY(tsr_plan_layouts(plan, 0, &from, &to));
    TSR_TRY(side_make(&src, from, steps[0]));
    TSR_TRY(side_make(&dst, to, steps[1]));
    for (int i = 0; i < side_count(&src); i++)
        src.memory[i * steps[0]] = (float)(100 * rank + i);
    const tsr_status status = tsr_plan_execute(plan, comm, &src.tensor, &dst.tensor, workspace, bytes, NULL);
    free(workspace);
    *count = side_count(&dst);
    for (int i = 0; i < *count; i++)
        result[i] = dst.memory[i * steps[1]];
    for (int i = 0; steps[1] == 2 && i < *count; i++)
        CHECK(dst.memory[2 * i + 1] == -1);
    return status;
}

static tsr_status move_make(const move *m, tsr_comm *comm, tsr_layout *layouts[2], tsr_plan **plan)
{
    TSR_TRY(layout_over(comm, m->ranks, m->shape, m->from, TSR_F32, &layouts[0]));
    const tsr_layout *const from = layouts[0];
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(from), m->to, tsr_layout_ndim(from), tsr_layout_shape(from), TSR_F32,
                             &layouts[1]));
    TSR_TRY(tsr_plan_create(from, layouts[1], NULL, plan));
    return tsr_plan_prepare(*plan, comm);
}

/* Runs with gaps on all ranks, then with every mixture. */
static tsr_status mix(tsr_comm *comm, void *arg)
{
    const move *m = arg;
    static _Thread_local float want[MOST], have[MOST];
    tsr_layout *layouts[2];
    tsr_plan *plan;
    int count;
    TSR_TRY(move_make(m, comm, layouts, &plan));
    CHECK(plan->small.found == m->found[tsr_comm_rank(comm)]);
    TSR_TRY(run(plan, comm, (1u << 2 * tsr_comm_size(comm)) - 1, want, &count));
    for (unsigned gaps = 0; gaps < 1u << 2 * tsr_comm_size(comm); gaps++) {
        TSR_TRY(run(plan, comm, gaps, have, &count));
        CHECK(memcmp(want, have, (size_t)count * sizeof *have) == 0);
    }
    tsr_plan_destroy(plan);
    tsr_layout_destroy(layouts[0]);
    tsr_layout_destroy(layouts[1]);
    return TSR_OK;
}

static void test_ranks_with_gaps_meet_ranks_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        const tsr_status status = tsr_threads_run(atoi(moves[i].ranks), mix, (void *)&moves[i], NULL);
        if (status != TSR_OK)
            fail_msg("%s -> %s of %s: %s", moves[i].from, moves[i].to, moves[i].shape, tsr_status_message());
    }
}

/* A rank with wrong tensors gets the error, and the others are told. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    static const move sum = {.ranks = "2", .from = "P", .to = "R", .shape = "16"};
    float memory[32] = {0}, other[16] = {0};
    tsr_layout *layouts[2];
    tsr_plan *plan;
    tsr_tensor src, dst;
    size_t bytes;
    (void)arg;
    TSR_TRY(move_make(&sum, comm, layouts, &plan));
    TSR_TRY(shard_over(layouts[0], memory, &src));
    TSR_TRY(shard_over(layouts[1], tsr_comm_rank(comm) == 1 ? memory + 8 : other, &dst));
    void *workspace = workspace_for(plan, &bytes);
    const tsr_status overlap = tsr_plan_execute(plan, comm, &src, &dst, workspace, bytes, NULL);
    CHECK(overlap == (tsr_comm_rank(comm) == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER));
    CHECK(strstr(tsr_status_message(), "overlap"));
    dst.data = other;
    const bool brings = tsr_comm_rank(comm) == 1;
    const tsr_status room =
        tsr_plan_execute(plan, comm, &src, &dst, brings ? workspace : NULL, brings ? bytes : 0, NULL);
    CHECK(bytes > 0);
    CHECK(room == (brings ? TSR_ERROR_PEER : TSR_ERROR_ARGUMENT));
    CHECK(strstr(tsr_status_message(), "workspace"));
    TSR_TRY(tsr_plan_execute(plan, comm, &src, &dst, workspace, bytes, NULL));
    free(workspace);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(layouts[0]);
    tsr_layout_destroy(layouts[1]);
    return TSR_OK;
}

static void test_faults_are_found_as_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(tsr_threads_run(2, refuse, NULL, NULL), TSR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_with_gaps_meet_ranks_without),
        cmocka_unit_test(test_faults_are_found_as_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
