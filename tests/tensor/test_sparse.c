/* Sparse optimizers over every engine and layout: all bits of tables and states are those of plain
 * loops over whole tables. */
#include "comm_suite.h"
#include "counted_memory.h"
#include "rows_oracle.h"
#include "sparse_oracle.h"

#include <stdlib.h>

enum { ROUNDS = 3, TABLES = 2 };

/* A table: all ranks of the communicator are in its mesh. */
typedef struct site {
    int ranks;
    const char *mesh, *placements;
    int ndim;
    int64_t shape[3];
} site;

static const site sites[] = {
    {1, "1", "S(0)", 2, {13, 9}},
    {2, "2", "S(0)", 2, {13, 9}},
    {2, "2", "S(1)", 2, {13, 9}},
    {2, "2", "R", 1, {13}},
    {3, "3", "S(0;sizes=4,0,9)", 2, {13, 9}},
    {3, "3", "S(1)", 2, {13, 4}},
    {3, "3@[2,0,1]", "S(0;interleave=2)", 2, {13, 3}},
    {4, "2x2", "S(0),S(1)", 2, {13, 9}},
    {4, "2x2", "R,S(0)", 2, {13, 9}},
    {4, "2x2", "S(1)[1],S(0;balanced)[0]", 2, {13, 9}},
    {4, "2x2", "S(2),S(0)", 3, {7, 3, 5}},
    {4, "4", "S(1;interleave=2)", 2, {13, 16}},
    {4, "4", "S(0)", 3, {6, 0, 3}},
};
enum { SITES = sizeof sites / sizeof *sites };

#define OPTIONS(...)                                                                                                   \
    {                                                                                                                  \
        .size = sizeof(tsr_sparse_options), .beta1 = 0.9, .beta2 = 0.999, __VA_ARGS__                                  \
    }
