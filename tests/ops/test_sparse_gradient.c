/* Gradients of embeddings as ids and rows: a step of SGD with them changes the table as the dense
 * gradient would. */
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 7, FEATURES = 3, IDS = 10 };

/* A table, ids (2, 5) and the gradient of what was embedded (2, 5, 3). */
typedef struct gradient_case {
    const char *mesh, *table, *ids, *dout;
    const char *words; /* of the error; NULL: there is none */
} gradient_case;

static const gradient_case cases[] = {
    {"1", "R", "R", "R", NULL},
    {"2", "S(0)", "R", "R", NULL},
    {"2", "S(0)", "R", "P", NULL},
    {"2", "S(1)", "S(1)", "S(1)", NULL},
    {"3", "R", "S(1;sizes=1,0,4)", "S(1;sizes=1,0,4)", NULL},
    {"2x2", "R,S(0)", "S(0),R", "S(0),R", NULL},
    {"2x2", "S(0),S(1)", "S(0),S(1)", "S(0),S(1)", NULL},
    {"2x3", "S(0),R", "R,S(1)", "P,S(1)", NULL},
    {"2x2", "S(0),S(0)", "R,R", "R,P", NULL},
    {"2", "S(0)", "S(1;sizes=3,2)", "S(1)", NULL},
    {"2", "S(0)", "S(0;unit=1)", "S(0;balanced)", NULL},
    {"2x2", "S(0),R", "S(0;balanced),S(1;balanced)", "S(0),S(1)", NULL},
    {"2", "S(0)", "S(1;sizes=2,3)", "S(1)", "along mesh dim 0 they are not cut alike"},
    {"2", "S(0)", "R", "S(2)", "along mesh dim 0 they are not cut alike"},
    {"2", "S(0)", "S(1)", "S(0)", "along mesh dim 0 they are not cut alike"},
    {"2", "S(0)", "S(1)", "P", "along mesh dim 0 they are not cut alike"},
    {"2", "S(0)", "R", "P(avg)", "along mesh dim 0 they are not cut alike"},
    {"2x2", "R,R", "S(1)[0],S(1)[1]", "S(1)[1],S(1)[0]", "the cuts of dim 1 have another order"},
};

static const double words_of_ids[IDS] = {6, 0, 3, 3, 1, 6, 6, 2, 0, 5};

/* The table after a step from 0 at a rate of 1. */
static tsr_status check_table(const tsr_dtensor *table)
{
    double got[ROWS * FEATURES], wanted[ROWS * FEATURES] = {0};
    for (int i = 0; i < IDS * FEATURES; i++)
        wanted[(int)words_of_ids[i / FEATURES] * FEATURES + i % FEATURES] -= i + 1;
    TSR_TRY(support_read(table, got));
    for (int i = 0; i < ROWS * FEATURES; i++)
        TSR_TRY(support_expect_held(got[i] == wanted[i], "table", i, got[i], wanted[i]));
    return TSR_OK;
}

static tsr_status take_step(tsr_dtensor *table, const tsr_dtensor *ids, const tsr_dtensor *dout)
{
    tsr_sparse_optimizer *optimizer = NULL;
    tsr_tensor named, rows;
    TSR_TRY(tsr_sparse_gradient(ids, dout, &named, &rows));
    TSR_TRY(tsr_sparse_optimizer_create(1, &table, IDS, NULL, &optimizer));
    TSR_TRY(tsr_sparse_optimizer_set_learning_rate(optimizer, 1));
    const tsr_status status = tsr_sparse_optimizer_step(optimizer, &named, &rows);
    tsr_sparse_optimizer_destroy(optimizer);
    return status;
}

