/* Tables and the states of their optimizers that move to another mesh: a step there gives the bits
 * of a step where they were. */
#include "comm_suite.h"

#include <tessera/rows.h>
#include <tessera/sparse.h>

#include <stdio.h>

enum { RANKS = 4, ROWS = 11, WIDTH = 3, IDS = 5 };

/* A table on a mesh with its optimizer. */
typedef struct trained {
    tsr_mesh *mesh;
    tsr_dtensor *table;
    tsr_sparse_optimizer *optimizer;
} trained;

typedef struct play {
    tsr_sparse_kind kind;
    tsr_sparse_steps steps;
    const char *from, *from_placements, *to, *to_placements;
} play;

static tsr_status create(tsr_comm *comm, const play *p, const char *mesh, const char *placements, trained *t)
{
    const int64_t shape[] = {ROWS, WIDTH};
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    tsr_layout *layout;
    options.kind = p->kind;
    options.steps = p->steps;
    options.momentum = p->kind == TSR_SPARSE_SGD ? 0.5 : 0;
    options.learning_rate = 0.1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &t->mesh));
    TSR_TRY(tsr_layout_parse(t->mesh, placements, 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &t->table));
    tsr_layout_destroy(layout);
    return tsr_sparse_optimizer_create(1, &t->table, IDS, &options, &t->optimizer);
}

static void destroy(trained *t)
{
    tsr_sparse_optimizer_destroy(t->optimizer);
    tsr_dtensor_destroy(t->table);
    tsr_mesh_destroy(t->mesh);
}

/* The rows that a rank names; rank 0, which is not on every mesh, names none. */
static tsr_tensor name_rows(int rank, int step, int64_t ids[IDS])
{
    const int64_t count = rank == 0 ? 0 : IDS;
    for (int i = 0; i < IDS; i++)
        ids[i] = (3 * i + rank + step) % ROWS;
    return tsr_tensor_contiguous(ids, TSR_I64, 1, &count);
}

static tsr_status take_step(tsr_comm *comm, const trained *t, int step)
{
    const int rank = tsr_comm_rank(comm);
    int64_t ids[IDS];
    float gradients[IDS * WIDTH];
    const tsr_tensor named = name_rows(rank, step, ids);
    const int64_t shape[] = {named.shape[0], WIDTH};
    const tsr_tensor rows = tsr_tensor_contiguous(gradients, TSR_F32, 2, shape);
    for (int i = 0; i < IDS * WIDTH; i++)
        gradients[i] = (float)((i * 7 + rank * 5 + step * 3) % 13 - 6) / 7;
    return tsr_sparse_optimizer_step(t->optimizer, &named, &rows);
}

/* Every rank but 0 reads the whole table, row by row. */
static tsr_status read_table(tsr_comm *comm, const trained *t, float values[ROWS * WIDTH])
{
    int64_t ids[ROWS];
    const int64_t count = tsr_comm_rank(comm) == 0 ? 0 : ROWS, shape[] = {count, WIDTH};
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count);
    const tsr_tensor out = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i;
    return tsr_rows_gather(t->table, &named, &out);
}

static tsr_status set_table(tsr_comm *comm, const trained *t)
{
    int64_t ids[ROWS];
    float values[ROWS * WIDTH];
    const int64_t count = tsr_comm_rank(comm) == 1 ? ROWS : 0, shape[] = {count, WIDTH};
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count);
    const tsr_tensor rows = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i;
    for (int i = 0; i < ROWS * WIDTH; i++)
        values[i] = (float)(i % 17 - 8) / 3;
    return tsr_rows_update(t->table, &named, &rows, TSR_ROWS_ASSIGN);
}

/* Moves the table and all states. */
static tsr_status move(const trained *from, const trained *to)
{
    const char *name;
    TSR_TRY(tsr_redistribute_into(from->table, to->table, NULL));
    for (size_t i = 0; (name = tsr_sparse_optimizer_state_name(from->optimizer, i)); i++)
        TSR_TRY(tsr_redistribute_into(tsr_sparse_optimizer_state(from->optimizer, 0, name),
                                      tsr_sparse_optimizer_state(to->optimizer, 0, name), NULL));
    return TSR_OK;
}

static tsr_status play_move(tsr_comm *comm, void *arg)
{
    const play *const p = arg;
    float stayed[ROWS * WIDTH] = {0}, moved[ROWS * WIDTH] = {0}, before[ROWS * WIDTH] = {0};
    trained from = {NULL}, to = {NULL};
    TSR_TRY(create(comm, p, p->from, p->from_placements, &from));
    TSR_TRY(create(comm, p, p->to, p->to_placements, &to));
    TSR_TRY(set_table(comm, &from));
    for (int step = 0; step < 3; step++)
        TSR_TRY(take_step(comm, &from, step));
    TSR_TRY(move(&from, &to));
    TSR_TRY(read_table(comm, &to, before));
    TSR_TRY(read_table(comm, &from, stayed));
    CHECK(memcmp(stayed, before, sizeof before) == 0);
    for (int step = 3; step < 5; step++) {
        TSR_TRY(take_step(comm, &from, step));
        TSR_TRY(take_step(comm, &to, step));
    }
    TSR_TRY(read_table(comm, &from, stayed));
    TSR_TRY(read_table(comm, &to, moved));
    CHECK(memcmp(stayed, moved, sizeof moved) == 0);
    CHECK(tsr_comm_rank(comm) == 0 || memcmp(before, moved, sizeof moved) != 0);
    destroy(&to);
    destroy(&from);
    return TSR_OK;
}

static void a_step_after_a_move_has_the_bits_of_one_before(void **state)
{
    (void)state;
    static const char *const places[][2] = {{"3@1", "S(0;sizes=4,0,7)"}, {"3@1", "R"}, {"3@1", "S(1;balanced)"}};
    static const tsr_sparse_steps counts[] = {TSR_SPARSE_STEPS_GLOBAL, TSR_SPARSE_STEPS_ROW};
    for (int kind = 0; kind < TSR_SPARSE_KIND_END; kind++)
        for (int steps = 0; steps < 2; steps++)
            for (int to = 0; to < 3; to++) {
                play p = {(tsr_sparse_kind)kind, counts[steps], "2x2",
                          "S(0;sizes=8,3),S(1)", places[to][0], places[to][1]};
                print_message("%s by steps %d to %s\n", tsr_sparse_kind_name(p.kind), steps, p.to_placements);
                suite_run(RANKS, play_move, &p);
                play back = {p.kind, p.steps, p.to, p.to_placements, p.from, p.from_placements};
                suite_run(RANKS, play_move, &back);
            }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_after_a_move_has_the_bits_of_one_before),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
