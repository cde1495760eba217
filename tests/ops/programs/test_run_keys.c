/* Keys of random ops in programs: those that are recorded, and those that runs give. */
#include "counted_memory.h"
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static const int64_t shape[] = {ROWS, COLUMNS};

static tsr_status make_layout(const tsr_mesh *mesh, const char *placements, tsr_layout **out)
{
    return tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, out);
}

/* Runs an executable, which is prepared; `given` and `made` are its inputs and outputs. */
static tsr_status run(tsr_executable *x, tsr_comm *comm, tsr_dtensor *const *given, tsr_dtensor *const *made)
{
    tsr_tensor inputs[4], outputs[4];
    for (size_t i = 0; i < tsr_executable_input_count(x); i++)
        inputs[i] = tsr_dtensor_to_local(given[i]);
    for (size_t i = 0; i < tsr_executable_output_count(x); i++)
        outputs[i] = tsr_dtensor_to_local(made[i]);
    const size_t bytes = tsr_executable_workspace_bytes(x);
    void *const workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    const tsr_status status = tsr_executable_run(x, comm, inputs, outputs, workspace, bytes, NULL);
    free(workspace);
    return status;
}

/* Compares the bits of local tensors of f32. */
static tsr_status expect_same(const char *what, const tsr_dtensor *a, const tsr_dtensor *b)
{
    int64_t count;
    const tsr_tensor x = tsr_dtensor_to_local(a), y = tsr_dtensor_to_local(b);
    TSR_TRY(tsr_tensor_count(&x, &count));
    EXPECT(!count || memcmp(x.data, y.data, (size_t)count * sizeof(float)) == 0, "%s: other bits", what);
    return TSR_OK;
}

