/* The check of layers in bench linear accepts exact results, in any order of summation, and finds
 * every other result. */
#include <tessera/tessera.h>

#include <bench/check/linear_oracle.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH(a) (sizeof a / sizeof *(a))

/* A whole matrix, row-major. */
typedef struct whole {
    int64_t rows, columns;
    double *at;
} whole;

static whole make(int64_t rows, int64_t columns)
{
    whole w = {rows, columns, calloc((size_t)(rows * columns), sizeof(double))};
    assert_non_null(w.at);
    return w;
}

static whole transposed(const whole *a)
{
    const whole t = make(a->columns, a->rows);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < a->columns; k++)
            t.at[k * a->rows + i] = a->at[i * a->columns + k];
    return t;
}

static whole times(const whole *a, const whole *b)
{
    const whole c = make(a->rows, b->columns);
    assert_int_equal(a->columns, b->rows);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < a->columns; k++)
            for (int64_t j = 0; j < b->columns; j++)
                c.at[i * b->columns + j] += a->at[i * a->columns + k] * b->at[k * b->columns + j];
    return c;
}

static whole input(const linear_oracle *o, linear_input which, int64_t rows, int64_t columns)
{
    const whole w = make(rows, columns);
    linear_oracle_fill(o, which, (linear_tile){0, 0, rows, columns}, w.at);
    return w;
}

static linear_tile all_of(const whole *w)
{
    return (linear_tile){0, 0, w->rows, w->columns};
}

/* The matrices that an MLP reads and writes, multiplied out. */
typedef struct mlp {
    linear_oracle oracle;
    whole x, w1, w2, dy, x_t, w1_t, w2_t, dy_t;
    whole result[LINEAR_RESULTS];
    whole most[LINEAR_RESULTS]; /* the products of absolute values: upper bounds of all partial sums and results */
} mlp;

static void multiply_out(mlp *m, whole result[LINEAR_RESULTS])
{
    m->x_t = transposed(&m->x);
    m->w1_t = transposed(&m->w1);
    m->w2_t = transposed(&m->w2);
    m->dy_t = transposed(&m->dy);
    result[LINEAR_Y1] = times(&m->x, &m->w1_t);
    result[LINEAR_Y2] = times(&result[LINEAR_Y1], &m->w2_t);
    result[LINEAR_DY1] = times(&m->dy, &m->w2);
    result[LINEAR_DX] = times(&result[LINEAR_DY1], &m->w1);
    result[LINEAR_DW2] = times(&m->dy_t, &result[LINEAR_Y1]);
    const whole dy1_t = transposed(&result[LINEAR_DY1]);
    result[LINEAR_DW1] = times(&dy1_t, &m->x);
    free(dy1_t.at);
    whole *const turned[] = {&m->x_t, &m->w1_t, &m->w2_t, &m->dy_t};
    for (size_t k = 0; k < LENGTH(turned); k++)
        free(turned[k]->at);
}

static void begin(mlp *m, int64_t tokens, int64_t hidden, int64_t intermediate, tsr_dtype dtype)
{
    m->oracle = linear_oracle_make(tokens, hidden, intermediate, dtype);
    m->x = input(&m->oracle, LINEAR_X, tokens, hidden);
    m->w1 = input(&m->oracle, LINEAR_W1, intermediate, hidden);
    m->w2 = input(&m->oracle, LINEAR_W2, hidden, intermediate);
    m->dy = input(&m->oracle, LINEAR_DY, tokens, hidden);
    multiply_out(m, m->result);
    whole *const inputs[] = {&m->x, &m->w1, &m->w2, &m->dy};
    for (size_t k = 0; k < LENGTH(inputs); k++)
        for (int64_t i = 0; i < inputs[k]->rows * inputs[k]->columns; i++)
            inputs[k]->at[i] = fabs(inputs[k]->at[i]);
    multiply_out(m, m->most);
}

static void end(mlp *m)
{
    for (int r = 0; r < LINEAR_RESULTS; r++) {
        free(m->result[r].at);
        free(m->most[r].at);
    }
    whole *const inputs[] = {&m->x, &m->w1, &m->w2, &m->dy};
    for (size_t k = 0; k < LENGTH(inputs); k++)
        free(inputs[k]->at);
}

static int64_t count(const linear_oracle *o, linear_result result, linear_tile tile, const double *values)
{
    int64_t wrong = -1;
    assert_int_equal(linear_oracle_count_wrong(o, result, tile, values, &wrong), TSR_OK);
    return wrong;
}

static const int64_t sizes[][3] = {{1, 1, 1},   {5, 4, 7},   {37, 65, 101}, {128, 64, 96},
                                   {6, 200, 1}, {1, 3, 150}, {150, 2, 5}};
static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};

/* Runs a test for every size and dtype. */
static void for_all(void (*test)(mlp *m, tsr_dtype dtype))
{
    static mlp m;
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t d = 0; d < LENGTH(dtypes); d++) {
            print_message("%lld tokens, %lld -> %lld, %s\n", (long long)sizes[s][0], (long long)sizes[s][1],
                          (long long)sizes[s][2], tsr_dtype_name(dtypes[d]));
            begin(&m, sizes[s][0], sizes[s][1], sizes[s][2], dtypes[d]);
            test(&m, dtypes[d]);
            end(&m);
        }
}

static void accept(mlp *m, tsr_dtype dtype)
{
    (void)dtype;
    for (int r = 0; r < LINEAR_RESULTS; r++)
        assert_int_equal(count(&m->oracle, (linear_result)r, all_of(&m->result[r]), m->result[r].at), 0);
}

