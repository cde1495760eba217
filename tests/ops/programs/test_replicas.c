/* Replicas of a program against the program by itself, with integers, whose sums are exact. */
#include "counted_memory.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IN = 4, OUT = 4, IDS = 8, MOST = 64, BATCHES = 7 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != TSR_OK)                                                                                          \
            fail_msg("%s: %s", #call, tsr_status_message());                                                           \
    } while (0)

/* Asserts that a call fails with a status, and a sentence that has a part. */
static void refused(tsr_status status, tsr_status wanted, const char *part)
{
    if (status != wanted || !strstr(tsr_status_message(), part))
        fail_msg("%s: \"%s\", but %s with \"%s\" is wanted", tsr_status_name(status), tsr_status_message(),
                 tsr_status_name(wanted), part);
}

/* A batch, and what is made of it. */
typedef struct batch {
    int64_t rows;
    float x[MOST * IN];
    int64_t ids[MOST];
    float y[MOST * OUT], loss;
    tsr_tensor inputs[2], outputs[2];
} batch;

/* Parameters and their gradients. */
typedef struct weights {
    float w[OUT * IN], table[IDS * IN];
    double w_gradient[OUT * IN]; /* of another dtype than the parameter */
    float table_gradient[IDS * IN];
    tsr_tensor tensors[4];
} weights;

static const int64_t w_shape[] = {OUT, IN}, table_shape[] = {IDS, IN};

/* A batch whose values follow from `seed`. */
static void make_batch(batch *b, int64_t rows, int seed)
{
    *b = (batch){.rows = rows};
    for (int64_t i = 0; i < rows * IN; i++)
        b->x[i] = (float)((i * 7 + seed) % 5 - 2);
    for (int64_t i = 0; i < rows; i++)
        b->ids[i] = (i * 3 + seed) % IDS;
    b->inputs[0] = tsr_tensor_contiguous(b->x, TSR_F32, 2, (int64_t[]){rows, IN});
    b->inputs[1] = tsr_tensor_contiguous(b->ids, TSR_I64, 1, &rows);
    b->outputs[0] = tsr_tensor_contiguous(b->y, TSR_F32, 2, (int64_t[]){rows, OUT});
    b->outputs[1] = tsr_tensor_contiguous(&b->loss, TSR_F32, 0, NULL);
}

/* Parameters, and gradients of former steps. */
static void make_weights(weights *of)
{
    for (int i = 0; i < OUT * IN; i++) {
        of->w[i] = (float)(i % 3 - 1);
        of->w_gradient[i] = i;
    }
    for (int i = 0; i < IDS * IN; i++) {
        of->table[i] = (float)(i % 4 - 1);
        of->table_gradient[i] = (float)(-i);
    }
    of->tensors[0] = tsr_tensor_contiguous(of->w, TSR_F32, 2, w_shape);
    of->tensors[1] = tsr_tensor_contiguous(of->table, TSR_F32, 2, table_shape);
    of->tensors[2] = tsr_tensor_contiguous(of->w_gradient, TSR_F64, 2, w_shape);
    of->tensors[3] = tsr_tensor_contiguous(of->table_gradient, TSR_F32, 2, table_shape);
}