static void on_ranks(int ranks, tsr_rank_main *main, void *arg)
{
    const tsr_status status = tsr_threads_run(ranks, main, arg, NULL);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

/* The words of a key that is recorded may be numbers that stand for lengths elsewhere. */
static tsr_status draw_with_lengths(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_executable *x;
    tsr_dtensor *made, *wanted;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make_layout(mesh, "R", &layout));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const int64_t first = tsr_length(p, "first", 3), second = tsr_length(p, "second", 4);
    const tsr_random_key key = tsr_random_key_philox((uint64_t)first, (uint64_t)second);
    tsr_output(p, "y", tsr_op_uniform(p, layout, &key, 0, 1), NULL);
    TSR_TRY(tsr_compile(p, NULL, &x));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(x, comm));
    TSR_TRY(tsr_executable_set_length(x, "first", 2));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    TSR_TRY(run(x, comm, NULL, &made));
    TSR_TRY(tsr_uniform(layout, &key, 0, 1, &wanted));
    TSR_TRY(expect_same("a key of numbers that stand for lengths", made, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_dtensor_destroy(made);
    tsr_executable_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void recorded_keys_are_no_lengths(void **state)
{
    (void)state;
    on_ranks(1, draw_with_lengths, NULL);
}

/* Drops elements of the first `rows` rows, by a call and by a run. */
static tsr_status drop_rows(tsr_executable *exe, tsr_comm *comm, const tsr_mesh *mesh, int64_t rows, tsr_random_key key)
{
    tsr_dtensor *x, *made, *wanted;
    const int64_t part[] = {rows, COLUMNS};
    TSR_TRY(support_make_numbered(mesh, "R,S(1)", 2, part, 1, &x));
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(x), tsr_device_host(), &made));
    TSR_TRY(run(exe, comm, &x, &made));
    key = tsr_random_key_fold_in(key, 5);
    TSR_TRY(tsr_dropout(x, 0.5, &key, &wanted));
    TSR_TRY(expect_same("dropout", made, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_dtensor_destroy(made);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status drop_some_rows(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *exe;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1x2", &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key own = tsr_random_key_fold_in(tsr_run_key(p, "dropout", TSR_RANDOM_PHILOX), 5);
    const int64_t sizes[] = {tsr_length(p, "rows", ROWS), COLUMNS};
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, sizes, "R,S(1)");
    tsr_output(p, "y", tsr_op_dropout(p, x, 0.5, &own), NULL);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(exe, comm));
    for (int64_t i = 0; i < 6; i++) {
        const tsr_random_key key = tsr_random_key_philox((uint64_t)(i / 2), UINT64_C(1) << 63);
        TSR_TRY(tsr_executable_set_key(exe, "dropout", &key));
        TSR_TRY(tsr_executable_set_length(exe, "rows", 5 - i % 4));
        TSR_TRY(drop_rows(exe, comm, mesh, 5 - i % 4, key));
    }
    tsr_executable_destroy(exe);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void keys_and_lengths_change_by_themselves(void **state)
{
    (void)state;
    on_ranks(2, drop_some_rows, NULL);
}

/* A mesh, and how tensors are cut over it. */
typedef struct scene {
    const char *mesh, *placements;
    tsr_random_generator generator;
    double (*first)[COUNT]; /* whole outputs of the first scene */
    bool is_first;
} scene;

enum { OUTPUTS = 4 };

/* The keys of the outputs, made of the run's. */
static void derive(tsr_random_key key, tsr_random_key *out)
{
    out[0] = key;
    out[1] = tsr_random_key_fold_in(key, 3);
    out[2] = tsr_random_key_split(tsr_random_key_fold_in(key, (UINT64_C(1) << 63) + 5), UINT64_MAX);
    out[3] = key;
    for (uint64_t i = 0; i < 4; i++)
        out[3] = tsr_random_key_fold_in(out[3], i * i * 0x19999999);
}

static void record(tsr_program *p, const tsr_mesh *mesh, const tsr_layout *layout, const scene *s)
{
    tsr_random_key keys[OUTPUTS];
    derive(tsr_run_key(p, "noise", s->generator), keys);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, s->placements);
    tsr_output(p, "uniform", tsr_op_uniform(p, layout, &keys[0], -1, 1), NULL);
    tsr_output(p, "normal", tsr_op_normal(p, layout, &keys[1], 0, 1), NULL);
    tsr_output(p, "dropout", tsr_op_dropout(p, x, 0.5, &keys[2]), NULL);
    tsr_output(p, "truncated", tsr_op_truncated_normal(p, layout, &keys[3], 0, 1, -2, 2), NULL);
}

static tsr_status call(const tsr_dtensor *x, tsr_random_key key, tsr_dtensor **out)
{
    tsr_random_key keys[OUTPUTS];
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    derive(key, keys);
    TSR_TRY(tsr_uniform(layout, &keys[0], -1, 1, &out[0]));
    TSR_TRY(tsr_normal(layout, &keys[1], 0, 1, &out[1]));
    TSR_TRY(tsr_dropout(x, 0.5, &keys[2], &out[2]));
    return tsr_truncated_normal(layout, &keys[3], 0, 1, -2, 2, &out[3]);
}

/* Runs with a key, compares with calls, and reads the whole outputs. */
static tsr_status run_with(tsr_executable *exe, tsr_comm *comm, tsr_dtensor *x, tsr_random_key key,
                           double (*wholes)[COUNT])
{
    tsr_dtensor *made[OUTPUTS], *wanted[OUTPUTS];
    TSR_TRY(tsr_executable_set_key(exe, "noise", &key));
    TSR_TRY(call(x, key, wanted));
    for (int i = 0; i < OUTPUTS; i++)
        TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(x), tsr_device_host(), &made[i]));
    TSR_TRY(run(exe, comm, &x, made));
    for (int i = 0; i < OUTPUTS; i++) {
        TSR_TRY(expect_same(tsr_executable_output_name(exe, (size_t)i), made[i], wanted[i]));
        TSR_TRY(support_read(made[i], wholes[i]));
        tsr_dtensor_destroy(made[i]);
        tsr_dtensor_destroy(wanted[i]);
    }
    return TSR_OK;
}

