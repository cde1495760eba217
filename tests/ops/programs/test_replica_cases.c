/* Replicas of other programs: keys, lengths, whole inputs, other dtypes, and what is refused. */
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLUMNS = 6, MOST = 16 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != TSR_OK)                                                                                          \
            fail_msg("%s: %s", #call, tsr_status_message());                                                           \
    } while (0)

static void refused(tsr_status status, tsr_status wanted, const char *part)
{
    if (status != wanted || !strstr(tsr_status_message(), part))
        fail_msg("%s: \"%s\", but %s with \"%s\" is wanted", tsr_status_name(status), tsr_status_message(),
                 tsr_status_name(wanted), part);
}

/* Replicas that the next allocation calls, and what they answered. */
static struct {
    tsr_replicas *called;
    char sentence[200];
} hook;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (hook.called) {
        assert_int_equal(tsr_replicas_apply(hook.called, 0, NULL, NULL), TSR_ERROR_STATE);
        (void)snprintf(hook.sentence, sizeof hook.sentence, "%s", tsr_status_message());
        hook.called = NULL;
    }
    return aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

/* A context, a mesh of one rank, and a program to record. */
typedef struct scene {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    int64_t rows;
    float x[MOST * COLUMNS], y[MOST * COLUMNS], first[MOST * COLUMNS];
} scene;

static void begin(scene *s, const char *mesh, int64_t most)
{
    memset(s, 0, sizeof *s);
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){allocate, release, NULL};
    OK(tsr_context_create(&options, &s->context));
    OK(tsr_mesh_parse(NULL, s->context, mesh, &s->mesh));
    OK(tsr_program_create(s->context, &s->p));
    s->rows = tsr_length(s->p, "rows", most);
    for (int i = 0; i < MOST * COLUMNS; i++)
        s->x[i] = (float)(i % 11 - 5);
}

static void end(const scene *s)
{
    tsr_program_destroy(s->p);
    tsr_mesh_destroy(s->mesh);
    tsr_context_destroy(s->context);
}

static tsr_value input(scene *s, const char *name, int64_t rows, int64_t columns)
{
    return tsr_input(s->p, name, s->mesh, TSR_F32, 2, (int64_t[]){rows, columns}, NULL);
}

static tsr_layout *make_layout(const scene *s, tsr_dtype dtype, int ndim, const int64_t *shape)
{
    char placements[32] = "R";
    tsr_layout *layout;
    for (int dim = 1; dim < tsr_mesh_ndim(s->mesh); dim++)
        strcat(placements, ",R");
    OK(tsr_layout_parse(s->mesh, placements, ndim, shape, dtype, &layout));
    return layout;
}

