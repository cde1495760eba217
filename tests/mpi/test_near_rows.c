/* Calls by id over two nodes of two ranks each: ranks of a node read one another's memory, so that
 * only rows of the other node are sent. */
#include "comm_suite.h"
#include "counted_memory.h"
#include "launched.h"
#include "nodes.h"

#include <tessera/rows.h>

#include <stdlib.h>

enum { RANKS = 4, EACH = 100, ROWS = RANKS * EACH, WIDTH = 256, COUNT = 300, ROUNDS = 3, FAILING = 1 };

typedef struct stage {
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    float *local, *data;
    int64_t ids[COUNT];
    int64_t times[2][ROWS]; /* how often all ranks name each row: ids of all ranks, and near ones */
    tsr_tensor named, rows;
    int rank;
} stage;

/* The ids are rows of this rank's node alone, or of all ranks. */
static int64_t id_of(int rank, int64_t i, bool near)
{
    const int64_t range = near ? 2 * EACH : ROWS, first = near ? rank / 2 * range : 0;
    return first + (i * 37 + rank * 7) % range;
}

static void count_names(stage *s)
{
    for (int near = 0; near < 2; near++)
        for (int rank = 0; rank < RANKS; rank++)
            for (int64_t i = 0; i < COUNT; i++)
                s->times[near][id_of(rank, i, near)]++;
}

/* `owned`: the table lies in memory of the library's, which ranks of a node share. */
static tsr_status raise_stage(stage *s, tsr_comm *comm, bool owned)
{
    const int64_t shape[] = {ROWS, WIDTH}, part[] = {EACH, WIDTH}, count = COUNT, brought[] = {COUNT, WIDTH};
    s->rank = tsr_comm_rank(comm);
    count_names(s);
    s->local = calloc((size_t)EACH * WIDTH, sizeof *s->local);
    s->data = calloc((size_t)COUNT * WIDTH, sizeof *s->data);
    CHECK(s->local && s->data);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, "S(0)", 2, shape, TSR_F32, &s->layout));
    const tsr_tensor own = tsr_tensor_contiguous(s->local, TSR_F32, 2, part);
    TSR_TRY(owned ? tsr_dtensor_create(s->layout, tsr_device_host(), &s->table)
                  : tsr_dtensor_from_local(&own, s->layout, NULL, &s->table));
    s->named = tsr_tensor_contiguous(s->ids, TSR_I64, 1, &count);
    s->rows = tsr_tensor_contiguous(s->data, TSR_F32, 2, brought);
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    tsr_dtensor_destroy(s->table);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
    free(s->local);
    free(s->data);
}

/* Elements of the table begin as their indices; rows that are brought are 1. */
static void fill(stage *s, bool near)
{
    float *const table = tsr_dtensor_to_local(s->table).data;
    for (int64_t i = 0; i < (int64_t)EACH * WIDTH; i++)
        table[i] = (float)((int64_t)s->rank * EACH * WIDTH + i);
    for (int64_t i = 0; i < COUNT; i++)
        s->ids[i] = id_of(s->rank, i, near);
    for (int64_t i = 0; i < (int64_t)COUNT * WIDTH; i++)
        s->data[i] = 1;
}

/* `added`: ranks have brought their rows once. */
static tsr_status check_table(const stage *s, bool near, bool added)
{
    const float *const table = tsr_dtensor_to_local(s->table).data;
    for (int64_t i = 0; i < (int64_t)EACH * WIDTH; i++) {
        const int64_t g = (int64_t)s->rank * EACH * WIDTH + i;
        CHECK(table[i] == (float)(g + (added ? s->times[near][g / WIDTH] : 0)));
    }
    return TSR_OK;
}

static tsr_status check_rows(const stage *s, bool near)
{
    for (int64_t i = 0; i < (int64_t)COUNT * WIDTH; i++) {
        const int64_t row = s->ids[i / WIDTH];
        CHECK(s->data[i] == (float)(row * WIDTH + i % WIDTH + s->times[near][row]));
    }
    return TSR_OK;
}

