#include "bench/check/linear_oracle.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define SEED UINT64_C(0x7e55e7a)

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t exact_integers(tsr_dtype dtype)
{
    if (dtype == TSR_BF16)
        return INT64_C(1) << 8;
    return dtype == TSR_F16 ? INT64_C(1) << 11 : INT64_C(1) << 24;
}

linear_oracle linear_oracle_make(int64_t tokens, int64_t hidden, int64_t intermediate, tsr_dtype dtype)
{
    linear_oracle o = {tokens, hidden, intermediate, 1, 1, exact_integers(dtype)};
    while (ceil_div(hidden, o.weight_step) * ceil_div(intermediate, o.weight_step) > o.bound)
        o.weight_step *= 2;
    while (ceil_div(tokens, o.dy_step) * ceil_div(hidden, o.weight_step) > o.bound)
        o.dy_step *= 2;
    return o;
}

/* A hash in which every output bit depends on every input bit: alternating xor-shifts and odd
 * multipliers, all invertible. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static uint64_t weight_of_column(int64_t column)
{
    return mix(mix(SEED) + (uint64_t)column);
}

/* An input, whose element is not 0 where row + column is a multiple of `step`. */
typedef struct matrix {
    linear_input input;
    int64_t rows, columns, step;
} matrix;

static matrix matrix_of(const linear_oracle *o, linear_input input)
{
    switch (input) {
    case LINEAR_W1:
        return (matrix){input, o->intermediate, o->hidden, o->weight_step};
    case LINEAR_W2:
        return (matrix){input, o->hidden, o->intermediate, o->weight_step};
    case LINEAR_DY:
        return (matrix){input, o->tokens, o->hidden, o->dy_step};
    default:
        return (matrix){input, o->tokens, o->hidden, 1};
    }
}

/* The key from which the elements of a row are hashed. */
static uint64_t key_of_row(const matrix *m, int64_t row)
{
    return mix(mix(SEED + 1 + (uint64_t)m->input) + (uint64_t)row);
}

static bool is_negative(uint64_t row_key, int64_t column)
{
    return mix(row_key + (uint64_t)column) >> 63;
}

/* The first column, from `begin` on, whose element in `row` is not 0. */
static int64_t first_column(const matrix *m, int64_t row, int64_t begin)
{
    return begin + (m->step - (row + begin) % m->step) % m->step;
}

void linear_oracle_fill(const linear_oracle *o, linear_input input, linear_tile tile, double *values)
{
    const matrix m = matrix_of(o, input);
    for (int64_t i = 0; i < tile.rows * tile.columns; i++)
        values[i] = 0;
    for (int64_t i = 0; i < tile.rows; i++) {
        const uint64_t key = key_of_row(&m, tile.row + i);
        double *const row = values + i * tile.columns;
        for (int64_t c = first_column(&m, tile.row + i, tile.column); c < tile.column + tile.columns; c += m.step)
            row[c - tile.column] = is_negative(key, c) ? -1 : 1;
    }
}

/* A vector whose numbers at [begin, end) are in `at`; the others are 0. */
typedef struct vector {
    uint64_t *at;
    int64_t begin, end;
} vector;

/* out = m in, for the rows that `out` spans. */
static void multiply(const matrix *m, const vector *in, const vector *out)
{
    for (int64_t r = out->begin; r < out->end; r++) {
        const uint64_t key = key_of_row(m, r);
        uint64_t sum = 0;
        for (int64_t c = first_column(m, r, in->begin); c < in->end; c += m->step)
            sum += is_negative(key, c) ? -in->at[c] : in->at[c];
        out->at[r] = sum;
    }
}

/* out = m^T in, for the columns that `out` spans. */
static void multiply_transposed(const matrix *m, const vector *in, const vector *out)
{
    for (int64_t c = out->begin; c < out->end; c++)
        out->at[c] = 0;
    for (int64_t r = in->begin; r < in->end; r++) {
        const uint64_t key = key_of_row(m, r), of_row = in->at[r];
        for (int64_t c = first_column(m, r, out->begin); c < out->end; c += m->step)
            out->at[c] += is_negative(key, c) ? -of_row : of_row;
    }
}

/* A matrix in a product, possibly transposed. */
typedef struct factor {
    linear_input input;
    bool transposed;
} factor;

#define MOST_FACTORS 3

typedef struct product {
    int count;
    factor factors[MOST_FACTORS];
} product;

static const product products[LINEAR_RESULTS] = {
    [LINEAR_Y1] = {2, {{LINEAR_X, false}, {LINEAR_W1, true}}},
    [LINEAR_Y2] = {3, {{LINEAR_X, false}, {LINEAR_W1, true}, {LINEAR_W2, true}}},
    [LINEAR_DY1] = {2, {{LINEAR_DY, false}, {LINEAR_W2, false}}},
    [LINEAR_DX] = {3, {{LINEAR_DY, false}, {LINEAR_W2, false}, {LINEAR_W1, false}}},
    [LINEAR_DW2] = {3, {{LINEAR_DY, true}, {LINEAR_X, false}, {LINEAR_W1, true}}},
    [LINEAR_DW1] = {3, {{LINEAR_W2, true}, {LINEAR_DY, true}, {LINEAR_X, false}}},
};

