#include "rows_oracle.h"

#include "reference.h"

#include <math.h>
#include <string.h>

static unsigned mix(unsigned a, unsigned b)
{
    unsigned x = a * 2654435761U ^ (b + 1) * 2246822519U;
    x ^= x >> 15;
    x *= 3266489917U;
    return x ^ x >> 13;
}

int64_t rows_count(int round, int rank)
{
    const unsigned drawn = mix((unsigned)round * 16 + (unsigned)rank, 3);
    return drawn % 4 == 0 ? 0 : drawn % ROWS_IDS;
}

/* Half of the ids are among the first few rows, so that many are equal, within ranks and between
 * them. */
int64_t rows_id(int round, int rank, int64_t position, int64_t rows)
{
    const unsigned drawn = mix((unsigned)(round * 16 + rank), 100 + (unsigned)position);
    return drawn % 2 ? drawn / 2 % (unsigned)rows : drawn / 2 % (unsigned)(rows < 3 ? rows : 3);
}

unsigned rows_salt(int round, int rank)
{
    return 1000 + (unsigned)round * 16 + (unsigned)rank;
}

/* The dtype of the parts of a complex one; of others, itself. */
static tsr_dtype part_of(tsr_dtype dtype)
{
    return dtype == TSR_C64 ? TSR_F32 : dtype == TSR_C128 ? TSR_F64 : dtype;
}

static bool is_float(tsr_dtype part)
{
    return tsr_dtype_get(part)->kind == TSR_CLASS_FLOAT;
}

void rows_fill(tsr_dtype dtype, int64_t count, unsigned salt, bool raw, unsigned char *out)
{
    const tsr_dtype part = part_of(dtype);
    const size_t bytes = tsr_dtype_bytes(part);
    const int64_t parts = count * (int64_t)(tsr_dtype_bytes(dtype) / bytes);
    for (int64_t i = 0; i < parts; i++) {
        const unsigned drawn = mix(salt, (unsigned)i), more = mix(drawn, 7);
        unsigned char *const to = out + (size_t)i * bytes;
        if (dtype == TSR_BOOL)
            *to = drawn & 1;
        else if (raw || !is_float(part))
            for (size_t b = 0; b < bytes; b++)
                to[b] = (unsigned char)(b < 4 ? drawn >> (8 * b) : more >> (8 * (b - 4)));
        else
            reference_store(part,
                            drawn % 31 == 0  ? NAN
                            : drawn % 7 == 0 ? -0.0
                                             : ((double)(drawn % 4001) - 2000) / 97,
                            to);
    }
}

bool rows_has_op(tsr_dtype dtype, tsr_rows_op op)
{
    const tsr_dtype_class kind = tsr_dtype_get(dtype)->kind;
    const bool divides = kind == TSR_CLASS_FLOAT || kind == TSR_CLASS_COMPLEX;
    return op == TSR_ROWS_ASSIGN || (op == TSR_ROWS_ADD && kind != TSR_CLASS_BOOL) ||
           (op == TSR_ROWS_MEAN && divides) || (op == TSR_ROWS_MAX && kind != TSR_CLASS_COMPLEX);
}

static double rounded(tsr_dtype part, double x)
{
    return part == TSR_F64 ? x : (double)(float)x;
}

static double larger(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return b > a || (a == b && signbit(a)) ? b : a;
}

static void update_float(tsr_dtype part, tsr_rows_op op, const unsigned char *const *terms, int count,
                         unsigned char *table)
{
    double sum = reference_load(part, terms[0]), most = reference_load(part, table);
    for (int i = 0; i < count; i++) {
        const double term = reference_load(part, terms[i]);
        sum = i == 0 ? term : rounded(part, sum + term);
        most = larger(most, term);
    }
    if (op == TSR_ROWS_MEAN)
        sum = rounded(part, sum / count);
    reference_store(part, op == TSR_ROWS_MAX ? most : rounded(part, reference_load(part, table) + sum), table);
}