static const tsr_sparse_options optimizers[] = {
    OPTIONS(.kind = TSR_SPARSE_SGD, .learning_rate = 0.3),
    OPTIONS(.kind = TSR_SPARSE_SGD, .learning_rate = 0.3, .momentum = 0.9),
    OPTIONS(.kind = TSR_SPARSE_SGD, .learning_rate = 0.3, .momentum = 0.9, .steps = TSR_SPARSE_STEPS_ROW),
    OPTIONS(.kind = TSR_SPARSE_SGD, .learning_rate = 0.3, .weight_decay = 0.1,
            .duplicates = TSR_SPARSE_DUPLICATES_MEAN),
    OPTIONS(.kind = TSR_SPARSE_SGD, .learning_rate = 0.3, .weight_decay = 0.1, .steps = TSR_SPARSE_STEPS_ROW),
    OPTIONS(.kind = TSR_SPARSE_ADAGRAD, .learning_rate = 0.1, .epsilon = 1e-10),
    OPTIONS(.kind = TSR_SPARSE_ADAGRAD, .learning_rate = 0.1, .epsilon = 1e-3, .epsilon_in_root = 1,
            .duplicates = TSR_SPARSE_DUPLICATES_MEAN, .initial_accumulator = 0.1, .weight_decay = 0.01),
    OPTIONS(.kind = TSR_SPARSE_ROWWISE_ADAGRAD, .learning_rate = 0.1, .epsilon = 1e-10),
    OPTIONS(.kind = TSR_SPARSE_ROWWISE_ADAGRAD, .learning_rate = 0.1, .epsilon = 1e-3, .epsilon_in_root = 1,
            .duplicates = TSR_SPARSE_DUPLICATES_MEAN, .initial_accumulator = 0.5),
    OPTIONS(.kind = TSR_SPARSE_ADAM, .learning_rate = 0.1, .epsilon = 1e-8),
    OPTIONS(.kind = TSR_SPARSE_ADAM, .learning_rate = 0.1, .epsilon = 1e-8, .steps = TSR_SPARSE_STEPS_ROW,
            .duplicates = TSR_SPARSE_DUPLICATES_MEAN),
    OPTIONS(.kind = TSR_SPARSE_ADAM, .learning_rate = 0.1, .epsilon = 1e-4, .epsilon_in_root = 1, .weight_decay = 0.1,
            .duplicates = TSR_SPARSE_DUPLICATES_MEAN),
    OPTIONS(.kind = TSR_SPARSE_ADAM, .learning_rate = 0.1, .epsilon = 1e-4, .epsilon_in_root = 1, .weight_decay = 0.1,
            .steps = TSR_SPARSE_STEPS_ROW),
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* One rank's tables of one shape, what they must hold, and what the rank brings. */
typedef struct stage {
    const site *s;
    tsr_sparse_options options;
    tsr_dtype dtypes[TABLES];
    tsr_mesh *mesh;
    tsr_layout *layouts[TABLES];
    tsr_dtensor *tables[TABLES];
    dense_table dense[TABLES];
    int64_t ids[TABLES][ROWS_IDS];
    unsigned char data[TABLES][ROWS_IDS * DENSE_ELEMENTS * 8];
    tsr_tensor named[TABLES], rows[TABLES];
} stage;

static tsr_status raise_table(stage *s, int t)
{
    const tsr_dtype dtype = s->dtypes[t];
    dense_table *const dense = &s->dense[t];
    int64_t count;
    TSR_TRY(tsr_layout_parse(s->mesh, s->s->placements, s->s->ndim, s->s->shape, dtype, &s->layouts[t]));
    TSR_TRY(tsr_dtensor_create(s->layouts[t], tsr_device_host(), &s->tables[t]));
    *dense = (dense_table){.options = s->options, .dtype = dtype, .rows = s->s->shape[0], .width = 1};
    for (int dim = 1; dim < s->s->ndim; dim++)
        dense->width *= s->s->shape[dim];
    for (int64_t i = 0; i < dense->rows * dense->width; i++)
        dense->table[i] = dense_number(7 + (unsigned)t, i);
    dense_begin(dense);
    const tsr_tensor local = tsr_dtensor_to_local(s->tables[t]);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        dense_store(dtype, dense->table[rows_global(s->layouts[t], i)],
                    (char *)local.data + (size_t)i * tsr_dtype_bytes(dtype));
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    for (int t = 0; t < TABLES; t++) {
        tsr_dtensor_destroy(s->tables[t]);
        tsr_layout_destroy(s->layouts[t]);
    }
    tsr_mesh_destroy(s->mesh);
}

/* Tells plain loops what all ranks bring, and this rank's operands what it brings. For another
 * table, ranks bring what they bring in another round. */
static void bring(stage *s, int t, int round, int own, int ranks)
{
    dense_table *const dense = &s->dense[t];
    double row[DENSE_ELEMENTS];
    int64_t shape[TSR_MAX_DIMS] = {0};
    for (int rank = 0; rank < ranks; rank++)
        for (int64_t i = 0; i < rows_count(round + t, rank); i++) {
            const int64_t id = rows_id(round + t, rank, i, dense->rows);
            for (int64_t k = 0; k < dense->width; k++)
                row[k] = dense_number(rows_salt(round, rank), i * dense->width + k);
            dense_bring(dense, id, row);
            if (rank != own)
                continue;
            s->ids[t][i] = id;
            for (int64_t k = 0; k < dense->width; k++)
                dense_store(dense->dtype, row[k],
                            s->data[t] + (size_t)(i * dense->width + k) * tsr_dtype_bytes(dense->dtype));
        }
    for (int dim = 0; dim < s->s->ndim; dim++)
        shape[dim] = dim == 0 ? rows_count(round + t, own) : s->s->shape[dim];
    s->named[t] = tsr_tensor_contiguous(s->ids[t], TSR_I64, 1, shape);
    s->rows[t] = tsr_tensor_contiguous(s->data[t], dense->dtype, s->s->ndim, shape);
}

/* Compares a rank's shard with whole numbers. */
static tsr_status check_numbers(const tsr_dtensor *x, const double *whole, const char *what)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++) {
        const int64_t global = rows_global(tsr_dtensor_layout(x), i);
        const double found = dense_load(local.dtype, (char *)local.data + (size_t)i * tsr_dtype_bytes(local.dtype));
        if (memcmp(&found, &whole[global], sizeof found) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %s is %.17g, not %.17g", (long long)global, what,
                                  found, whole[global]);
    }
    return TSR_OK;
}