static tsr_status step_case(tsr_comm *comm, void *arg)
{
    const gradient_case *const c = arg;
    const int64_t shape[] = {ROWS, FEATURES}, of_dout[] = {2, 5, FEATURES};
    double zeros[ROWS * FEATURES] = {0}, gradient[IDS * FEATURES];
    int32_t narrow[IDS];
    tsr_mesh *mesh;
    tsr_dtensor *table, *ids, *dout;
    for (int i = 0; i < IDS * FEATURES; i++)
        gradient[i] = i + 1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, c->mesh, &mesh));
    TSR_TRY(support_make(mesh, c->table, TSR_F64, 2, shape, zeros, &table));
    for (int i = 0; i < IDS; i++)
        narrow[i] = (int32_t)words_of_ids[i];
    /* Unlike support_make(), this keeps the words of the placements. */
    TSR_TRY(support_distribute(mesh, c->ids, TSR_I32, 2, of_dout, narrow, &ids));
    TSR_TRY(support_make(mesh, c->dout, TSR_F64, 3, of_dout, gradient, &dout));
    const tsr_status status = take_step(table, ids, dout);
    if (c->words)
        EXPECT(status == TSR_ERROR_UNSUPPORTED && strstr(tsr_status_message(), c->words), "it is not refused: %s",
               tsr_status_message());
    else {
        TSR_TRY(status);
        TSR_TRY(check_table(table));
    }
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(ids);
    tsr_dtensor_destroy(table);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_of_every_layout_are_ids_and_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tsr_threads_run(support_count_ranks(cases[i].mesh), step_case, (void *)&cases[i], NULL) != TSR_OK)
            fail_msg("case %zu: %s", i, tsr_status_message());
}

/* The loss is the sum of what is embedded times a target; its gradient by that is the target. */
static tsr_status record(tsr_program *p, const tsr_mesh *mesh, const tsr_layout *of_table, tsr_layout **of_dx)
{
    const int64_t shape[] = {2, 5, FEATURES};
    tsr_value dx;
    const tsr_value ids = tsr_input(p, "ids", mesh, TSR_I32, 2, shape, "S(0),R");
    const tsr_value target = tsr_input(p, "target", mesh, TSR_F32, 3, shape, "S(0),R");
    const tsr_value table = tsr_parameter(p, "table", of_table);
    const tsr_value x = tsr_op_embedding(p, table, ids);
    const tsr_value y = tsr_op_redistribute(p, x, "S(0),R");
    tsr_gradients(p, tsr_op_sum(p, tsr_op_mul(p, y, target), 0, NULL, 0), 1, &x, &dx);
    tsr_output(p, "dx", dx, NULL);
    TSR_TRY(tsr_program_status(p, NULL));
    *of_dx = tsr_layout_retain((tsr_layout *)tsr_value_layout(p, dx));
    return TSR_OK;
}

static tsr_status run_program(const tsr_program *p, tsr_comm *comm, tsr_dtensor *table, const tsr_dtensor *const *in,
                              const tsr_dtensor *dx)
{
    tsr_executable *exe;
    const tsr_tensor inputs[] = {tsr_dtensor_to_local(in[0]), tsr_dtensor_to_local(in[1])},
                     out = tsr_dtensor_to_local(dx);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    TSR_TRY(tsr_executable_bind(exe, "table", table));
    TSR_TRY(tsr_executable_prepare(exe, comm));
    for (size_t i = 0; i < tsr_executable_step_count(exe); i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(exe, i, &step));
        EXPECT(!strstr(step.op, "embedding_"), "the program makes the table's gradient by %s", step.op);
    }
    const size_t bytes = (tsr_executable_workspace_bytes(exe) + 63) / 64 * 64;
    void *const workspace = aligned_alloc(64, bytes + 64);
    EXPECT(workspace, "no memory");
    const tsr_status status = tsr_executable_run(exe, comm, inputs, &out, workspace, bytes, NULL);
    free(workspace);
    tsr_executable_destroy(exe);
    return status;
}

