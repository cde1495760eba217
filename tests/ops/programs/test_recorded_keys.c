/* Recording of keys that runs give: what is folded in, attributes, rows of a program's own. */
#include "wholes.h"

#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static const int64_t shape[] = {ROWS, COLUMNS};

/* A program on an abstract mesh, with an input. */
typedef struct sheet {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value x;
} sheet;

static void open(sheet *s)
{
    assert_int_equal(tsr_context_create(NULL, &s->context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, s->context, "2", &s->mesh), TSR_OK);
    assert_int_equal(tsr_program_create(s->context, &s->p), TSR_OK);
    s->x = tsr_input(s->p, "x", s->mesh, TSR_F32, 2, shape, "S(0)");
}

/* Expects the program's error, if `sentence` is not NULL. */
static void close(sheet *s, const char *sentence)
{
    const char *told;
    assert_int_equal(tsr_program_status(s->p, &told) == TSR_OK, !sentence);
    if (sentence)
        assert_string_equal(told, sentence);
    tsr_program_destroy(s->p);
    tsr_mesh_destroy(s->mesh);
    tsr_context_destroy(s->context);
}

static void names_and_numbers_of_keys_are_checked(void **state)
{
    sheet s;
    char name[8];
    (void)state;
    open(&s);
    (void)tsr_run_key(s.p, "a", TSR_RANDOM_PHILOX);
    assert_int_equal(tsr_run_key(s.p, "a", TSR_RANDOM_PHILOX).generator, 0);
    assert_int_equal(tsr_run_key(s.p, "b", TSR_RANDOM_PHILOX).generator, 0); /* the first error stays */
    close(&s, "tsr_run_key: the program has a key \"a\" already");
    open(&s);
    (void)tsr_run_key(s.p, NULL, TSR_RANDOM_PHILOX);
    close(&s, "tsr_run_key: name is NULL");
    open(&s);
    (void)tsr_run_key(s.p, "a", TSR_RANDOM_RUN);
    close(&s, "tsr_run_key: generator is 65536, but must be TSR_RANDOM_THREEFRY or TSR_RANDOM_PHILOX");
    open(&s);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "k%d", i);
        (void)tsr_run_key(s.p, name, TSR_RANDOM_THREEFRY);
    }
    close(&s, "tsr_run_key: a program has at most 8 keys; derive others from them by tsr_random_key_fold_in()");
    assert_int_equal(tsr_run_key(NULL, "a", TSR_RANDOM_PHILOX).generator, 0);
}

/* Folds numbers into a run's key, and uses it. */
static void use_folded(sheet *s, int count, const uint64_t *numbers)
{
    open(s);
    tsr_random_key key = tsr_run_key(s->p, "k", TSR_RANDOM_THREEFRY);
    for (int i = 0; i < count; i++)
        key = tsr_random_key_fold_in(key, numbers[i]);
    (void)tsr_op_dropout(s->p, s->x, 0.5, &key);
}

static void a_key_has_room_for_some_numbers(void **state)
{
    sheet s;
    const uint64_t wide = UINT64_C(1) << 32;
    static const char sentence[] =
        "op 0, dropout: too much is folded into key: one of tsr_run_key() takes two numbers of "
        "any size, or 4 below 2^32; fold in fewer, or make another key by tsr_run_key()";
    (void)state;
    use_folded(&s, 2, (const uint64_t[]){wide, UINT64_MAX});
    close(&s, NULL);
    use_folded(&s, 4, (const uint64_t[]){wide - 1, 0, 0, wide - 1});
    close(&s, NULL);
    use_folded(&s, 3, (const uint64_t[]){1, wide, 0});
    close(&s, sentence);
    use_folded(&s, 3, (const uint64_t[]){1, 2, wide});
    close(&s, sentence);
    use_folded(&s, 5, (const uint64_t[]){0, 0, 0, 0, 0});
    close(&s, sentence);
    use_folded(&s, 9, (const uint64_t[]){wide, 0, 0, 0, 0, 0, 0, 0, 0});
    close(&s, sentence);
}

