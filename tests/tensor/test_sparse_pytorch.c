/* Sparse optimizers of PyTorch, torchrec and DGL: tests/golden/sparse.txt has what they make of the
 * same data. All bits are theirs. */
#include "comm_suite.h"
#include "rows_oracle.h"

#include <tessera/sparse.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 7, WIDTH = 4, IDS = 6, STEPS = 5, STATES = 3, MOST_CASES = 16, LINE = 4096 };

/* A state after the last step. */
typedef struct golden_state {
    char name[32];
    double numbers[ROWS * WIDTH];
} golden_state;

typedef struct golden_case {
    char kind[32], duplicates[8], steps[8];
    double options[8];
    double begin[ROWS * WIDTH], end[ROWS * WIDTH];
    int64_t ids[STEPS][IDS];
    double rows[STEPS][IDS * WIDTH];
    int step_count, state_count;
    golden_state states[STATES];
} golden_case;

static golden_case cases[MOST_CASES];
static int case_count;

/* Reads up to `most` numbers; returns how many there are. */
static int read_numbers(const char *text, double *out, int most)
{
    int count = 0;
    for (char *end; count < most; text = end, count++) {
        out[count] = strtod(text, &end);
        if (end == text)
            break;
    }
    return count;
}

static void read_case(golden_case *c, const char *text)
{
    int read = 0;
    assert_int_equal(sscanf(text, "%31s %7s %7s%n", c->kind, c->duplicates, c->steps, &read), 3);
    assert_int_equal(read_numbers(text + read, c->options, 8), 8);
}

/* Reads a line of a case that has begun. */
static void read_line(golden_case *c, const char *name, const char *text)
{
    double ids[IDS];
    if (strcmp(name, "begin") == 0)
        assert_int_equal(read_numbers(text, c->begin, ROWS * WIDTH), ROWS * WIDTH);
    else if (strcmp(name, "end") == 0)
        assert_int_equal(read_numbers(text, c->end, ROWS * WIDTH), ROWS * WIDTH);
    else if (strcmp(name, "rows") == 0)
        assert_int_equal(read_numbers(text, c->rows[c->step_count++], IDS * WIDTH), IDS * WIDTH);
    else if (strcmp(name, "step") == 0 && c->step_count < STEPS) {
        assert_int_equal(read_numbers(text, ids, IDS), IDS);
        for (int i = 0; i < IDS; i++)
            c->ids[c->step_count][i] = (int64_t)ids[i];
    } else {
        golden_state *const state = &c->states[c->state_count++];
        assert_true(c->state_count <= STATES);
        snprintf(state->name, sizeof state->name, "%s", name);
        assert_true(read_numbers(text, state->numbers, ROWS * WIDTH) > 0);
    }
}

static int read_golden(void **state)
{
    static char line[LINE];
    FILE *const file = fopen(GOLDEN_DIR "/sparse.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char name[32];
        int read = 0;
        assert_int_equal(sscanf(line, "%31s%n", name, &read), 1);
        if (strcmp(name, "case") == 0)
            read_case(&cases[case_count++], line + read);
        else
            read_line(&cases[case_count - 1], name, line + read);
    }
    return fclose(file);
}

static tsr_sparse_options options_of(const golden_case *c)
{
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    while (strcmp(tsr_sparse_kind_name(options.kind), c->kind) != 0 && options.kind < TSR_SPARSE_KIND_END)
        options.kind++;
    options.duplicates = strcmp(c->duplicates, "mean") == 0 ? TSR_SPARSE_DUPLICATES_MEAN : TSR_SPARSE_DUPLICATES_SUM;
    options.steps = strcmp(c->steps, "row") == 0 ? TSR_SPARSE_STEPS_ROW : TSR_SPARSE_STEPS_GLOBAL;
    options.learning_rate = c->options[0];
    options.momentum = c->options[1];
    options.beta1 = c->options[2];
    options.beta2 = c->options[3];
    options.epsilon = c->options[4];
    options.weight_decay = c->options[5];
    options.initial_accumulator = c->options[6];
    options.epsilon_in_root = c->options[7] != 0;
    return options;
}

static tsr_status check_numbers(const golden_case *c, const tsr_dtensor *x, const char *name, const double *whole)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++) {
        const double want = whole[local.ndim == 0 ? 0 : rows_global(tsr_dtensor_layout(x), i)];
        const double have =
            local.dtype == TSR_I64 ? (double)((const int64_t *)local.data)[i] : ((const double *)local.data)[i];
        if (memcmp(&have, &want, sizeof have) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s %s %s: element %lld of %s is %.17g, not %.17g", c->kind,
                                  c->duplicates, c->steps, (long long)i, name, have, want);
    }
    return TSR_OK;
}

static tsr_status take_steps(const golden_case *c, tsr_comm *comm, tsr_dtensor *table)
{
    const tsr_sparse_options options = options_of(c);
    tsr_sparse_optimizer *optimizer = NULL;
    const int64_t ranks = tsr_comm_size(comm), first = tsr_comm_rank(comm) * IDS / ranks,
                  shape[] = {(tsr_comm_rank(comm) + 1) * IDS / ranks - first, WIDTH};
    TSR_TRY(tsr_sparse_optimizer_create(1, &table, IDS, &options, &optimizer));
    for (int step = 0; step < c->step_count; step++) {
        const tsr_tensor ids = tsr_tensor_contiguous((void *)&c->ids[step][first], TSR_I64, 1, shape);
        const tsr_tensor rows = tsr_tensor_contiguous((void *)&c->rows[step][first * WIDTH], TSR_F64, 2, shape);
        TSR_TRY(tsr_sparse_optimizer_step(optimizer, &ids, &rows));
    }
    TSR_TRY(check_numbers(c, table, "the table", c->end));
    for (int i = 0; i < c->state_count; i++) {
        const tsr_dtensor *const state = tsr_sparse_optimizer_state(optimizer, 0, c->states[i].name);
        CHECK(state);
        TSR_TRY(check_numbers(c, state, c->states[i].name, c->states[i].numbers));
    }
    tsr_sparse_optimizer_destroy(optimizer);
    return TSR_OK;
}

static tsr_status play_case(tsr_comm *comm, void *arg)
{
    const golden_case *const c = arg;
    const int64_t shape[] = {ROWS, WIDTH};
    tsr_mesh *mesh = NULL;
    tsr_dtensor *table = NULL;
    const tsr_tensor begin = tsr_tensor_contiguous((void *)c->begin, TSR_F64, 2, shape);
    TSR_TRY(tsr_mesh_parse(comm, NULL, tsr_comm_size(comm) == 3 ? "3" : "1", &mesh));
    TSR_TRY(tsr_distribute(&begin, mesh, "S(0)", &table));
    const tsr_status status = take_steps(c, comm, table);
    tsr_dtensor_destroy(table);
    tsr_mesh_destroy(mesh);
    return status;
}

static void tables_and_states_are_those_of_pytorch_and_dgl(void **state)
{
    (void)state;
    assert_int_equal(case_count, 10);
    for (int i = 0; i < case_count; i++) {
        suite_run(1, play_case, &cases[i]);
        suite_run(3, play_case, &cases[i]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tables_and_states_are_those_of_pytorch_and_dgl, read_golden),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