/* A key, another one, and the first again. */
static tsr_status run_thrice(tsr_executable *exe, tsr_comm *comm, tsr_dtensor *x, const scene *s)
{
    static _Thread_local double wholes[3][OUTPUTS][COUNT];
    for (uint64_t i = 0; i < 3; i++) {
        const tsr_random_key key = s->generator == TSR_RANDOM_PHILOX ? tsr_random_key_philox(i % 2 + 8, 1)
                                                                     : tsr_random_key_threefry(i % 2 + 8);
        TSR_TRY(run_with(exe, comm, x, key, wholes[i]));
    }
    for (int i = 0; i < OUTPUTS; i++) {
        EXPECT(memcmp(wholes[0][i], wholes[1][i], sizeof wholes[0][i]) != 0, "output %d: the keys give the same", i);
        EXPECT(memcmp(wholes[0][i], wholes[2][i], sizeof wholes[0][i]) == 0, "output %d: the key gives others", i);
    }
    if (s->is_first && tsr_comm_rank(comm) == 0)
        memcpy(s->first, wholes[0], sizeof wholes[0]);
    EXPECT(s->is_first || memcmp(s->first, wholes[0], sizeof wholes[0]) == 0, "other ranks draw other numbers");
    return TSR_OK;
}

static tsr_status draw(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_executable *exe;
    tsr_dtensor *x;
    const scene *const s = arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->mesh, &mesh));
    TSR_TRY(make_layout(mesh, s->placements, &layout));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    record(p, mesh, layout, s);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(exe, comm));
    TSR_TRY(support_make_numbered(mesh, s->placements, 2, shape, 1, &x));
    TSR_TRY(run_thrice(exe, comm, x, s));
    tsr_dtensor_destroy(x);
    tsr_executable_destroy(exe);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void numbers_are_those_of_calls_with_the_key(void **state)
{
    static double first[OUTPUTS][COUNT];
    static const char *const cuts[][2] = {
        {"1", "R"}, {"2", "S(0)"}, {"2", "S(1;interleave=3)"}, {"4", "S(1;sizes=1,4,0,1)"}, {"2x2", "S(1),S(0)"}};
    static const tsr_random_generator generators[] = {TSR_RANDOM_THREEFRY, TSR_RANDOM_PHILOX};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof cuts / sizeof cuts[0]; j++) {
            scene s = {cuts[j][0], cuts[j][1], generators[i], first, j == 0};
            on_ranks(support_count_ranks(s.mesh), draw, &s);
        }
    }
}

/* The sum of the squares of what dropout leaves, and its gradient. */
static tsr_status record_loss(const tsr_mesh *mesh, bool marks, tsr_executable **out)
{
    tsr_program *p;
    tsr_value d;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key key = tsr_run_key(p, "dropout", TSR_RANDOM_THREEFRY), own = tsr_random_key_fold_in(key, 1);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(0)");
    tsr_value y = tsr_op_dropout(p, x, 0.5, &own);
    y = marks ? tsr_op_recompute(p, y) : y;
    tsr_gradients(p, tsr_op_sum(p, tsr_op_square(p, y), 0, NULL, 0), 1, &x, &d);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "d", d, NULL);
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    return status;
}

static int count_dropouts(const tsr_executable *exe)
{
    int count = 0;
    tsr_executable_step step;
    for (size_t i = 0; i < tsr_executable_step_count(exe); i++)
        count += tsr_executable_step_at(exe, i, &step) == TSR_OK && strcmp(step.op, "dropout") == 0;
    return count;
}

/* Elements of x are not 0, so y says which are left. The gradient is 4 y: twice for the square, and
 * twice for dropout itself. */