/* The length of the longest vector of any product. */
static int64_t longest(const linear_oracle *o)
{
    const int64_t most = o->tokens > o->hidden ? o->tokens : o->hidden;
    return most > o->intermediate ? most : o->intermediate;
}

/* Two vectors that swap: `now` holds the last result, `next` gets the next one. */
typedef struct vectors {
    uint64_t *numbers; /* memory of both; on the heap */
    vector now, next;
} vectors;

static tsr_status vectors_create(const linear_oracle *o, vectors *out)
{
    out->numbers = malloc(2 * (size_t)longest(o) * sizeof *out->numbers);
    if (!out->numbers)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for two vectors of %lld numbers",
                              (long long)longest(o));
    out->now.at = out->numbers;
    out->next.at = out->numbers + longest(o);
    return TSR_OK;
}

/* now = f now, or f^T now if `from_left`, for its elements [begin, end); end < 0: to the last. */
static void apply(const linear_oracle *o, factor f, bool from_left, int64_t begin, int64_t end, vectors *v)
{
    const matrix m = matrix_of(o, f.input);
    const bool transposed = f.transposed != from_left;
    v->next.begin = begin;
    v->next.end = end >= 0 ? end : transposed ? m.columns : m.rows;
    if (transposed)
        multiply_transposed(&m, &v->now, &v->next);
    else
        multiply(&m, &v->now, &v->next);
    const vector last = v->now;
    v->now = v->next;
    v->next = last;
}

/* now = the sums of the tile's rows of the result, weighted by column. */
static void sum_rows(const linear_oracle *o, const product *p, linear_tile tile, vectors *v)
{
    v->now.begin = tile.column;
    v->now.end = tile.column + tile.columns;
    for (int64_t c = v->now.begin; c < v->now.end; c++)
        v->now.at[c] = weight_of_column(c);
    for (int f = p->count - 1; f > 0; f--)
        apply(o, p->factors[f], false, 0, -1, v);
    apply(o, p->factors[0], false, tile.row, tile.row + tile.rows, v);
}

/* now = a row of the result, in the tile's columns. */
static void work_out_row(const linear_oracle *o, const product *p, int64_t row, linear_tile tile, vectors *v)
{
    v->now.begin = row;
    v->now.end = row + 1;
    v->now.at[row] = 1;
    for (int f = 0; f < p->count - 1; f++)
        apply(o, p->factors[f], true, 0, -1, v);
    apply(o, p->factors[p->count - 1], true, tile.column, tile.column + tile.columns, v);
}

/* The weighted sum of a row; false if an element is not an integer within the bound. */
static bool sum_of_row(const linear_oracle *o, linear_tile tile, const double *row, uint64_t *out)
{
    *out = 0;
    for (int64_t i = 0; i < tile.columns; i++) {
        if (!(fabs(row[i]) <= (double)o->bound) || row[i] != (double)(int64_t)row[i])
            return false;
        *out += (uint64_t)(int64_t)row[i] * weight_of_column(tile.column + i);
    }
    return true;
}

static int64_t count_in_row(const linear_oracle *o, const product *p, int64_t row, linear_tile tile,
                            const double *values, vectors *v)
{
    int64_t wrong = 0;
    work_out_row(o, p, row, tile, v);
    for (int64_t i = 0; i < tile.columns; i++)
        wrong += values[i] != (double)(int64_t)v->now.at[tile.column + i];
    return wrong;
}

/* Counts the wrong elements of a tile. `sums` are the right sums of its rows; `v` is scratch. */
static int64_t count_wrong(const linear_oracle *o, const product *p, linear_tile tile, const double *values,
                           const vector *sums, vectors *v)
{
    int64_t wrong = 0, wrong_rows = 0;
    for (int64_t i = 0; i < tile.rows; i++) {
        const double *const row = values + i * tile.columns;
        uint64_t sum;
        if (sum_of_row(o, tile, row, &sum) && sum == sums->at[tile.row + i])
            continue;
        wrong += wrong_rows++ < LINEAR_ORACLE_ROWS ? count_in_row(o, p, tile.row + i, tile, row, v) : 1;
    }
    return wrong;
}

tsr_status linear_oracle_count_wrong(const linear_oracle *o, linear_result result, linear_tile tile,
                                     const double *values, int64_t *wrong)
{
    vectors sums = {.numbers = NULL}, scratch = {.numbers = NULL};
    tsr_status status = vectors_create(o, &sums);
    if (status == TSR_OK)
        status = vectors_create(o, &scratch);
    if (status == TSR_OK) {
        sum_rows(o, &products[result], tile, &sums);
        *wrong = count_wrong(o, &products[result], tile, values, &sums.now, &scratch);
    }
    free(scratch.numbers);
    free(sums.numbers);
    return status;
}