static uint64_t load_integer(tsr_dtype dtype, const unsigned char *from)
{
    const size_t bytes = tsr_dtype_bytes(dtype);
    uint64_t bits = 0;
    memcpy(&bits, from, bytes);
    const bool negative = tsr_dtype_get(dtype)->kind == TSR_CLASS_SIGNED && from[bytes - 1] & 0x80;
    return negative && bytes < 8 ? bits | ~UINT64_C(0) << (8 * bytes) : bits;
}

static void update_integer(tsr_dtype dtype, tsr_rows_op op, const unsigned char *const *terms, int count,
                           unsigned char *table)
{
    const bool is_signed = tsr_dtype_get(dtype)->kind == TSR_CLASS_SIGNED;
    uint64_t value = load_integer(dtype, table);
    for (int i = 0; i < count; i++) {
        const uint64_t term = load_integer(dtype, terms[i]);
        if (op == TSR_ROWS_ADD)
            value += term;
        else if (is_signed ? (int64_t)term > (int64_t)value : term > value)
            value = term;
    }
    memcpy(table, &value, tsr_dtype_bytes(dtype));
}

/* Updates one part of an element by those of all rows of its id, `offset` bytes into each. */
static void update_part(tsr_dtype part, tsr_rows_op op, const unsigned char *const *terms, int count, size_t offset,
                        unsigned char *table)
{
    const unsigned char *at[ROWS_RANKS * ROWS_IDS];
    for (int i = 0; i < count; i++)
        at[i] = terms[i] + offset;
    if (op == TSR_ROWS_ASSIGN)
        memcpy(table + offset, at[count - 1], tsr_dtype_bytes(part));
    else if (is_float(part))
        update_float(part, op, at, count, table + offset);
    else
        update_integer(part, op, at, count, table + offset);
}

void rows_update_whole(tsr_dtype dtype, tsr_rows_op op, int64_t rows, int64_t width, int round, int ranks, bool raw,
                       unsigned char *table)
{
    static _Thread_local unsigned char brought[ROWS_RANKS][ROWS_BYTES];
    const size_t row_bytes = (size_t)width * tsr_dtype_bytes(dtype);
    for (int rank = 0; rank < ranks; rank++)
        rows_fill(dtype, rows_count(round, rank) * width, rows_salt(round, rank), raw, brought[rank]);
    for (int64_t row = 0; row < rows; row++) {
        const unsigned char *terms[ROWS_RANKS * ROWS_IDS];
        int count = 0;
        for (int rank = 0; rank < ranks; rank++)
            for (int64_t i = 0; i < rows_count(round, rank); i++)
                if (rows_id(round, rank, i, rows) == row)
                    terms[count++] = brought[rank] + (size_t)i * row_bytes;
        const tsr_dtype part = part_of(dtype);
        for (size_t offset = 0; offset < row_bytes && count > 0; offset += tsr_dtype_bytes(part))
            update_part(part, op, terms, count, offset, table + (size_t)row * row_bytes);
    }
}

int64_t rows_owned(const tsr_layout *layout, int dim, int64_t *out)
{
    tsr_interval owned[64];
    size_t count = 0;
    int64_t length = 0;
    if (tsr_layout_intervals(layout, NULL, dim, owned, 64, &count) != TSR_OK)
        return -1;
    for (size_t i = 0; i < count; i++)
        for (int64_t at = owned[i].begin; at < owned[i].end; at++)
            out[length++] = at;
    return length;
}

int64_t rows_global(const tsr_layout *layout, int64_t local)
{
    int64_t global = 0, scale = 1, owned[64];
    for (int dim = tsr_layout_ndim(layout) - 1; dim >= 0; dim--) {
        const int64_t length = rows_owned(layout, dim, owned);
        global += owned[local % length] * scale;
        local /= length;
        scale *= tsr_layout_shape(layout)[dim];
    }
    return global;
}