static tsr_value parameter(tsr_program *p, const tsr_mesh *mesh, const char *name, const int64_t *shape)
{
    tsr_layout *layout;
    OK(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &layout));
    const tsr_value value = tsr_parameter(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

/* y = (x + table[ids]) w^T, with the sum or mean of its squares as the loss. */
static tsr_program *record(tsr_context *context, int64_t most, bool mean)
{
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value d[2];
    OK(tsr_mesh_parse(NULL, context, "1", &mesh));
    OK(tsr_program_create(context, &p));
    const int64_t rows = tsr_length(p, "rows", most);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (int64_t[]){rows, IN}, NULL);
    const tsr_value ids = tsr_input(p, "ids", mesh, TSR_I64, 1, &rows, NULL);
    const tsr_value of[] = {parameter(p, mesh, "w", w_shape), parameter(p, mesh, "table", table_shape)};
    const tsr_value h = tsr_op_add(p, x, tsr_op_embedding(p, of[1], ids));
    const tsr_value y = tsr_op_linear(p, h, of[0], TSR_NONE), squares = tsr_op_square(p, y);
    const tsr_value loss = mean ? tsr_op_mean(p, squares, 0, NULL, 0) : tsr_op_sum(p, squares, 0, NULL, 0);
    tsr_gradients(p, loss, 2, of, d);
    tsr_output(p, "d.w", d[0], NULL);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "d.table", d[1], NULL);
    tsr_output(p, "loss", loss, NULL);
    OK(tsr_program_status(p, NULL));
    tsr_mesh_destroy(mesh);
    return p;
}

static tsr_dtensor *lend(const tsr_mesh *mesh, const tsr_tensor *tensor)
{
    tsr_layout *layout;
    tsr_dtensor *out;
    OK(tsr_layout_parse(mesh, "R", tensor->ndim, tensor->shape, tensor->dtype, &layout));
    OK(tsr_dtensor_from_local(tensor, layout, NULL, &out));
    tsr_layout_destroy(layout);
    return out;
}

/* Runs a batch by an executable, on one rank, and adds its gradients, as exact sums. */
static void run_plainly(const tsr_program *p, weights *of, batch *b)
{
    static const char *const names[] = {"w", "table"};
    float d_w[OUT * IN], d_table[IDS * IN];
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_executable *exe;
    options.rank = 0;
    OK(tsr_comm_create_threads(1, NULL, &comm));
    OK(tsr_mesh_parse(comm, NULL, "1", &mesh));
    OK(tsr_compile(p, &options, &exe));
    for (int i = 0; i < 2; i++) {
        tsr_dtensor *const tensor = lend(mesh, &of->tensors[i]);
        OK(tsr_executable_bind(exe, names[i], tensor));
        tsr_dtensor_destroy(tensor);
    }
    OK(tsr_executable_prepare(exe, comm));
    OK(tsr_executable_set_length(exe, "rows", b->rows));
    const tsr_tensor outputs[] = {tsr_tensor_contiguous(d_w, TSR_F32, 2, w_shape), b->outputs[0],
                                  tsr_tensor_contiguous(d_table, TSR_F32, 2, table_shape), b->outputs[1]};
    const size_t bytes = (tsr_executable_workspace_bytes(exe) + 127) / 64 * 64;
    void *const workspace = aligned_alloc(64, bytes);
    OK(tsr_executable_run(exe, comm, b->inputs, outputs, workspace, bytes, NULL));
    free(workspace);
    for (int i = 0; i < OUT * IN; i++)
        of->w_gradient[i] += (double)d_w[i];
    for (int i = 0; i < IDS * IN; i++)
        of->table_gradient[i] += d_table[i];
    tsr_executable_destroy(exe);
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(comm);
}

static void bind_weights(tsr_replicas *r, const weights *of)
{
    OK(tsr_replicas_bind(r, "w", &of->tensors[0], &of->tensors[2]));
    OK(tsr_replicas_bind(r, "table", &of->tensors[1], &of->tensors[3]));
}

static void same_weights(const weights *a, const weights *b)
{
    assert_memory_equal(a->w_gradient, b->w_gradient, sizeof a->w_gradient);
    assert_memory_equal(a->table_gradient, b->table_gradient, sizeof a->table_gradient);
}

static tsr_replicas *replicate(tsr_context *context, int64_t most, int ranks, bool mean)
{
    tsr_replicas_options options = TSR_REPLICAS_OPTIONS_INIT;
    tsr_replicas *r;
    tsr_program *const p = record(context, most, mean);
    options.reduce = mean ? TSR_REPLICAS_MEAN : TSR_REPLICAS_SUM;
    OK(tsr_replicas_create(p, ranks, &options, &r));
    tsr_program_destroy(p);
    return r;
}