static void a_key_means_something_in_its_own_program(void **state)
{
    sheet s, other;
    static const char sentence[] =
        "op 0, dropout: key stands for one that runs give, but not of this program; make it by "
        "tsr_run_key() of the program, and fold at most 4 numbers into it";
    (void)state;
    open(&other);
    const tsr_random_key key = tsr_run_key(other.p, "k", TSR_RANDOM_THREEFRY);
    close(&other, NULL);
    open(&s);
    (void)tsr_op_dropout(s.p, s.x, 0.5, &key);
    close(&s, sentence);
    open(&s);
    (void)tsr_run_key(s.p, "k", TSR_RANDOM_PHILOX); /* of another generator */
    (void)tsr_op_dropout(s.p, s.x, 0.5, &key);
    close(&s, sentence);
}

/* By name, and lists that no key is. */
static void attributes_say_keys(void **state)
{
    static const int64_t lists[][6] = {{1, 0, 0, 0, 0, 0},  {-1, 0, 0, 0, 0, 0}, {0, 5, 0, 0, 0, 0},
                                       {0, -1, 0, 0, 0, 0}, {0, 1, 0, 1, 0, 0},  {0, 3, 1, 1, INT64_C(1) << 32, 0}};
    sheet s;
    tsr_random_key key;
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        open(&s);
        key = tsr_run_key(s.p, "k", TSR_RANDOM_THREEFRY);
        const tsr_attribute wrong = tsr_attribute_ints("key", 6, lists[i]);
        assert_int_equal(tsr_program_apply(s.p, "dropout", 1, &wrong, &s.x, NULL), TSR_NONE);
        close(&s, "op 0, dropout: key stands for one that runs give, but not of this program; make it by tsr_run_key() "
                  "of the program, and fold at most 4 numbers into it");
    }
    open(&s);
    (void)tsr_run_key(s.p, "k", TSR_RANDOM_THREEFRY);
    key = tsr_random_key_fold_in(tsr_run_key(s.p, "l", TSR_RANDOM_PHILOX), 7);
    tsr_attribute attributes[] = {tsr_random_key_generator(&key), tsr_random_key_words(&key)};
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), tsr_op_dropout(s.p, s.x, 0.5, &key));
    key = tsr_random_key_philox(3, 4);
    attributes[0] = tsr_random_key_generator(&key);
    attributes[1] = tsr_random_key_words(&key);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), tsr_op_dropout(s.p, s.x, 0.5, &key));
    attributes[1] = tsr_random_key_words(NULL);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 2, attributes, &s.x, NULL), TSR_NONE);
    close(&s, "op 2, dropout: the list of attribute key is NULL, but has 2 numbers");
    open(&s);
    key = (tsr_random_key){0};
    attributes[0] = tsr_random_key_generator(&key);
    assert_int_equal(tsr_program_apply(s.p, "dropout", 1, attributes, &s.x, NULL), TSR_NONE);
    close(&s, "op 0, dropout: attribute generator is \"\", but must be one of threefry|philox");
}

/* Rows of a program's own: one writes the words of its key, one counts how often it is linked. */
static _Thread_local int links;