static tsr_status check_steps(const tsr_dtensor *x, const int64_t *whole)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count;
    CHECK(local.dtype == TSR_I64);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        CHECK(((const int64_t *)local.data)[i] == whole[local.ndim == 0 ? 0 : rows_global(tsr_dtensor_layout(x), i)]);
    return TSR_OK;
}

static tsr_status check_table(const stage *s, const tsr_sparse_optimizer *optimizer, int t)
{
    const char *name;
    TSR_TRY(check_numbers(s->tables[t], s->dense[t].table, "the table"));
    for (size_t i = 0; (name = tsr_sparse_optimizer_state_name(optimizer, i)); i++) {
        const tsr_dtensor *const state = tsr_sparse_optimizer_state(optimizer, (size_t)t, name);
        CHECK(state);
        if (strcmp(name, "step") == 0)
            TSR_TRY(check_steps(state, s->dense[t].steps));
        else
            TSR_TRY(check_numbers(state, s->dense[t].states[i], name));
    }
    return TSR_OK;
}

/* Rounds come twice: the second time all memory is there. */
static tsr_status play_rounds(stage *s, tsr_comm *comm, tsr_sparse_optimizer *optimizer)
{
    for (int round = 0; round < 2 * ROUNDS; round++) {
        for (int t = 0; t < TABLES; t++)
            bring(s, t, round % ROUNDS, tsr_comm_rank(comm), tsr_comm_size(comm));
        const size_t asked = counted_asked_here();
        TSR_TRY(tsr_sparse_optimizer_step(optimizer, s->named, s->rows));
        CHECK(suite_engine->apart || round < ROUNDS || counted_asked_here() == asked);
        for (int t = 0; t < TABLES; t++) {
            dense_step(&s->dense[t]);
            const tsr_status status = check_table(s, optimizer, t);
            if (status != TSR_OK)
                return tsr_status_set(status, "%s of %s on %s of %s, table %d, round %d: %s",
                                      tsr_sparse_kind_name(s->options.kind), s->s->placements, s->s->mesh,
                                      tsr_dtype_name(s->dtypes[t]), t, round, tsr_status_message());
        }
        TSR_TRY(tsr_sparse_optimizer_set_learning_rate(optimizer, s->options.learning_rate / (round + 2)));
        for (int t = 0; t < TABLES; t++)
            s->dense[t].options.learning_rate = tsr_sparse_optimizer_learning_rate(optimizer);
    }
    return TSR_OK;
}

static tsr_status play(stage *s, tsr_comm *comm)
{
    tsr_sparse_optimizer *optimizer = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->s->mesh, &s->mesh));
    for (int t = 0; t < TABLES; t++)
        TSR_TRY(raise_table(s, t));
    TSR_TRY(tsr_sparse_optimizer_create(TABLES, s->tables, ROWS_IDS, &s->options, &optimizer));
    const tsr_status status = play_rounds(s, comm, optimizer);
    tsr_sparse_optimizer_destroy(optimizer);
    return status;
}

/* What the ranks of a run play. */
typedef struct play_case {
    const site *s;
    const tsr_sparse_options *options;
    tsr_dtype dtypes[TABLES];
} play_case;

static tsr_status play_on_rank(tsr_comm *comm, void *arg)
{
    const play_case *const c = arg;
    stage *const s = calloc(1, sizeof *s);
    CHECK(s);
    *s = (stage){.s = c->s, .options = *c->options};
    memcpy(s->dtypes, c->dtypes, sizeof s->dtypes);
    const tsr_status status = play(s, comm);
    strike_stage(s);
    free(s);
    return status;
}

/* Every optimizer on every site, with two tables of these dtypes. Where ranks are processes, of
 * which each run costs more, optimizers take turns. */