static tsr_context *make_context(void)
{
    tsr_context *context;
    OK(tsr_context_create(NULL, &context));
    return context;
}

/* From no rows to as many as fit, so that parts differ and ranks have none: all as on one rank. */
static void parts_are_the_whole(void **state)
{
    static batch made, wanted;
    tsr_context *const context = make_context();
    tsr_program *const plain = record(context, MOST, false);
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        weights own, expected;
        tsr_replicas *const r = replicate(context, 4, ranks, false);
        make_weights(&own);
        make_weights(&expected);
        bind_weights(r, &own);
        for (int64_t rows = 0; rows <= 4 * ranks; rows++) {
            make_batch(&made, rows, (int)rows);
            make_batch(&wanted, rows, (int)rows);
            made.loss = 5;
            OK(tsr_replicas_run(r, made.inputs, made.outputs));
            if (rows)
                run_plainly(plain, &expected, &wanted);
            assert_memory_equal(made.y, wanted.y, sizeof made.y);
            assert_true(made.loss == wanted.loss);
            same_weights(&own, &expected);
        }
        tsr_replicas_destroy(r);
    }
    tsr_program_destroy(plain);
    tsr_context_destroy(context);
}

/* The mean of 10 rows, in parts of 4, 4 and 2 that divide exactly, is a tenth of the sum. */
static void means_count_rows(void **state)
{
    static batch made, wanted;
    weights own, sums;
    tsr_context *const context = make_context();
    tsr_program *const plain = record(context, MOST, false);
    tsr_replicas *const r = replicate(context, 4, 3, true);
    (void)state;
    make_weights(&own);
    make_weights(&sums);
    memset(sums.w_gradient, 0, sizeof sums.w_gradient);
    memset(sums.table_gradient, 0, sizeof sums.table_gradient);
    bind_weights(r, &own);
    make_batch(&made, 10, 2);
    make_batch(&wanted, 10, 2);
    OK(tsr_replicas_run(r, made.inputs, made.outputs));
    run_plainly(plain, &sums, &wanted);
    assert_memory_equal(made.y, wanted.y, sizeof made.y);
    assert_true(made.loss == (float)((double)wanted.loss / OUT / 10));
    for (int i = 0; i < OUT * IN; i++)
        assert_true(own.w_gradient[i] == sums.w_gradient[i] / OUT / 10 + i);
    for (int i = 0; i < IDS * IN; i++)
        assert_true(own.table_gradient[i] == (float)((double)sums.table_gradient[i] / OUT / 10 - i));
    tsr_replicas_destroy(r);
    tsr_program_destroy(plain);
    tsr_context_destroy(context);
}

/* Applies `count` batches of 0, 1, .. rows, and compares each, and all gradients. */
static void try_batches(tsr_replicas *r, const tsr_program *plain, weights *own, weights *expected, size_t count)
{
    static batch made[BATCHES], wanted;
    tsr_tensor inputs[2 * BATCHES], outputs[2 * BATCHES];
    for (size_t i = 0; i < count; i++) {
        make_batch(&made[i], (int64_t)((i + 2) % 5), (int)i);
        memcpy(&inputs[2 * i], made[i].inputs, sizeof made[i].inputs);
        memcpy(&outputs[2 * i], made[i].outputs, sizeof made[i].outputs);
    }
    OK(tsr_replicas_apply(r, count, inputs, outputs));
    for (size_t i = 0; i < count; i++) {
        make_batch(&wanted, made[i].rows, (int)i);
        if (wanted.rows)
            run_plainly(plain, expected, &wanted);
        assert_memory_equal(made[i].y, wanted.y, sizeof wanted.y);
        assert_true(made[i].loss == wanted.loss);
    }
    same_weights(own, expected);
}

