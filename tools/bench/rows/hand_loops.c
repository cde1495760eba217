#include "bench/rows/hand_loops.h"

#include <string.h>

/* Rows that are fetched ahead of the one that is copied, and bytes of a line. */
enum { AHEAD = 16, LINE = 64 };

static const float *row_of(const hand_table *t, int64_t id)
{
    const int64_t owner = id / t->each;
    return t->ranks[owner].table + (id - owner * t->each) * t->width;
}

static void fetch(const float *row, int64_t width)
{
    for (int64_t i = 0; i < width; i += LINE / (int64_t)sizeof *row)
        __builtin_prefetch(row + i);
}

void hand_gather(const hand_table *t, int rank, int ahead)
{
    const hand_rank *const own = &t->ranks[rank];
    for (int64_t i = 0; i < t->batch; i++) {
        if (ahead && i + AHEAD < t->batch)
            fetch(row_of(t, own->ids[i + AHEAD]), t->width);
        memcpy(own->rows + i * t->width, row_of(t, own->ids[i]), (size_t)t->width * sizeof(float));
    }
}

static void change(float *row, const float *by, int64_t width, tsr_rows_op op)
{
    if (op == TSR_ROWS_ASSIGN)
        memcpy(row, by, (size_t)width * sizeof *row);
    for (int64_t i = 0; i < width && op == TSR_ROWS_MAX; i++)
        row[i] = by[i] > row[i] ? by[i] : row[i];
    for (int64_t i = 0; i < width && (op == TSR_ROWS_ADD || op == TSR_ROWS_MEAN); i++)
        row[i] += by[i];
}

void hand_update(const hand_table *t, int rank, tsr_rows_op op)
{
    const int64_t first = rank * t->each;
    for (int from = 0; from < t->count; from++)
        for (int64_t i = 0; i < t->batch; i++) {
            const int64_t at = t->ranks[from].ids[i] - first;
            if (at >= 0 && at < t->each)
                change(t->ranks[rank].table + at * t->width, t->ranks[from].rows + i * t->width, t->width, op);
        }
}