static tsr_status step_by_program(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {ROWS, FEATURES}, of_x[] = {2, 5, FEATURES};
    double zeros[ROWS * FEATURES] = {0}, gradient[IDS * FEATURES];
    tsr_mesh *mesh;
    tsr_dtensor *table, *in[2], *dx;
    tsr_program *p;
    tsr_layout *of_dx;
    (void)arg;
    for (int i = 0; i < IDS * FEATURES; i++)
        gradient[i] = i + 1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "dp=2,tp=2", &mesh));
    TSR_TRY(support_make(mesh, "R,S(0)", TSR_F32, 2, shape, zeros, &table));
    TSR_TRY(support_make(mesh, "S(0),R", TSR_I32, 2, of_x, words_of_ids, &in[0]));
    TSR_TRY(support_make(mesh, "S(0),R", TSR_F32, 3, of_x, gradient, &in[1]));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    TSR_TRY(record(p, mesh, tsr_dtensor_layout(table), &of_dx));
    TSR_TRY(tsr_dtensor_create(of_dx, tsr_device_host(), &dx));
    TSR_TRY(run_program(p, comm, table, (const tsr_dtensor *const *)in, dx));
    TSR_TRY(take_step(table, in[0], dx));
    TSR_TRY(check_table(table));
    tsr_program_destroy(p);
    tsr_layout_destroy(of_dx);
    tsr_dtensor_destroy(dx);
    tsr_dtensor_destroy(in[0]);
    tsr_dtensor_destroy(in[1]);
    tsr_dtensor_destroy(table);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void programs_give_gradients_by_what_they_embed(void **state)
{
    (void)state;
    if (tsr_threads_run(4, step_by_program, NULL, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    static const double zeros[IDS * FEATURES] = {0};
    const int64_t shape[] = {IDS, FEATURES}, transposed[] = {FEATURES, IDS};
    tsr_mesh *mesh, *other;
    tsr_dtensor *ids, *dout, *floats, *turned, *elsewhere, *gaps;
    tsr_tensor named, rows;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &other));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, shape, zeros, &ids));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 1, shape, zeros, &floats));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, shape, zeros, &dout));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, transposed, zeros, &turned));
    TSR_TRY(support_make(other, "R", TSR_F32, 2, shape, zeros, &elsewhere));
    tsr_tensor local = tsr_dtensor_to_local(dout);
    local.strides[0] = 0;
    TSR_TRY(tsr_dtensor_from_local(&local, tsr_dtensor_layout(dout), NULL, &gaps));
    const struct {
        const tsr_dtensor *ids, *dout;
        const char *words;
    } refused[] = {
        {NULL, dout, "ids is NULL"},
        {ids, NULL, "dout is NULL"},
        {floats, dout, "ids is of f32: i32 and i64 are fine"},
        {ids, turned, "dout has shape 3x10, and ids 10"},
        {ids, ids, "dout has shape 10, and ids 10"},
        {ids, elsewhere, "dout is on another mesh than ids"},
        {ids, gaps, "the local tensor of dout is not contiguous"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        EXPECT(tsr_sparse_gradient(refused[i].ids, refused[i].dout, &named, &rows) != TSR_OK &&
                   strstr(tsr_status_message(), refused[i].words),
               "case %zu: %s", i, tsr_status_message());
    EXPECT(tsr_sparse_gradient(ids, dout, NULL, &rows) == TSR_ERROR_ARGUMENT, "named is NULL");
    EXPECT(tsr_sparse_gradient(ids, dout, &named, NULL) == TSR_ERROR_ARGUMENT, "rows is NULL");
    tsr_dtensor *const all[] = {ids, floats, gaps, dout, turned, elsewhere};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(other);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void what_is_no_embedding_is_refused(void **state)
{
    (void)state;
    if (tsr_threads_run(2, refuse, NULL, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_layout_are_ids_and_rows),
        cmocka_unit_test(programs_give_gradients_by_what_they_embed),
        cmocka_unit_test(what_is_no_embedding_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
