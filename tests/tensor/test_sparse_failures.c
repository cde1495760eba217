/* Sparse optimizers in which a rank is at fault, or all are: all ranks hear of it, and no table or
 * state has changed. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/sparse.h>
#include <tessera/sys/device.h>
#include <tessera/values.h>

#include <math.h>

enum { RANKS = 3, ODD = 1, ROWS = 7, WIDTH = 4, IDS = 3 };

typedef struct stage {
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    int64_t ids[IDS];
    float data[IDS * WIDTH];
    tsr_tensor named, rows;
} stage;

static tsr_status raise_stage(stage *s, tsr_comm *comm, const char *placements, tsr_dtype dtype)
{
    const int64_t count = IDS, shape[] = {ROWS, WIDTH}, of_rows[] = {IDS, WIDTH};
    *s = (stage){.mesh = NULL};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, placements, 2, shape, dtype, &s->layout));
    TSR_TRY(tsr_dtensor_create(s->layout, tsr_device_host(), &s->table));
    TSR_TRY(tsr_dtensor_fill(s->table, 2, NULL));
    for (int i = 0; i < IDS; i++)
        s->ids[i] = (3 * i + tsr_comm_rank(comm)) % ROWS;
    for (int i = 0; i < IDS * WIDTH; i++)
        s->data[i] = 1;
    s->named = tsr_tensor_contiguous(s->ids, TSR_I64, 1, &count);
    s->rows = tsr_tensor_contiguous(s->data, TSR_F32, 2, of_rows);
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    tsr_dtensor_destroy(s->table);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
}

/* All elements of a dtensor are `value`. */
static tsr_status check_all(const tsr_dtensor *x, double value)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        CHECK((local.dtype == TSR_I64 ? (double)((const int64_t *)local.data)[i] : ((const float *)local.data)[i]) ==
              value);
    return TSR_OK;
}

static tsr_sparse_options of_adam(void)
{
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    options.kind = TSR_SPARSE_ADAM;
    return options;
}

/* What rank ODD does wrong. */
typedef struct mistake {
    tsr_sparse_options options;
    const char *words;
} mistake;

#define MISTAKE(words_, ...)                                                                                           \
    {                                                                                                                  \
        {.size = sizeof(tsr_sparse_options), __VA_ARGS__}, words_                                                      \
    }
static const mistake mistakes[] = {
    MISTAKE("kind is 4: sgd, adagrad, rowwise_adagrad and adam are", .kind = TSR_SPARSE_KIND_END),
    MISTAKE("duplicates is 2: sum and mean are", .duplicates = TSR_SPARSE_DUPLICATES_END),
    MISTAKE("steps is 2: global and row are", .steps = TSR_SPARSE_STEPS_END),
    MISTAKE("epsilon_in_root is 2: it is 0 or 1", .epsilon_in_root = 2),
    MISTAKE("learning_rate is -1: it is 0 or more, and finite", .learning_rate = -1),
    MISTAKE("momentum is -0.5", .momentum = -0.5),
    MISTAKE("beta1 is 1: it is 0 or more, and below 1", .beta1 = 1),
    MISTAKE("beta2 is inf", .beta2 = INFINITY),
    MISTAKE("epsilon is -2", .epsilon = -2),
    MISTAKE("weight_decay is inf", .weight_decay = INFINITY),
    MISTAKE("initial_accumulator is -0.1", .initial_accumulator = -0.1),
    {{.size = 1000}, "size is 1000"},
};