/* No batch, one, and more than there are ranks. */
static void batches_go_round(void **state)
{
    tsr_context *const context = make_context();
    tsr_program *const plain = record(context, MOST, false);
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        weights own, expected;
        tsr_replicas *const r = replicate(context, 4, ranks, false);
        make_weights(&own);
        make_weights(&expected);
        bind_weights(r, &own);
        for (size_t count = 0; count <= BATCHES; count++)
            try_batches(r, plain, &own, &expected, count);
        OK(tsr_replicas_apply(r, 0, NULL, NULL));
        same_weights(&own, &expected);
        tsr_replicas_destroy(r);
    }
    tsr_program_destroy(plain);
    tsr_context_destroy(context);
}

/* An id out of range on one rank: the call names it, and gradients stay; the next call works. */
static void a_rank_that_fails_is_named(void **state)
{
    static batch b, wanted;
    weights own, expected;
    tsr_context *const context = make_context();
    tsr_program *const plain = record(context, MOST, false);
    tsr_replicas *const r = replicate(context, 4, 3, false);
    (void)state;
    make_weights(&own);
    make_weights(&expected);
    bind_weights(r, &own);
    make_batch(&b, 9, 1);
    b.ids[4] = IDS;
    refused(tsr_replicas_run(r, b.inputs, b.outputs), TSR_ERROR_ARGUMENT,
            "tsr_replicas_run: rank 1, rows 3 to 5: op 0, embedding: ids[1] is 8, but");
    same_weights(&own, &expected);

    tsr_tensor inputs[10], outputs[10];
    static batch list[5];
    for (int i = 0; i < 5; i++) {
        make_batch(&list[i], 4, i);
        memcpy(&inputs[2 * i], list[i].inputs, sizeof list[i].inputs);
        memcpy(&outputs[2 * i], list[i].outputs, sizeof list[i].outputs);
    }
    list[4].ids[3] = -1;
    refused(tsr_replicas_apply(r, 5, inputs, outputs), TSR_ERROR_ARGUMENT, "tsr_replicas_apply: rank 1, batch 4: ");
    same_weights(&own, &expected);

    make_batch(&b, 9, 1);
    make_batch(&wanted, 9, 1);
    OK(tsr_replicas_run(r, b.inputs, b.outputs));
    run_plainly(plain, &expected, &wanted);
    same_weights(&own, &expected);
    tsr_replicas_destroy(r);
    tsr_program_destroy(plain);
    tsr_context_destroy(context);
}

/* Rows that lie apart, and outputs into every second column of a larger tensor. */
static void rows_may_have_strides(void **state)
{
    static batch b, wanted;
    static float wide_x[MOST * IN * 2], wide_y[MOST * OUT * 2];
    weights own, expected;
    tsr_context *const context = make_context();
    tsr_program *const plain = record(context, MOST, false);
    tsr_replicas *const r = replicate(context, 4, 3, false);
    (void)state;
    make_weights(&own);
    make_weights(&expected);
    bind_weights(r, &own);
    make_batch(&b, 11, 3);
    make_batch(&wanted, 11, 3);
    run_plainly(plain, &expected, &wanted);
    for (int i = 0; i < 11 * IN; i++)
        wide_x[2 * i] = b.x[i];
    b.inputs[0].data = wide_x;
    b.outputs[0].data = wide_y;
    for (int dim = 0; dim < 2; dim++) {
        b.inputs[0].strides[dim] *= 2;
        b.outputs[0].strides[dim] *= 2;
    }
    OK(tsr_replicas_run(r, b.inputs, b.outputs));
    for (int i = 0; i < 11 * OUT; i++)
        assert_true(wide_y[2 * i] == wanted.y[i] && wide_y[2 * i + 1] == 0);
    same_weights(&own, &expected);
    tsr_replicas_destroy(r);
    tsr_program_destroy(plain);
    tsr_context_destroy(context);
}