static tsr_status check_row(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static tsr_status write_words(const tsr_kernel_call *call)
{
    const tsr_attribute *const key = &call->attributes[1];
    for (int i = 0; i < COUNT; i++)
        ((float *)call->outputs[0].data)[i] = key->count == 2 ? (float)(key->list[i % 2] & 0xffff) : -1;
    return TSR_OK;
}

static tsr_status copy(const tsr_kernel_call *call)
{
    memcpy(call->outputs[0].data, call->inputs[0].data, COUNT * sizeof(float));
    return TSR_OK;
}

static int64_t count_links(const tsr_kernel_call *call)
{
    (void)call;
    links++;
    return 64;
}

static const tsr_op write_row = {
    .size = sizeof(tsr_op),
    .name = "test.words",
    .rule = "... -> ...",
    .operands = {"x"},
    .results = {"y"},
    .attributes = {{.name = "generator", .kind = TSR_ATTRIBUTE_WORD, .words = "threefry|philox"},
                   {.name = "key", .kind = TSR_ATTRIBUTE_INTS, .count = 2}},
    .check = check_row,
    .host = write_words};

static const tsr_op copy_row = {.size = sizeof(tsr_op),
                                .name = "test.copy",
                                .rule = "... -> ...",
                                .operands = {"x"},
                                .results = {"y"},
                                .check = check_row,
                                .host = copy,
                                .workspace_bytes = count_links};

/* Runs over the same memory, with other keys: the step that uses none is linked once. */
static tsr_status run_rows(tsr_executable *exe, tsr_comm *comm)
{
    float x[COUNT] = {1, 2, 3}, y[2][COUNT];
    _Alignas(64) char workspace[1024];
    const tsr_tensor in = tsr_tensor_contiguous(x, TSR_F32, 2, shape);
    const tsr_tensor out[] = {tsr_tensor_contiguous(y[0], TSR_F32, 2, shape),
                              tsr_tensor_contiguous(y[1], TSR_F32, 2, shape)};
    for (uint64_t i = 0; i < 3; i++) {
        tsr_random_key key = tsr_random_key_philox(i, 7);
        TSR_TRY(tsr_executable_set_key(exe, "words", &key));
        links = i ? 0 : links;
        TSR_TRY(tsr_executable_run(exe, comm, &in, out, workspace, sizeof workspace, NULL));
        EXPECT(i == 0 || links == 0, "the step without a key is linked again");
        key = tsr_random_key_fold_in(key, 5);
        for (int j = 0; j < COUNT; j++)
            EXPECT(y[0][j] == (float)(key.words[j % 2] & 0xffff) && y[1][j] == x[j], "%d: %g and %g", j, y[0][j],
                   y[1][j]);
    }
    return TSR_OK;
}

/* A call of the row has no run that would give the key. */
static tsr_status call_row(const tsr_mesh *mesh, const tsr_attribute *attributes)
{
    const tsr_op *op;
    tsr_dtensor *x, *y;
    TSR_TRY(tsr_op_find(tsr_mesh_context(mesh), "test.words", &op));
    TSR_TRY(support_make_numbered(mesh, "R", 2, shape, 1, &x));
    const tsr_dtensor *const operands[TSR_OP_MOST_OPERANDS] = {x};
    assert_int_equal(tsr_op_call(op, 2, attributes, operands, &y), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "test.words: key is of tsr_run_key() and stands for one that runs of a "
                                              "program give; give a key that is one");
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status use_rows(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *exe;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key own = tsr_random_key_fold_in(tsr_run_key(p, "words", TSR_RANDOM_PHILOX), 5);
    const tsr_attribute attributes[] = {tsr_random_key_generator(&own), tsr_random_key_words(&own)};
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, NULL);
    tsr_output(p, "words", tsr_program_apply(p, "test.words", 2, attributes, &x, NULL), NULL);
    tsr_output(p, "copy", tsr_program_apply(p, "test.copy", 0, NULL, &x, NULL), NULL);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(exe, comm));
    TSR_TRY(run_rows(exe, comm));
    TSR_TRY(call_row(mesh, attributes));
    tsr_executable_destroy(exe);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void rows_of_a_programs_own_take_keys_of_runs(void **state)
{
    static const tsr_op *const rows[] = {&write_row, &copy_row};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    (void)state;
    options.ops = rows;
    options.op_count = 2;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    const tsr_status status = tsr_threads_run(1, use_rows, NULL, &threads);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    tsr_context_destroy(threads.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_of_keys_are_checked),    cmocka_unit_test(a_key_has_room_for_some_numbers),
        cmocka_unit_test(a_key_means_something_in_its_own_program), cmocka_unit_test(attributes_say_keys),
        cmocka_unit_test(rows_of_a_programs_own_take_keys_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