static tsr_status make_mistakes(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_sparse_optimizer *optimizer = NULL;
    const bool odd = tsr_comm_rank(comm) == ODD;
    const tsr_status wanted = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    tsr_dtensor *const twice[] = {s.table, s.table}, *const none[] = {s.table, NULL};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        CHECK_ERROR(tsr_sparse_optimizer_create(1, &s.table, IDS, odd ? &mistakes[i].options : NULL, &optimizer),
                    wanted, mistakes[i].words);
    CHECK_ERROR(tsr_sparse_optimizer_create(odd ? 2 : 1, twice, IDS, NULL, &optimizer), wanted,
                "tables[1] is tables[0]: a table has one entry");
    CHECK_ERROR(tsr_sparse_optimizer_create(odd ? 2 : 1, none, IDS, NULL, &optimizer), wanted, "tables[1] is NULL");
    CHECK_ERROR(tsr_sparse_optimizer_create(1, &s.table, odd ? -1 : 1, NULL, &optimizer), wanted, "capacity is -1");
    CHECK_ERROR(tsr_sparse_optimizer_create(1, &s.table, IDS, NULL, odd ? NULL : &optimizer), wanted, "out is NULL");
    CHECK_ERROR(tsr_sparse_optimizer_create(1, NULL, IDS, NULL, &optimizer), TSR_ERROR_ARGUMENT, "tables[0] is NULL");
    CHECK_ERROR(tsr_sparse_optimizer_create(0, &s.table, IDS, NULL, &optimizer), TSR_ERROR_ARGUMENT, "count is 0");
    tsr_sparse_options options = of_adam();
    options.beta1 = odd ? 0.5 : 0.9;
    CHECK_ERROR(tsr_sparse_optimizer_create(1, &s.table, IDS, &options, &optimizer), TSR_ERROR_ARGUMENT,
                "rank 0 calls tsr_sparse_optimizer_create adam at learning rate 0.01");
    CHECK(!optimizer);
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void options_that_one_rank_gets_wrong_are_told_to_all(void **state)
{
    (void)state;
    suite_run(RANKS, make_mistakes, NULL);
}

/* Faults that all ranks share. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    static const struct {
        const char *placements;
        tsr_dtype dtype;
        double decay;
        const char *words;
    } cases[] = {
        {"P", TSR_F32, 0, "tables[0] is f32 7x4 P on mesh 3: mesh dim 0 holds terms, not rows"},
        {"S(0)", TSR_I32, 0, "tables[0] is of i32: optimizers are for floats"},
        {"S(0)", TSR_C64, 0, "tables[0] is of c64: optimizers are for floats"},
        {"S(1)", TSR_F32, 0.1, "weight_decay of row-wise Adagrad needs whole rows"},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        tsr_sparse_optimizer *optimizer = NULL;
        tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
        options.kind = TSR_SPARSE_ROWWISE_ADAGRAD;
        options.weight_decay = cases[i].decay;
        TSR_TRY(raise_stage(&s, comm, cases[i].placements, cases[i].dtype));
        CHECK_ERROR(tsr_sparse_optimizer_create(1, &s.table, IDS, &options, &optimizer), TSR_ERROR_UNSUPPORTED,
                    cases[i].words);
        strike_stage(&s);
    }
    return suite_check_usable(comm);
}

static void tables_that_no_optimizer_takes_are_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse, NULL);
}

/* Tables on a device, which is host memory. */
static tsr_status refuse_devices(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_device_driver *driver;
    tsr_sparse_optimizer *optimizer = NULL;
    tsr_dtensor *far = NULL;
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    (void)arg;
    table.name = "elsewhere";
    TSR_TRY(tsr_device_driver_create(&table, self, &driver));
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    TSR_TRY(tsr_dtensor_create(s.layout, (tsr_device){driver, 0}, &far));
    CHECK_ERROR(tsr_sparse_optimizer_create(1, &far, IDS, NULL, &optimizer), TSR_ERROR_UNSUPPORTED,
                "tables[0] is on elsewhere:0: optimizers take tables on the host");
    tsr_dtensor_destroy(far);
    strike_stage(&s);
    tsr_device_driver_destroy(driver);
    return suite_check_usable(comm);
}

static void tables_on_devices_are_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse_devices, NULL);
}

/* Table and states are as they were made. */
static tsr_status check_untouched(const stage *s, const tsr_sparse_optimizer *optimizer)
{
    const char *name;
    TSR_TRY(check_all(s->table, 2));
    for (size_t i = 0; (name = tsr_sparse_optimizer_state_name(optimizer, i)); i++)
        TSR_TRY(check_all(tsr_sparse_optimizer_state(optimizer, 0, name), 0));
    return TSR_OK;
}