static void repeated_calls_allocate_nothing(void **state)
{
    static batch b[5];
    tsr_tensor inputs[10], outputs[10];
    weights own;
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    tsr_replicas *const r = replicate(context, 4, 3, false);
    (void)state;
    make_weights(&own);
    bind_weights(r, &own);
    for (int i = 0; i < 5; i++) {
        make_batch(&b[i], 4, i);
        memcpy(&inputs[2 * i], b[i].inputs, sizeof b[i].inputs);
        memcpy(&outputs[2 * i], b[i].outputs, sizeof b[i].outputs);
    }
    OK(tsr_replicas_apply(r, 5, inputs, outputs));
    size_t before = memory.allocations;
    OK(tsr_replicas_apply(r, 5, inputs, outputs));
    OK(tsr_replicas_apply(r, 2, inputs + 2, outputs + 2));
    assert_int_equal(memory.allocations, before);
    make_batch(&b[0], 11, 0);
    OK(tsr_replicas_run(r, b[0].inputs, b[0].outputs));
    before = memory.allocations;
    for (int i = 0; i < 3; i++)
        OK(tsr_replicas_run(r, b[0].inputs, b[0].outputs));
    assert_int_equal(memory.allocations, before);
    tsr_replicas_destroy(r);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

/* Creating, binding and running with the n-th allocation failing leaves nothing behind. */
static void failed_allocations_leave_nothing(void **state)
{
    static batch b;
    bool fails = true;
    (void)state;
    for (size_t at = 1; fails; at += at < 40 ? 1 : 7) {
        weights own;
        counted_memory memory = {0};
        tsr_context *const context = counted_context(&memory);
        tsr_program *const p = record(context, 4, false);
        make_weights(&own);
        make_batch(&b, 5, 1);
        const tsr_replicas_binding bindings[] = {{"w", &own.tensors[0], &own.tensors[2]},
                                                 {"table", &own.tensors[1], &own.tensors[3]}};
        memory.fail_at = memory.allocations + at;
        const tsr_status status = tsr_data_parallel(p, 2, NULL, 2, bindings, b.inputs, b.outputs);
        fails = memory.allocations >= memory.fail_at;
        memory.fail_at = 0;
        if (status != TSR_OK)
            assert_int_equal(status, TSR_ERROR_MEMORY);
        tsr_program_destroy(p);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

static void one_call_does_all(void **state)
{
    static batch made, wanted;
    weights own, expected;
    tsr_context *const context = make_context();
    tsr_program *const p = record(context, MOST, false);
    (void)state;
    make_weights(&own);
    make_weights(&expected);
    make_batch(&made, 7, 3);
    make_batch(&wanted, 7, 3);
    const tsr_replicas_binding bindings[] = {{"w", &own.tensors[0], &own.tensors[2]},
                                             {"table", &own.tensors[1], &own.tensors[3]}};
    OK(tsr_data_parallel(p, 3, NULL, 2, bindings, made.inputs, made.outputs));
    run_plainly(p, &expected, &wanted);
    assert_memory_equal(made.y, wanted.y, sizeof made.y);
    assert_true(made.loss == wanted.loss);
    same_weights(&own, &expected);
    refused(tsr_data_parallel(p, 3, NULL, 1, bindings, made.inputs, made.outputs), TSR_ERROR_STATE,
            "rank 0, rows 0 to 2: tsr_executable_run: \"table\" is not bound");
    refused(tsr_data_parallel(p, 3, NULL, 1, NULL, made.inputs, made.outputs), TSR_ERROR_ARGUMENT, "bindings is NULL");
    tsr_program_destroy(p);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(means_count_rows),
        cmocka_unit_test(batches_go_round),
        cmocka_unit_test(a_rank_that_fails_is_named),
        cmocka_unit_test(rows_may_have_strides),
        cmocka_unit_test(repeated_calls_allocate_nothing),
        cmocka_unit_test(failed_allocations_leave_nothing),
        cmocka_unit_test(one_call_does_all),
    };
    return cmocka_run_group_tests_name("replicas", tests, NULL, NULL);
}