static tsr_status check_masks(tsr_executable *exe, tsr_comm *comm, tsr_dtensor *x, uint64_t seed)
{
    double y[COUNT], d[COUNT];
    tsr_dtensor *made[2];
    int kept = 0;
    const tsr_random_key key = tsr_random_key_threefry(seed);
    TSR_TRY(tsr_executable_set_key(exe, "dropout", &key));
    for (int i = 0; i < 2; i++)
        TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(x), tsr_device_host(), &made[i]));
    TSR_TRY(run(exe, comm, &x, made));
    TSR_TRY(support_read(made[0], y));
    TSR_TRY(support_read(made[1], d));
    for (int i = 0; i < COUNT; i++) {
        EXPECT(y[i] == 0 || y[i] == 2 * (i + 1), "y %d is %g", i, y[i]);
        EXPECT(d[i] == 4 * y[i], "the gradient of y %d, %g, is %g", i, y[i], d[i]);
        kept += y[i] != 0;
    }
    EXPECT(kept > 0 && kept < COUNT, "%d elements are left", kept);
    tsr_dtensor_destroy(made[0]);
    tsr_dtensor_destroy(made[1]);
    return TSR_OK;
}

static tsr_status drop(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 2, shape, 1, &x));
    for (int marks = 0; marks < 2; marks++) {
        tsr_executable *exe;
        TSR_TRY(record_loss(mesh, marks, &exe));
        EXPECT(count_dropouts(exe) == 2 + marks, "%d steps drop elements", count_dropouts(exe));
        TSR_TRY(tsr_executable_prepare(exe, comm));
        for (uint64_t seed = 0; seed < 4; seed++)
            TSR_TRY(check_masks(exe, comm, x, seed));
        tsr_executable_destroy(exe);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void the_backward_drops_what_the_forward_dropped(void **state)
{
    (void)state;
    on_ranks(2, drop, NULL);
}

/* Rank 1 lacks the key, of which rank 0 hears. */
static tsr_status run_half_set(tsr_executable *exe, tsr_comm *comm, tsr_dtensor *made)
{
    const bool is_set = tsr_comm_rank(comm) == 0;
    const tsr_random_key key = tsr_random_key_philox(9, 9);
    TSR_TRY(is_set ? tsr_executable_set_key(exe, "noise", &key) : TSR_OK);
    return layer_expect_status("run", run(exe, comm, NULL, &made), is_set ? TSR_ERROR_PEER : TSR_ERROR_STATE,
                               "key \"noise\" is not set");
}

/* Ranks meet inside softmax, and hear there that their keys differ; then with equal keys, runs
 * allocate nothing. */
static tsr_status differ(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_executable *exe;
    tsr_dtensor *made;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_layout(mesh, "S(1)", &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key key = tsr_run_key(p, "noise", TSR_RANDOM_PHILOX);
    (void)tsr_run_key(p, "unused", TSR_RANDOM_PHILOX);
    tsr_output(p, "y", tsr_op_softmax(p, tsr_op_uniform(p, layout, &key, 0, 1), 1), NULL);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(exe, comm));
    TSR_TRY(run_half_set(exe, comm, made));
    for (uint64_t i = 0; i < 3; i++) {
        tsr_random_key given = tsr_random_key_philox(i, i == 1 ? (uint64_t)tsr_comm_rank(comm) : 0);
        const size_t asked = counted_asked_here();
        TSR_TRY(tsr_executable_set_key(exe, "noise", &given));
        given = tsr_random_key_philox((uint64_t)tsr_comm_rank(comm), 0); /* no step uses it */
        TSR_TRY(tsr_executable_set_key(exe, "unused", &given));
        const tsr_status status = run(exe, comm, NULL, &made);
        EXPECT(i == 0 || counted_asked_here() == asked, "a run allocates");
        if (i != 1)
            TSR_TRY(status);
        else
            TSR_TRY(layer_expect_status("run", status, TSR_ERROR_PEER, "all ranks must make the same call"));
    }
    tsr_dtensor_destroy(made);
    tsr_executable_destroy(exe);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ranks_that_meet_compare_keys(void **state)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    (void)state;
    threads.context = counted_context(&memory);
    const tsr_status status = tsr_threads_run(2, differ, NULL, &threads);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

static void expect_message(tsr_status status, tsr_status wanted, const char *sentence)
{
    assert_int_equal(status, wanted);
    assert_string_equal(tsr_status_message(), sentence);
}

/* A run without a key, and keys that an executable does not take. */
static tsr_status set_wrongly(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_executable *exe;
    tsr_dtensor *made;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make_layout(mesh, "R", &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key key = tsr_run_key(p, "noise", TSR_RANDOM_THREEFRY), none = {0},
                         philox = tsr_random_key_philox(1, 2), threefry = tsr_random_key_threefry(1);
    tsr_output(p, "y", tsr_op_uniform(p, layout, &key, 0, 1), NULL);
    TSR_TRY(tsr_compile(p, NULL, &exe));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(exe, comm));
    expect_message(run(exe, comm, NULL, &made), TSR_ERROR_STATE,
                   "tsr_executable_run: key \"noise\" is not set; give it by tsr_executable_set_key()");
    expect_message(tsr_executable_set_key(exe, "nose", &threefry), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: the program has no key \"nose\"");
    expect_message(tsr_executable_set_key(exe, "noise", &philox), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: \"noise\" is of TSR_RANDOM_THREEFRY, but key is of TSR_RANDOM_PHILOX");
    expect_message(tsr_executable_set_key(exe, "noise", &key), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: key is of tsr_run_key() and stands for one that runs of a program give; "
                   "give a key that is one, such as tsr_random_key_threefry(seed)");
    expect_message(tsr_executable_set_key(exe, "noise", &none), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: key has generator 0; make it by tsr_random_key_threefry() or "
                   "tsr_random_key_philox()");
    expect_message(tsr_executable_set_key(exe, "noise", NULL), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: key is NULL");
    expect_message(tsr_executable_set_key(exe, NULL, &threefry), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: name is NULL");
    expect_message(tsr_executable_set_key(NULL, "noise", &threefry), TSR_ERROR_ARGUMENT,
                   "tsr_executable_set_key: executable is NULL");
    assert_int_equal(run(exe, comm, NULL, &made), TSR_ERROR_STATE); /* none was taken */
    TSR_TRY(tsr_executable_set_key(exe, "noise", &threefry));
    TSR_TRY(run(exe, comm, NULL, &made));
    tsr_dtensor_destroy(made);
    tsr_executable_destroy(exe);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void keys_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    on_ranks(1, set_wrongly, NULL);
}

/* Calls on dtensors have no run that would give the key. */
static tsr_status call_with_run_key(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_dtensor *x, *y;
    const tsr_op *op;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make_layout(mesh, "R", &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_random_key run_key = tsr_run_key(p, "noise", TSR_RANDOM_PHILOX), key = tsr_random_key_fold_in(run_key, 1);
    tsr_program_destroy(p);
    expect_message(tsr_dropout(x, 0.5, &key, &y), TSR_ERROR_ARGUMENT,
                   "tsr_dropout: key is of tsr_run_key() and stands for one that runs of a program give; give a key "
                   "that is one, such as tsr_random_key_threefry(seed)");
    assert_int_equal(tsr_uniform(layout, &key, 0, 1, &y), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_kaiming_normal(layout, &key, 1, 3, &y), TSR_ERROR_ARGUMENT);
    TSR_TRY(tsr_op_find(NULL, "dropout", &op));
    const tsr_attribute attributes[] = {tsr_random_key_generator(&key), tsr_random_key_words(&key)};
    const tsr_dtensor *const operands[TSR_OP_MOST_OPERANDS] = {x};
    expect_message(tsr_op_call(op, 2, attributes, operands, &y), TSR_ERROR_ARGUMENT,
                   "dropout: key is of tsr_run_key() and stands for one that runs of a program give; give a key that "
                   "is one");
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void calls_refuse_keys_of_runs(void **state)
{
    (void)state;
    on_ranks(1, call_with_run_key, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_keys_are_no_lengths),
        cmocka_unit_test(keys_and_lengths_change_by_themselves),
        cmocka_unit_test(numbers_are_those_of_calls_with_the_key),
        cmocka_unit_test(the_backward_drops_what_the_forward_dropped),
        cmocka_unit_test(ranks_that_meet_compare_keys),
        cmocka_unit_test(keys_that_do_not_fit_are_refused),
        cmocka_unit_test(calls_refuse_keys_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
