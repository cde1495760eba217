/* Measures one move of a ROWS x COLUMNS f32 tensor by MPI: mpirun -n RANKS mpi_moves WAY ROWS
 * COLUMNS SAMPLES. RANKS must divide both sizes. */
#include "pages.h"
#include "reference.h"
#include "timing.h"

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

/* One rank's side. Row blocks are S(0), column blocks S(1). */
typedef struct move {
    int rank, ranks;
    int rows, columns;
    float *src, *dst;
    float *packed; /* pack+alltoall: (ranks, rows / ranks, columns / ranks); alltoall+add: all ranks' terms of this
                      rank's row block */
    MPI_Datatype *sends, *receives; /* alltoallw: a box for each peer */
    int *ones, *zeros, *counts;
} move;

static int block_rows(const move *m)
{
    return m->rows / m->ranks;
}

static int block_columns(const move *m)
{
    return m->columns / m->ranks;
}

static MPI_Datatype box(int rows, int columns, int box_rows, int box_columns, int row, int column)
{
    MPI_Datatype type;
    MPI_Type_create_subarray(2, (int[]){rows, columns}, (int[]){box_rows, box_columns}, (int[]){row, column},
                             MPI_ORDER_C, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void prepare_alltoallw(move *m)
{
    const int r = block_rows(m), c = block_columns(m);
    for (int p = 0; p < m->ranks; p++) {
        m->sends[p] = box(r, m->columns, r, c, 0, p * c);
        m->receives[p] = box(m->rows, c, r, c, p * r, 0);
    }
}

static void finish_alltoallw(move *m)
{
    for (int p = 0; p < m->ranks; p++) {
        MPI_Type_free(&m->sends[p]);
        MPI_Type_free(&m->receives[p]);
    }
}

static void run_alltoallw(move *m)
{
    MPI_Alltoallw(m->src, m->ones, m->zeros, m->sends, m->dst, m->ones, m->zeros, m->receives, MPI_COMM_WORLD);
}

/* A peer's part consists of whole rows of the destination, so it needs no unpacking. */
static void run_pack_alltoall(move *m)
{
    const int r = block_rows(m), c = block_columns(m);
    float *to = m->packed;
    for (int p = 0; p < m->ranks; p++)
        for (int row = 0; row < r; row++, to += c)
            memcpy(to, m->src + (size_t)row * (size_t)m->columns + (size_t)p * (size_t)c, (size_t)c * sizeof *to);
    MPI_Alltoall(m->packed, r * c, MPI_FLOAT, m->dst, r * c, MPI_FLOAT, MPI_COMM_WORLD);
}

static void run_allgather(move *m)
{
    const int count = block_rows(m) * m->columns;
    MPI_Allgather(m->src, count, MPI_FLOAT, m->dst, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void run_reduce_scatter(move *m)
{
    MPI_Reduce_scatter(m->src, m->dst, m->counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void run_reduce_scatter_block(move *m)
{
    MPI_Reduce_scatter_block(m->src, m->dst, block_rows(m) * m->columns, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void run_allreduce(move *m)
{
    MPI_Allreduce(m->src, m->dst, m->rows * m->columns, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Sums `ranks` contiguous terms of `count` elements each, in the order of the ranks. */
static void add(float *restrict to, const float *restrict terms, size_t count, int ranks)
{
    if (ranks == 1) {
        memcpy(to, terms, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = terms[i] + terms[count + i];
    for (int p = 2; p < ranks; p++)
        for (size_t i = 0; i < count; i++)
            to[i] += terms[(size_t)p * count + i];
}

/* Exchanges the terms, and writes the sum of this rank's row block to `to`. */
static void alltoall_and_add(move *m, float *to)
{
    const int count = block_rows(m) * m->columns;
    MPI_Alltoall(m->src, count, MPI_FLOAT, m->packed, count, MPI_FLOAT, MPI_COMM_WORLD);
    add(to, m->packed, (size_t)count, m->ranks);
}

static void run_alltoall_add(move *m)
{
    alltoall_and_add(m, m->dst);
}

static void run_alltoall_add_allgather(move *m)
{
    const int count = block_rows(m) * m->columns;
    alltoall_and_add(m, m->dst + (size_t)m->rank * (size_t)count);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, m->dst, count, MPI_FLOAT, MPI_COMM_WORLD);
}

enum { ROW_BLOCK, COLUMN_BLOCK, WHOLE, TERM };

static const struct way {
    const char *name;
    int from, to;
    void (*prepare)(move *), (*run)(move *), (*finish)(move *);
} ways[] = {
    {"alltoallw", ROW_BLOCK, COLUMN_BLOCK, prepare_alltoallw, run_alltoallw, finish_alltoallw},
    {"pack+alltoall", ROW_BLOCK, COLUMN_BLOCK, NULL, run_pack_alltoall, NULL},
    {"allgather", ROW_BLOCK, WHOLE, NULL, run_allgather, NULL},
    {"reduce_scatter", TERM, ROW_BLOCK, NULL, run_reduce_scatter, NULL},
    {"reduce_scatter_block", TERM, ROW_BLOCK, NULL, run_reduce_scatter_block, NULL},
    {"allreduce", TERM, WHOLE, NULL, run_allreduce, NULL},
    {"alltoall+add", TERM, ROW_BLOCK, NULL, run_alltoall_add, NULL},
    {"alltoall+add+allgather", TERM, WHOLE, NULL, run_alltoall_add_allgather, NULL},
};

static const struct way *find_way(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

/* The size of a shard, and the row and column at which it begins. */
typedef struct shard {
    int rows, columns, row, column;
} shard;

static shard shard_of(const move *m, int kind)
{
    if (kind == ROW_BLOCK)
        return (shard){block_rows(m), m->columns, m->rank * block_rows(m), 0};
    if (kind == COLUMN_BLOCK)
        return (shard){m->rows, block_columns(m), 0, m->rank * block_columns(m)};
    return (shard){m->rows, m->columns, 0, 0};
}

static int64_t global_index(const move *m, const shard *s, int row, int column)
{
    return (int64_t)(s->row + row) * m->columns + s->column + column;
}

static void fill(move *m, int kind)
{
    const shard s = shard_of(m, kind);
    float *at = m->src;
    for (int row = 0; row < s.rows; row++)
        for (int column = 0; column < s.columns; column++) {
            const int64_t index = global_index(m, &s, row, column);
            *at++ = kind == TERM ? reference_term(index, m->rank) : reference_value(index);
        }
}

static long long count_wrong(const move *m, int from, int to)
{
    const shard s = shard_of(m, to);
    const float *at = m->dst;
    long long wrong = 0, all;
    for (int row = 0; row < s.rows; row++)
        for (int column = 0; column < s.columns; column++, at++) {
            const int64_t index = global_index(m, &s, row, column);
            wrong += *at != (from == TERM ? reference_sum(index, m->ranks) : reference_value(index));
        }
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Seconds of a call on the slowest rank, the mean of `calls`. */
static double time_calls(move *m, const struct way *way, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = clock_seconds();
    for (int i = 0; i < calls; i++)
        way->run(m);
    double seconds = (clock_seconds() - start) / calls;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static float *allocate(const shard *s)
{
    const size_t bytes = (size_t)s->rows * (size_t)s->columns * sizeof(float);
    float *const at = allocate_pages(bytes);
    if (!at)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(at, 0, bytes);
    return at;
}

static void start(move *m, const struct way *way)
{
    const shard from = shard_of(m, way->from), to = shard_of(m, way->to);
    const size_t n = (size_t)m->ranks;
    m->src = allocate(&from);
    m->dst = allocate(&to);
    m->packed = allocate(&from);
    m->sends = malloc(2 * n * sizeof *m->sends);
    m->ones = malloc(3 * n * sizeof *m->ones);
    if (!m->sends || !m->ones)
        MPI_Abort(MPI_COMM_WORLD, 1);
    m->receives = m->sends + n;
    m->zeros = m->ones + n;
    m->counts = m->zeros + n;
    for (size_t p = 0; p < n; p++) {
        m->ones[p] = 1;
        m->zeros[p] = 0;
        m->counts[p] = block_rows(m) * m->columns;
    }
    fill(m, way->from);
    if (way->prepare)
        way->prepare(m);
}

static void finish(move *m, const struct way *way)
{
    if (way->finish)
        way->finish(m);
    free(m->src);
    free(m->dst);
    free(m->packed);
    free(m->sends);
    free(m->ones);
}

/* Warms up, and returns how many calls fill a sample. All ranks use the slowest rank's time, so
 * they return the same number. */
static int warm_up(move *m, const struct way *way)
{
    int calls = 1;
    time_calls(m, way, calls);
    for (int i = 0; i <= WARM_LOOPS; i++)
        calls = calls_in_sample(time_calls(m, way, calls));
    return calls;
}

static void run(move *m, const struct way *way, int samples)
{
    double *const seconds = malloc((size_t)samples * sizeof *seconds);
    if (!seconds)
        MPI_Abort(MPI_COMM_WORLD, 1);
    start(m, way);
    const int calls = warm_up(m, way);
    for (int i = 0; i < samples; i++)
        seconds[i] = time_calls(m, way, calls);
    const long long wrong = count_wrong(m, way->from, way->to);
    if (m->rank == 0)
        print_answer(seconds, samples, wrong);
    finish(m, way);
    free(seconds);
}

static const char *complaint(const move *m, int samples)
{
    if (samples < 1 || m->rows < 1 || m->columns < 1)
        return "usage: mpirun -n RANKS mpi_moves WAY ROWS COLUMNS SAMPLES";
    if (m->rows % m->ranks != 0 || m->columns % m->ranks != 0)
        return "mpi_moves moves tensors whose rows and columns divide by the ranks";
    return NULL;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    move m = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.ranks);
    const struct way *const way = argc == 5 ? find_way(argv[1]) : NULL;
    m.rows = way ? atoi(argv[2]) : 0;
    m.columns = way ? atoi(argv[3]) : 0;
    const int samples = way ? atoi(argv[4]) : 0;
    const char *const refused = complaint(&m, samples);
    if (!refused)
        run(&m, way, samples);
    else if (m.rank == 0)
        fprintf(stderr, "%s\n", refused);
    MPI_Finalize();
    return !refused ? 0 : 2;
}