static void play_dtypes(tsr_dtype first, tsr_dtype second, int turn)
{
    const int turns = suite_engine->apart ? 8 : 1;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    for (int i = 0; i < SITES; i++)
        for (int o = 0; o < OPTIMIZERS; o++) {
            play_case c = {&sites[i], &optimizers[o], {first, second}};
            if ((i + o + turn) % turns == 0)
                suite_run_with(c.s->ranks, play_on_rank, &c, &options);
        }
    tsr_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

/* An optimizer of other layouts goes on where one was left. */
static tsr_status resume(stage *s, stage *other, tsr_comm *comm)
{
    tsr_sparse_optimizer *before = NULL, *after = NULL;
    const char *name;
    TSR_TRY(tsr_sparse_optimizer_create(TABLES, s->tables, ROWS_IDS, &s->options, &before));
    TSR_TRY(play_rounds(s, comm, before));
    other->options.learning_rate = tsr_sparse_optimizer_learning_rate(before);
    TSR_TRY(tsr_sparse_optimizer_create(TABLES, other->tables, ROWS_IDS, &other->options, &after));
    for (int t = 0; t < TABLES; t++) {
        TSR_TRY(tsr_redistribute_into(s->tables[t], other->tables[t], NULL));
        for (size_t i = 0; (name = tsr_sparse_optimizer_state_name(before, i)); i++)
            TSR_TRY(tsr_redistribute_into(tsr_sparse_optimizer_state(before, (size_t)t, name),
                                          tsr_sparse_optimizer_state(after, (size_t)t, name), NULL));
        other->dense[t] = s->dense[t];
    }
    tsr_sparse_optimizer_destroy(before);
    const tsr_status status = play_rounds(other, comm, after);
    tsr_sparse_optimizer_destroy(after);
    return status;
}

static tsr_status resume_on_rank(tsr_comm *comm, void *arg)
{
    static const site from = {4, "2x2", "S(0),S(1)", 2, {13, 9}}, to = {4, "4", "S(0;sizes=1,0,8,4)", 2, {13, 9}};
    stage *const stages = calloc(2, sizeof *stages);
    CHECK(stages);
    for (int i = 0; i < 2; i++) {
        stages[i] = (stage){.s = i == 0 ? &from : &to, .options = *(const tsr_sparse_options *)arg};
        stages[i].dtypes[0] = TSR_F64;
        stages[i].dtypes[1] = TSR_BF16;
        TSR_TRY(tsr_mesh_parse(comm, NULL, stages[i].s->mesh, &stages[i].mesh));
        for (int t = 0; t < TABLES; t++)
            TSR_TRY(raise_table(&stages[i], t));
    }
    const tsr_status status = resume(&stages[0], &stages[1], comm);
    strike_stage(&stages[0]);
    strike_stage(&stages[1]);
    free(stages);
    return status;
}

static void states_are_all_that_a_checkpoint_needs(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o += suite_engine->apart ? 4 : 1)
        suite_run(4, resume_on_rank, (void *)&optimizers[o]);
}

static void every_layout_takes_the_steps_of_plain_loops(void **state)
{
    (void)state;
    play_dtypes(TSR_F64, TSR_F32, 0);
}

static void narrow_tables_are_rounded_once(void **state)
{
    (void)state;
    play_dtypes(TSR_BF16, TSR_F16, 3);
}

static void decay_of_whole_rows(void **state)
{
    static const tsr_sparse_options decays =
        OPTIONS(.kind = TSR_SPARSE_ROWWISE_ADAGRAD, .learning_rate = 0.1, .epsilon = 1e-10, .weight_decay = 0.1);
    (void)state;
    for (int i = 0; i < SITES; i++) {
        play_case c = {&sites[i], &decays, {TSR_F64, TSR_BF16}};
        if (!strstr(sites[i].placements, "S(1") && !strstr(sites[i].placements, "S(2"))
            suite_run(c.s->ranks, play_on_rank, &c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_takes_the_steps_of_plain_loops),
        cmocka_unit_test(narrow_tables_are_rounded_once),
        cmocka_unit_test(decay_of_whole_rows),
        cmocka_unit_test(states_are_all_that_a_checkpoint_needs),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