static tsr_value parameter(scene *s, const char *name, tsr_dtype dtype, int ndim, const int64_t *shape)
{
    tsr_layout *const layout = make_layout(s, dtype, ndim, shape);
    const tsr_value value = tsr_parameter(s->p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

static tsr_tensor matrix(float *data, int64_t rows, int64_t columns)
{
    return tsr_tensor_contiguous(data, TSR_F32, 2, (int64_t[]){rows, columns});
}

static tsr_replicas *replicate(const scene *s, int ranks)
{
    tsr_replicas *r;
    OK(tsr_replicas_create(s->p, ranks, NULL, &r));
    return r;
}

/* Part i drops as batch i of the same rows does, by its own key; a call again drops the same. */
static void parts_have_keys_of_their_own(void **state)
{
    scene s;
    tsr_tensor in[3], out[3];
    const tsr_random_key key = tsr_random_key_threefry(7), other = tsr_random_key_philox(1, 2);
    (void)state;
    begin(&s, "1", 4);
    const tsr_random_key own = tsr_run_key(s.p, "dropout", TSR_RANDOM_THREEFRY);
    tsr_output(s.p, "y", tsr_op_dropout(s.p, input(&s, "x", s.rows, COLUMNS), 0.5, &own), NULL);
    tsr_replicas *const r = replicate(&s, 3), *const one = replicate(&s, 1);
    for (int i = 0; i < MOST * COLUMNS; i++)
        s.x[i] = 1;
    const tsr_tensor x = matrix(s.x, 12, COLUMNS), y = matrix(s.y, 12, COLUMNS);
    refused(tsr_replicas_run(r, &x, &y), TSR_ERROR_STATE, "rank 0, rows 0 to 3: tsr_executable_run: key \"dropout\"");
    refused(tsr_replicas_set_key(r, "dropout", &other), TSR_ERROR_ARGUMENT, "TSR_RANDOM_PHILOX");
    OK(tsr_replicas_set_key(r, "dropout", &key));
    OK(tsr_replicas_set_key(one, "dropout", &key));
    OK(tsr_replicas_run(r, &x, &y));
    for (int i = 0; i < 3; i++) {
        in[i] = matrix(s.x, 4, COLUMNS);
        out[i] = matrix(s.first + 4 * i * COLUMNS, 4, COLUMNS);
    }
    OK(tsr_replicas_apply(one, 3, in, out));
    assert_memory_equal(s.y, s.first, 12 * COLUMNS * sizeof(float));
    assert_memory_not_equal(s.y, s.y + 4 * COLUMNS, 4 * COLUMNS * sizeof(float));
    OK(tsr_replicas_run(r, &x, &y));
    assert_memory_equal(s.y, s.first, 12 * COLUMNS * sizeof(float));
    tsr_replicas_destroy(one);
    tsr_replicas_destroy(r);
    end(&s);
}

/* An input that is whole, an output of two elements a row, and one that a length cuts. */
static void lengths_and_whole_inputs(void **state)
{
    scene s;
    float sums[COLUMNS], pairs[2 * MOST], doubled[2 * MOST];
    const int64_t zero = 0;
    (void)state;
    begin(&s, "dp=1,tp=1", 4);
    const int64_t columns = tsr_length(s.p, "columns", COLUMNS);
    const tsr_value x = input(&s, "x", s.rows, columns), shift = input(&s, "shift", 1, columns);
    const tsr_value y = tsr_op_add(s.p, x, shift);
    tsr_output(s.p, "y", y, NULL);
    tsr_output(s.p, "sums", tsr_op_sum(s.p, y, 1, &zero, 0), NULL);
    const tsr_value both[] = {input(&s, "a", s.rows, 1), input(&s, "b", s.rows, 1)};
    tsr_output(s.p, "pairs", tsr_op_concat(s.p, 2, both, 0), NULL);
    tsr_replicas *const r = replicate(&s, 3);
    OK(tsr_replicas_set_length(r, "columns", 2));
    refused(tsr_replicas_set_length(r, "columns", COLUMNS + 1), TSR_ERROR_ARGUMENT, "must be from 1 to 6");
    refused(tsr_replicas_set_length(r, "rows", 2), TSR_ERROR_ARGUMENT, "\"rows\" counts rows");
    refused(tsr_replicas_set_length(r, "none", 2), TSR_ERROR_ARGUMENT, "no length \"none\"");
    float by[] = {100, 200};
    for (int i = 0; i < 2 * MOST; i++)
        pairs[i] = (float)i;
    const tsr_tensor in[] = {matrix(s.x, 10, 2), matrix(by, 1, 2), matrix(pairs, 10, 1), matrix(pairs + 10, 10, 1)};
    const int64_t two = 2;
    const tsr_tensor out[] = {matrix(s.y, 10, 2), tsr_tensor_contiguous(sums, TSR_F32, 1, &two),
                              matrix(doubled, 20, 1)};
    OK(tsr_replicas_run(r, in, out));
    float wanted[] = {0, 0};
    for (int i = 0; i < 20; i++) {
        assert_true(s.y[i] == s.x[i] + by[i % 2]);
        wanted[i % 2] += s.y[i];
    }
    assert_memory_equal(sums, wanted, sizeof wanted);
    /* Each part's four rows of a are followed by its four of b. */
    assert_true(doubled[0] == 0 && doubled[4] == 10 && doubled[8] == 4 && doubled[12] == 14 && doubled[19] == 19);
    tsr_replicas_destroy(r);
    end(&s);
}

/* Parameters and gradients of bf16: terms are added in f64, and rounded once. */
static void narrow_gradients_round_once(void **state)
{
    scene s;
    uint16_t w = 0x3f80 /* 1 */, gradient = 0x4380 /* 256 */;
    float loss;
    (void)state;
    begin(&s, "1", 2);
    const tsr_value of = parameter(&s, "w", TSR_BF16, 0, NULL);
    tsr_value d;
    const tsr_value x = tsr_input(s.p, "x", s.mesh, TSR_BF16, 1, &s.rows, NULL);
    const tsr_value sum = tsr_op_sum(s.p, tsr_op_mul(s.p, x, of), 0, NULL, 0);
    tsr_gradients(s.p, sum, 1, &of, &d);
    tsr_output(s.p, "d.w", d, NULL);
    tsr_output(s.p, "loss", tsr_op_cast(s.p, sum, TSR_F32), NULL);
    tsr_replicas *const r = replicate(&s, 2);
    const tsr_tensor value = tsr_tensor_contiguous(&w, TSR_BF16, 0, NULL);
    const tsr_tensor into = tsr_tensor_contiguous(&gradient, TSR_BF16, 0, NULL);
    OK(tsr_replicas_bind(r, "w", &value, &into));
    /* 256 + 1 would be 256 again, and 256 + 1 + 1 too; 258 is a bf16. */
    uint16_t ones[] = {0x3f80, 0x3f80};
    const int64_t two = 2;
    const tsr_tensor in = tsr_tensor_contiguous(ones, TSR_BF16, 1, &two);
    const tsr_tensor out = tsr_tensor_contiguous(&loss, TSR_F32, 0, NULL);
    OK(tsr_replicas_run(r, &in, &out));
    assert_true(loss == 2);
    assert_int_equal(gradient, 0x4381);
    OK(tsr_replicas_bind(r, "w", &value, NULL));
    OK(tsr_replicas_run(r, &in, &out));
    assert_int_equal(gradient, 0x4381);
    tsr_replicas_destroy(r);
    end(&s);
}

/* A program without rows takes batches, each of which counts as one. */
static void batches_need_no_rows(void **state)
{
    scene s;
    float w = 3, gradient = 0, x[] = {1, 2, 4}, y[3];
    tsr_tensor in[3], out[3];
    tsr_replicas *r;
    tsr_replicas_options options = TSR_REPLICAS_OPTIONS_INIT;
    (void)state;
    begin(&s, "1", 2);
    const tsr_value of = parameter(&s, "w", TSR_F32, 0, NULL);
    tsr_value d;
    const tsr_value loss = tsr_op_mul(s.p, tsr_input(s.p, "x", s.mesh, TSR_F32, 0, NULL, NULL), of);
    tsr_gradients(s.p, loss, 1, &of, &d);
    tsr_output(s.p, "d.w", d, NULL);
    tsr_output(s.p, "loss", loss, NULL);
    refused(tsr_replicas_create(s.p, 2, NULL, &r), TSR_ERROR_ARGUMENT, "no input has rows");
    options.rows = "none";
    options.reduce = TSR_REPLICAS_MEAN;
    OK(tsr_replicas_create(s.p, 2, &options, &r));
    const tsr_tensor value = tsr_tensor_contiguous(&w, TSR_F32, 0, NULL);
    const tsr_tensor into = tsr_tensor_contiguous(&gradient, TSR_F32, 0, NULL);
    OK(tsr_replicas_bind(r, "w", &value, &into));
    for (int i = 0; i < 3; i++) {
        in[i] = tsr_tensor_contiguous(&x[i], TSR_F32, 0, NULL);
        out[i] = tsr_tensor_contiguous(&y[i], TSR_F32, 0, NULL);
    }
    /* The first call with more batches than ranks allocates: a call meanwhile is refused. */
    hook.called = r;
    OK(tsr_replicas_apply(r, 3, in, out));
    assert_non_null(strstr(hook.sentence, "tsr_replicas_apply: another call with these replicas is in flight"));
    assert_true(y[0] == 3 && y[1] == 6 && y[2] == 12 && gradient == (float)(7. / 3));
    gradient = 0;
    OK(tsr_replicas_apply(r, 2, in, out));
    assert_true(gradient == 1.5F);
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT, "no length \"none\" of rows to cut");
    tsr_replicas_destroy(r);
    end(&s);
}

/* Records a program by what is wrong with it, and has it refused. */
static void refuse_program(const char *mesh, void record(scene *s), tsr_status status, const char *part)
{
    scene s;
    tsr_replicas *r = NULL;
    begin(&s, mesh, 4);
    record(&s);
    OK(tsr_program_status(s.p, NULL));
    refused(tsr_replicas_create(s.p, 2, NULL, &r), status, part);
    assert_null(r);
    end(&s);
}

static void record_plain(scene *s)
{
    tsr_output(s->p, "y", tsr_op_neg(s->p, input(s, "x", s->rows, COLUMNS)), NULL);
}

static void record_columns(scene *s)
{
    tsr_output(s->p, "y", tsr_op_neg(s->p, input(s, "x", COLUMNS, s->rows)), NULL);
}

static void record_state(scene *s)
{
    const int64_t shape[] = {1, COLUMNS};
    tsr_layout *const layout = make_layout(s, TSR_F32, 2, shape);
    tsr_output(s->p, "y", tsr_op_add(s->p, input(s, "x", s->rows, COLUMNS), tsr_state(s->p, "cache", layout)), NULL);
    tsr_layout_destroy(layout);
}

static void record_count(scene *s)
{
    const tsr_value ids = tsr_input(s->p, "ids", s->mesh, TSR_I64, 1, &s->rows, NULL);
    tsr_output(s->p, "count", tsr_op_sum(s->p, ids, 0, NULL, 0), NULL);
}

static void record_gradient(scene *s)
{
    const int64_t shape[] = {1, COLUMNS};
    const tsr_value w = parameter(s, "w", TSR_F32, 2, shape);
    tsr_output(s->p, "d.w", tsr_op_add(s->p, input(s, "x", s->rows, COLUMNS), w), NULL);
}

static void programs_that_do_not_fit(void **state)
{
    scene s;
    tsr_replicas *r = NULL;
    tsr_replicas_options options = TSR_REPLICAS_OPTIONS_INIT;
    (void)state;
    refuse_program("2", record_plain, TSR_ERROR_ARGUMENT, "\"x\" is on a mesh of 2 ranks");
    refuse_program("1@3", record_plain, TSR_ERROR_ARGUMENT, "\"x\" is on rank 3");
    refuse_program("1", record_columns, TSR_ERROR_ARGUMENT, "\"x\" has rows in dim 1");
    refuse_program("1", record_state, TSR_ERROR_UNSUPPORTED, "\"cache\" is a state");
    refuse_program("1", record_count, TSR_ERROR_UNSUPPORTED, "output \"count\" of i64 has no rows");
    refuse_program("1", record_gradient, TSR_ERROR_ARGUMENT, "\"d.w\" has another shape");
    begin(&s, "1", 1);
    record_plain(&s);
    refused(tsr_replicas_create(s.p, 2, NULL, &r), TSR_ERROR_ARGUMENT, "\"rows\" is at most 1");
    end(&s);
    begin(&s, "1", 4);
    refused(tsr_replicas_create(s.p, 2, NULL, &r), TSR_ERROR_ARGUMENT, "has neither outputs nor stores");
    record_plain(&s);
    refused(tsr_replicas_create(s.p, 0, NULL, &r), TSR_ERROR_ARGUMENT, "ranks is 0");
    refused(tsr_replicas_create(NULL, 1, NULL, &r), TSR_ERROR_ARGUMENT, "program is NULL");
    options.rows = NULL;
    refused(tsr_replicas_create(s.p, 1, &options, &r), TSR_ERROR_ARGUMENT, "options.rows is NULL");
    options = (tsr_replicas_options)TSR_REPLICAS_OPTIONS_INIT;
    options.reduce = (tsr_replicas_reduce)2;
    refused(tsr_replicas_create(s.p, 1, &options, &r), TSR_ERROR_ARGUMENT, "options.reduce is 2");
    end(&s);
    tsr_replicas_destroy(NULL);
    refused(tsr_replicas_run(NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "replicas is NULL");
}

static void tensors_that_do_not_fit(void **state)
{
    scene s;
    const int64_t shape[] = {1, COLUMNS};
    float w[COLUMNS] = {0}, gradient[2 * COLUMNS];
    (void)state;
    begin(&s, "1", 4);
    const tsr_value sum = tsr_op_add(s.p, input(&s, "x", s.rows, COLUMNS), parameter(&s, "w", TSR_F32, 2, shape));
    tsr_output(s.p, "y", sum, NULL);
    tsr_output(s.p, "z", tsr_op_add(s.p, sum, input(&s, "other", s.rows, COLUMNS)), NULL);
    tsr_replicas *const r = replicate(&s, 2);
    const tsr_tensor value = matrix(w, 1, COLUMNS), bad = matrix(w, COLUMNS, 1), into = matrix(gradient, 1, COLUMNS);
    refused(tsr_replicas_bind(r, "v", &value, NULL), TSR_ERROR_ARGUMENT, "no parameter \"v\"");
    refused(tsr_replicas_bind(r, "w", &bad, NULL), TSR_ERROR_ARGUMENT, "tsr_dtensor_from_local");
    refused(tsr_replicas_bind(r, "w", &value, &into), TSR_ERROR_ARGUMENT, "no output \"d.w\"");
    refused(tsr_replicas_bind(r, NULL, &value, NULL), TSR_ERROR_ARGUMENT, "name is NULL");
    refused(tsr_replicas_bind(r, "w", NULL, NULL), TSR_ERROR_ARGUMENT, "value is NULL");
    OK(tsr_replicas_bind(r, "w", &value, NULL));
    tsr_tensor in[] = {matrix(s.x, 8, COLUMNS), matrix(s.x, 8, COLUMNS)};
    tsr_tensor out[] = {matrix(s.y, 8, COLUMNS), matrix(s.first, 8, COLUMNS)};
    OK(tsr_replicas_run(r, in, out));
    in[1].shape[0] = 7;
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT,
            "input \"other\" has 7 elements in dim 0, but must have 8");
    in[1] = in[0];
    out[1].strides[0] = 0;
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT, "output \"z\" has elements that share memory");
    out[1] = matrix(s.first, 8, COLUMNS - 1);
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT, "rank 0, rows 0 to 3: tsr_executable_run: output \"z\"");
    out[1] = matrix(NULL, 8, COLUMNS);
    refused(tsr_replicas_apply(r, 1, in, out), TSR_ERROR_ARGUMENT, "output \"z\" of batch 0 has no data");
    in[0] = in[1] = matrix(s.x, 9, COLUMNS);
    out[0] = out[1] = matrix(s.y, 9, COLUMNS);
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT, "parts of 5 on 2 ranks, but \"rows\" is at most 4");
    refused(tsr_replicas_apply(r, 1, in, out), TSR_ERROR_ARGUMENT, "batch 0 has 9 rows, but \"rows\" is at most 4");
    refused(tsr_replicas_run(r, NULL, out), TSR_ERROR_ARGUMENT, "inputs is NULL");
    in[0] = tsr_tensor_contiguous(s.x, TSR_F64, 1, shape);
    refused(tsr_replicas_run(r, in, out), TSR_ERROR_ARGUMENT, "input \"x\" is f64 of 1 dims");
    tsr_replicas_destroy(r);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_keys_of_their_own), cmocka_unit_test(lengths_and_whole_inputs),
        cmocka_unit_test(narrow_gradients_round_once),  cmocka_unit_test(batches_need_no_rows),
        cmocka_unit_test(programs_that_do_not_fit),     cmocka_unit_test(tensors_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("replica cases", tests, NULL, NULL);
}