static void what_is_multiplied_out_is_right(void **state)
{
    (void)state;
    for_all(accept);
}

static void stay_exact(mlp *m, tsr_dtype dtype)
{
    const double bound = dtype == TSR_BF16 ? 256 : dtype == TSR_F16 ? 2048 : 16777216;
    for (int r = 0; r < LINEAR_RESULTS; r++)
        for (int64_t i = 0; i < m->most[r].rows * m->most[r].columns; i++)
            assert_true(m->most[r].at[i] <= bound);
}

static void no_part_of_a_sum_leaves_the_integers_of_the_dtype(void **state)
{
    (void)state;
    for_all(stay_exact);
}

static void find_one(mlp *m, tsr_dtype dtype)
{
    static const double other[] = {0.5, 1e30, -1e30, NAN, INFINITY};
    (void)dtype;
    for (int r = 0; r < LINEAR_RESULTS; r++) {
        const whole *const w = &m->result[r];
        for (int64_t i = 0; i < w->rows * w->columns; i += 1 + w->rows * w->columns / 13) {
            const double right = w->at[i];
            for (size_t k = 0; k < LENGTH(other); k++) {
                w->at[i] = other[k];
                assert_int_equal(count(&m->oracle, (linear_result)r, all_of(w), w->at), 1);
            }
            w->at[i] = right + 1;
            assert_int_equal(count(&m->oracle, (linear_result)r, all_of(w), w->at), 1);
            w->at[i] = right;
        }
    }
}

static void one_element_that_is_off_is_found_and_counted_once(void **state)
{
    (void)state;
    for_all(find_one);
}

static void elements_of_a_row_that_are_swapped_are_two(void **state)
{
    (void)state;
    static mlp m;
    begin(&m, 37, 65, 101, TSR_F32);
    for (int r = 0; r < LINEAR_RESULTS; r++) {
        const whole *const w = &m.result[r];
        double *const row = w->at + 3 * w->columns;
        int64_t other = 1;
        while (other < w->columns && row[other] == row[0])
            other++;
        assert_true(other < w->columns);
        const double first = row[0];
        row[0] = row[other];
        row[other] = first;
        assert_int_equal(count(&m.oracle, (linear_result)r, all_of(w), w->at), 2);
    }
    end(&m);
}

static void cut(const mlp *m, linear_result r, linear_tile tile)
{
    const whole *const w = &m->result[r], part = make(tile.rows, tile.columns);
    for (int64_t i = 0; i < tile.rows; i++)
        memcpy(part.at + i * tile.columns, w->at + (tile.row + i) * w->columns + tile.column,
               (size_t)tile.columns * sizeof(double));
    assert_int_equal(count(&m->oracle, r, tile, part.at), 0);
    part.at[tile.rows * tile.columns - 1] += 1;
    assert_int_equal(count(&m->oracle, r, tile, part.at), 1);
    free(part.at);
}

static void a_tile_is_checked_as_the_part_that_it_is(void **state)
{
    (void)state;
    static mlp m;
    begin(&m, 37, 65, 101, TSR_BF16);
    for (int r = 0; r < LINEAR_RESULTS; r++) {
        const int64_t rows = m.result[r].rows, columns = m.result[r].columns;
        cut(&m, (linear_result)r, (linear_tile){7, 0, 11, columns});
        cut(&m, (linear_result)r, (linear_tile){0, 13, rows, 17});
        cut(&m, (linear_result)r, (linear_tile){rows - 5, columns - 1, 5, 1});
        assert_int_equal(count(&m.oracle, (linear_result)r, (linear_tile){rows, columns, 0, 0}, NULL), 0);
    }
    end(&m);
}

static void tiles_of_inputs_are_parts_of_the_whole(void **state)
{
    (void)state;
    static mlp m;
    const linear_tile tile = {31, 7, 9, 50};
    double part[9 * 50];
    begin(&m, 37, 65, 101, TSR_F16);
    const whole w1 = input(&m.oracle, LINEAR_W1, 101, 65);
    linear_oracle_fill(&m.oracle, LINEAR_W1, tile, part);
    for (int64_t i = 0; i < tile.rows * tile.columns; i++)
        assert_true(part[i] == w1.at[(tile.row + i / tile.columns) * 65 + tile.column + i % tile.columns]);
    free(w1.at);
    end(&m);
}

static void rows_beyond_the_most_count_one_each(void **state)
{
    (void)state;
    static mlp m;
    begin(&m, 128, 64, 96, TSR_F32);
    const whole *const w = &m.result[LINEAR_Y2];
    for (int64_t i = 0; i < w->rows * w->columns; i++)
        w->at[i] += 1;
    assert_int_equal(count(&m.oracle, LINEAR_Y2, all_of(w), w->at),
                     LINEAR_ORACLE_ROWS * w->columns + w->rows - LINEAR_ORACLE_ROWS);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_multiplied_out_is_right),
        cmocka_unit_test(no_part_of_a_sum_leaves_the_integers_of_the_dtype),
        cmocka_unit_test(one_element_that_is_off_is_found_and_counted_once),
        cmocka_unit_test(elements_of_a_row_that_are_swapped_are_two),
        cmocka_unit_test(a_tile_is_checked_as_the_part_that_it_is),
        cmocka_unit_test(tiles_of_inputs_are_parts_of_the_whole),
        cmocka_unit_test(rows_beyond_the_most_count_one_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