static tsr_status misstep(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_sparse_optimizer *optimizer = NULL;
    const tsr_sparse_options options = of_adam();
    const bool odd = tsr_comm_rank(comm) == ODD;
    const tsr_status wanted = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    TSR_TRY(raise_stage(&s, comm, arg, TSR_F32));
    TSR_TRY(tsr_sparse_optimizer_create(1, &s.table, IDS, &options, &optimizer));
    s.ids[2] = odd ? ROWS : 0;
    CHECK_ERROR(tsr_sparse_optimizer_step(optimizer, &s.named, &s.rows), wanted,
                "tsr_sparse_optimizer_step: ids of rank 1 at position 2 is 7: there are 7 rows, counted from 0");
    s.ids[2] = 0;
    CHECK_ERROR(tsr_sparse_optimizer_step(optimizer, odd ? NULL : &s.named, &s.rows), wanted, "ids is NULL");
    s.rows.shape[1] = odd ? 2 : WIDTH;
    CHECK_ERROR(tsr_sparse_optimizer_step(optimizer, &s.named, &s.rows), wanted, "has shape 3x2");
    s.rows.shape[1] = WIDTH;
    TSR_TRY(tsr_sparse_optimizer_set_learning_rate(optimizer, odd ? 0.5 : 0.25));
    CHECK_ERROR(tsr_sparse_optimizer_step(optimizer, &s.named, &s.rows), TSR_ERROR_ARGUMENT,
                "rank 0 calls tsr_sparse_optimizer_step adam at learning rate 0.25");
    TSR_TRY(check_untouched(&s, optimizer));
    TSR_TRY(tsr_sparse_optimizer_set_learning_rate(optimizer, 0));
    TSR_TRY(tsr_sparse_optimizer_step(optimizer, &s.named, &s.rows));
    TSR_TRY(check_all(s.table, 2));
    TSR_TRY(check_all(tsr_sparse_optimizer_state(optimizer, 0, "step"), 1));
    tsr_sparse_optimizer_destroy(optimizer);
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_step_with_a_mistake_writes_nothing(void **state)
{
    (void)state;
    suite_run(RANKS, misstep, "S(0)");
    suite_run(RANKS, misstep, "S(1)");
    suite_run(RANKS, misstep, "R");
}

static tsr_status ask(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_sparse_optimizer *optimizer = NULL;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    TSR_TRY(tsr_sparse_optimizer_create(1, &s.table, IDS, NULL, &optimizer));
    CHECK(!tsr_sparse_optimizer_state_name(optimizer, 0) && !tsr_sparse_optimizer_state_name(NULL, 0));
    CHECK(!tsr_sparse_optimizer_state(optimizer, 0, "sum") && !tsr_sparse_optimizer_state(NULL, 0, "sum"));
    CHECK(tsr_sparse_optimizer_learning_rate(optimizer) == 0.01 && tsr_sparse_optimizer_learning_rate(NULL) == 0);
    CHECK_ERROR(tsr_sparse_optimizer_set_learning_rate(optimizer, NAN), TSR_ERROR_ARGUMENT, "learning_rate is nan");
    CHECK_ERROR(tsr_sparse_optimizer_set_learning_rate(NULL, 1), TSR_ERROR_ARGUMENT, "optimizer is NULL");
    CHECK_ERROR(tsr_sparse_optimizer_step(NULL, &s.named, &s.rows), TSR_ERROR_ARGUMENT, "optimizer is NULL");
    tsr_sparse_optimizer_destroy(optimizer);
    const tsr_sparse_options options = of_adam();
    TSR_TRY(tsr_sparse_optimizer_create(1, &s.table, IDS, &options, &optimizer));
    CHECK(strcmp(tsr_sparse_optimizer_state_name(optimizer, 2), "step") == 0 &&
          !tsr_sparse_optimizer_state_name(optimizer, 3));
    CHECK(!tsr_sparse_optimizer_state(optimizer, 1, "step") && !tsr_sparse_optimizer_state(optimizer, 0, NULL));
    CHECK(strcmp(tsr_sparse_kind_name(TSR_SPARSE_ADAM), "adam") == 0 &&
          strcmp(tsr_sparse_kind_name(TSR_SPARSE_KIND_END), "none") == 0);
    tsr_sparse_optimizer_destroy(optimizer);
    tsr_sparse_optimizer_destroy(NULL);
    strike_stage(&s);
    return TSR_OK;
}

static void questions_have_answers(void **state)
{
    (void)state;
    suite_run(RANKS, ask, NULL);
}

/* Rank ODD's n-th allocation fails, in making an optimizer and in its step, for each n until there
 * are no more. */
static tsr_status run_short(tsr_comm *comm, void *arg)
{
    stage s;
    const bool odd = tsr_comm_rank(comm) == ODD;
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    bool done = false;
    options.kind = *(const tsr_sparse_kind *)arg;
    options.momentum = options.weight_decay = 0.5;
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    for (size_t nth = 1; !done; nth++) {
        tsr_sparse_optimizer *optimizer = NULL;
        if (odd)
            counted_fail_here(nth, false);
        tsr_status status = tsr_sparse_optimizer_create(1, &s.table, IDS, &options, &optimizer);
        const bool made = status == TSR_OK;
        if (made)
            status = tsr_sparse_optimizer_step(optimizer, &s.named, &s.rows);
        done = odd ? counted_fail_here(0, false) > 0 : status == TSR_OK;
        if (!done) {
            CHECK_ERROR(status, odd ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, "memory");
            TSR_TRY(made ? check_untouched(&s, optimizer) : check_all(s.table, 2));
        }
        tsr_sparse_optimizer_destroy(optimizer);
        CHECK(nth < 200 && (!done || status == TSR_OK));
    }
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_rank_without_memory_is_named_and_nothing_is_written(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    for (tsr_sparse_kind kind = TSR_SPARSE_SGD; kind < TSR_SPARSE_KIND_END; kind++) {
        counted_memory memory = {0};
        tsr_context *context = counted_context(&memory);
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.context = context;
        suite_run_with(RANKS, run_short, &kind, &options);
        tsr_context_destroy(context);
        assert_int_equal(memory.live_blocks, 0);
    }
}

/* Ranks outside the mesh make the calls, and bring nothing. */
static tsr_status step_on_some(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    tsr_sparse_optimizer *optimizer = NULL;
    const int rank = tsr_comm_rank(comm);
    const int64_t shape[] = {ROWS, WIDTH}, ids[] = {6}, of_rows[] = {1, WIDTH};
    const float data[WIDTH] = {1, 1, 1, 1};
    const tsr_tensor named = tsr_tensor_contiguous((void *)ids, TSR_I64, 1, of_rows),
                     rows = tsr_tensor_contiguous((void *)data, TSR_F32, 2, of_rows);
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    (void)arg;
    options.kind = TSR_SPARSE_ADAGRAD;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    TSR_TRY(tsr_dtensor_fill(table, 2, NULL));
    TSR_TRY(tsr_sparse_optimizer_create(1, &table, 1, &options, &optimizer));
    TSR_TRY(tsr_sparse_optimizer_step(optimizer, rank == 0 ? NULL : &named, rank == 0 ? NULL : &rows));
    const tsr_tensor local = tsr_dtensor_to_local(tsr_sparse_optimizer_state(optimizer, 0, "sum"));
    if (rank == 2) /* two gradients of 1 for row 6, the third that it has */
        CHECK(((const float *)local.data)[2 * WIDTH] == 4);
    tsr_sparse_optimizer_destroy(optimizer);
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ranks_outside_the_mesh_take_part_with_nothing(void **state)
{
    (void)state;
    suite_run(RANKS, step_on_some, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_one_rank_gets_wrong_are_told_to_all),
        cmocka_unit_test(tables_that_no_optimizer_takes_are_refused_by_name),
        cmocka_unit_test(tables_on_devices_are_refused_by_name),
        cmocka_unit_test(a_step_with_a_mistake_writes_nothing),
        cmocka_unit_test(questions_have_answers),
        cmocka_unit_test(a_rank_without_memory_is_named_and_nothing_is_written),
        cmocka_unit_test(ranks_outside_the_mesh_take_part_with_nothing),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