/* Bytes that went through MPI within the node. */
static tsr_status play_round(stage *s, tsr_rows_plan *plan, bool near, size_t *inside)
{
    size_t between;
    fill(s, near);
    TSR_TRY(tsr_comm_barrier(tsr_mesh_comm(s->mesh)));
    nodes_count(inside, &between);
    TSR_TRY(tsr_rows_plan_update(plan, &s->named, &s->rows, TSR_ROWS_ADD));
    TSR_TRY(tsr_rows_plan_gather(plan, &s->named, &s->rows));
    nodes_count(inside, &between);
    TSR_TRY(check_table(s, near, true));
    TSR_TRY(check_rows(s, near));
    /* Beginnings go to both ranks of the other node: 4 KiB, then 512 bytes. Agreements are less. */
    CHECK(near ? between < 3 * (4096 + 512) : between > (size_t)COUNT / 4 * WIDTH * sizeof(float));
    return TSR_OK;
}

static tsr_status play(tsr_comm *comm, bool owned, stage *s)
{
    tsr_rows_plan *plan = NULL;
    size_t inside, asked = 0;
    TSR_TRY(raise_stage(s, comm, owned));
    TSR_TRY(tsr_rows_plan_create(1, &s->table, COUNT, &plan));
    for (int round = 0; round < 2 * ROUNDS; round++) {
        TSR_TRY(play_round(s, plan, round % 2 == 0, &inside));
        CHECK((inside == 0) == owned);
        asked = round == 1 ? counted_asked_here() : asked;
    }
    CHECK(counted_asked_here() == asked);
    tsr_rows_plan_destroy(plan);
    return TSR_OK;
}

static tsr_status play_owned(tsr_comm *comm, void *arg)
{
    stage s = {.mesh = NULL};
    (void)arg;
    const tsr_status status = play(comm, true, &s);
    strike_stage(&s);
    return status;
}

static tsr_status play_borrowed(tsr_comm *comm, void *arg)
{
    stage s = {.mesh = NULL};
    (void)arg;
    const tsr_status status = play(comm, false, &s);
    strike_stage(&s);
    return status;
}

/* One rank's allocations fail, one after the other, until a call needs no more. */
static tsr_status fail_in_turn(stage *s, bool gathers)
{
    tsr_status status = TSR_ERROR_MEMORY;
    for (size_t nth = 1; status != TSR_OK; nth++) {
        fill(s, false);
        counted_fail_here(s->rank == FAILING ? nth : 0, true);
        status = gathers ? tsr_rows_gather(s->table, &s->named, &s->rows)
                         : tsr_rows_update(s->table, &s->named, &s->rows, TSR_ROWS_ADD);
        counted_fail_here(0, false);
        if (status != TSR_OK) {
            CHECK(status == (s->rank == FAILING ? TSR_ERROR_MEMORY : TSR_ERROR_PEER));
            for (int64_t i = 0; i < (int64_t)COUNT * WIDTH; i++)
                CHECK(s->data[i] == 1);
        }
        TSR_TRY(check_table(s, false, status == TSR_OK && !gathers));
        CHECK(nth < 200);
    }
    return TSR_OK;
}

static tsr_status fail_without_memory(tsr_comm *comm, void *arg)
{
    stage s = {.mesh = NULL};
    (void)arg;
    tsr_status status = raise_stage(&s, comm, true);
    if (status == TSR_OK)
        status = fail_in_turn(&s, false);
    if (status == TSR_OK)
        status = fail_in_turn(&s, true);
    strike_stage(&s);
    return status;
}

static void run_nodes(tsr_rank_main *body)
{
    counted_memory memory = {0};
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.context = counted_context(&memory);
    nodes_pretend(2);
    const tsr_status status = launched_run_with(RANKS, body, NULL, &options);
    nodes_pretend(0);
    tsr_context_destroy(options.context);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    assert_nothing_leaked(&memory);
}

static void nothing_is_sent_inside_a_node(void **state)
{
    (void)state;
    run_nodes(play_owned);
}

static void tables_in_other_memory_are_sent(void **state)
{
    (void)state;
    run_nodes(play_borrowed);
}

static void nothing_is_written_without_memory(void **state)
{
    (void)state;
    run_nodes(fail_without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_sent_inside_a_node),
        cmocka_unit_test(tables_in_other_memory_are_sent),
        cmocka_unit_test(nothing_is_written_without_memory),
    };
    (void)launched_rank();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
