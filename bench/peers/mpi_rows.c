/* Rows by id over MPI by hand: gathers and updates of a table of f32 that is cut by rows, in three
 * exchanges, of counts (MPI_Alltoall), ids and rows (MPI_Alltoallv).
 *
 * usage: mpirun -n RANKS mpi_rows gather|add|assign uniform|zipf ROWS COLUMNS IDS SAMPLES
 *
 * Table, ids and rows are those of `tessera bench rows`. */
#include "pages.h"
#include "timing.h"

#include <mpi.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each rank has so many lists of ids, which take turns. */
enum { LISTS = 16 };

enum { GATHER, ADD, ASSIGN, OPS };

static const char *const op_names[] = {"gather", "add", "assign"};

typedef struct job {
    int rank, ranks, op;
    bool zipf;
    int64_t rows, width, count; /* of the table, and the ids of a call */
    int64_t each, first, own;   /* rows of a rank, and this rank's first and number */
    float *table, *brought;     /* `brought` gets the rows of a gather */
    int64_t *lists;
    int turn;
    int *sends, *send_at, *receives, *receive_at; /* ids for and of each rank, and where they begin */
    int64_t *sent_ids, *asked;
    int *position; /* in the list, of each of `sent_ids` */
    float *packed, *received;
    MPI_Datatype row;
} job;

/* The draws of tools/bench/rows/rows_bench.c, without duplicates. */
static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

static int64_t draw_id(const job *j, uint64_t *state)
{
    const uint64_t drawn = draw(state);
    if (!j->zipf)
        return (int64_t)(drawn % (uint64_t)j->rows);
    const double share = (double)(drawn % (1 << 24)) / (1 << 24), reached = exp(share * log((double)j->rows + 1)) - 1;
    const uint64_t number = reached < (double)j->rows ? (uint64_t)reached : (uint64_t)j->rows - 1;
    return (int64_t)(number * UINT64_C(2654435761) % (uint64_t)j->rows);
}

static void draw_list(const job *j, int rank, int list, int64_t *ids)
{
    uint64_t state = (uint64_t)(rank * LISTS + list) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int64_t i = 0; i < j->count; i++) {
        if (i > 0)
            (void)draw(&state); /* which says there whether the id is a duplicate */
        ids[i] = draw_id(j, &state);
    }
}

static float row_value(int64_t row)
{
    return (float)(row % 1000);
}

static float brought_value(int rank)
{
    return (float)(1 + rank % 7);
}

/* Ids by their owners, in the order of the list, as rows of the owner. */
static void sort_by_owner(job *j, const int64_t *ids)
{
    memset(j->sends, 0, (size_t)j->ranks * sizeof *j->sends);
    for (int64_t i = 0; i < j->count; i++)
        j->sends[ids[i] / j->each]++;
    for (int p = 0, at = 0; p < j->ranks; at += j->sends[p++])
        j->send_at[p] = at;
    for (int64_t i = 0; i < j->count; i++) {
        const int64_t owner = ids[i] / j->each;
        const int at = j->send_at[owner]++;
        j->sent_ids[at] = ids[i] - owner * j->each;
        j->position[at] = (int)i;
    }
    for (int p = 0; p < j->ranks; p++)
        j->send_at[p] -= j->sends[p];
}

/* Tells owners which rows are asked for; returns the number that this rank is asked for. */
static int exchange_ids(job *j, const int64_t *ids)
{
    sort_by_owner(j, ids);
    MPI_Alltoall(j->sends, 1, MPI_INT, j->receives, 1, MPI_INT, MPI_COMM_WORLD);
    int asked = 0;
    for (int p = 0; p < j->ranks; asked += j->receives[p++])
        j->receive_at[p] = asked;
    MPI_Alltoallv(j->sent_ids, j->sends, j->send_at, MPI_INT64_T, j->asked, j->receives, j->receive_at, MPI_INT64_T,
                  MPI_COMM_WORLD);
    return asked;
}

static void copy_row(const job *j, float *to, const float *from)
{
    memcpy(to, from, (size_t)j->width * sizeof *to);
}

static void gather(job *j, const int64_t *ids)
{
    const int asked = exchange_ids(j, ids);
    for (int i = 0; i < asked; i++)
        copy_row(j, j->packed + i * j->width, j->table + j->asked[i] * j->width);
    MPI_Alltoallv(j->packed, j->receives, j->receive_at, j->row, j->received, j->sends, j->send_at, j->row,
                  MPI_COMM_WORLD);
    for (int64_t i = 0; i < j->count; i++)
        copy_row(j, j->brought + j->position[i] * j->width, j->received + i * j->width);
}

static void update(job *j, const int64_t *ids)
{
    const int asked = exchange_ids(j, ids);
    for (int64_t i = 0; i < j->count; i++)
        copy_row(j, j->packed + i * j->width, j->brought + j->position[i] * j->width);
    MPI_Alltoallv(j->packed, j->sends, j->send_at, j->row, j->received, j->receives, j->receive_at, j->row,
                  MPI_COMM_WORLD);
    for (int i = 0; i < asked; i++) {
        float *const restrict to = j->table + j->asked[i] * j->width;
        const float *const from = j->received + i * j->width;
        if (j->op == ASSIGN)
            copy_row(j, to, from);
        for (int64_t c = 0; c < j->width && j->op == ADD; c++)
            to[c] += from[c];
    }
}

static void call(job *j)
{
    const int64_t *const ids = j->lists + j->turn * j->count;
    j->turn = (j->turn + 1) % LISTS;
    if (j->op == GATHER)
        gather(j, ids);
    else
        update(j, ids);
}

static void fill(job *j)
{
    for (int64_t i = 0; i < j->own * j->width; i++)
        j->table[i] = row_value(j->first + i / j->width);
    for (int64_t i = 0; i < j->count * j->width; i++)
        j->brought[i] = brought_value(j->rank);
}

static void *allocate(int64_t elements, size_t size)
{
    void *const at = allocate_pages(((size_t)elements + 1) * size);
    if (!at)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(at, 0, ((size_t)elements + 1) * size);
    return at;
}

static void start(job *j)
{
    const int64_t most = j->ranks * j->count; /* all ranks may ask one */
    j->each = (j->rows + j->ranks - 1) / j->ranks;
    j->first = j->rank * j->each < j->rows ? j->rank * j->each : j->rows;
    j->own = j->rows - j->first < j->each ? j->rows - j->first : j->each;
    j->table = allocate(j->own * j->width, sizeof *j->table);
    j->brought = allocate(j->count * j->width, sizeof *j->brought);
    j->lists = allocate(LISTS * j->count, sizeof *j->lists);
    j->sends = allocate(4 * (int64_t)j->ranks, sizeof *j->sends);
    j->send_at = j->sends + j->ranks;
    j->receives = j->send_at + j->ranks;
    j->receive_at = j->receives + j->ranks;
    j->sent_ids = allocate(j->count, sizeof *j->sent_ids);
    j->asked = allocate(most, sizeof *j->asked);
    j->position = allocate(j->count, sizeof *j->position);
    j->packed = allocate(most * j->width, sizeof *j->packed);
    j->received = allocate(most * j->width, sizeof *j->received);
    MPI_Type_contiguous((int)j->width, MPI_FLOAT, &j->row);
    MPI_Type_commit(&j->row);
    for (int list = 0; list < LISTS; list++)
        draw_list(j, j->rank, list, j->lists + list * j->count);
    fill(j);
}

static void finish(job *j)
{
    MPI_Type_free(&j->row);
    free(j->table);
    free(j->brought);
    free(j->lists);
    free(j->sends);
    free(j->sent_ids);
    free(j->asked);
    free(j->position);
    free(j->packed);
    free(j->received);
}

/* Wrong elements of gathered rows, of the first list. */
static long long count_wrong_rows(const job *j)
{
    long long wrong = 0;
    for (int64_t i = 0; i < j->count * j->width; i++)
        wrong += j->brought[i] != row_value(j->lists[i / j->width]);
    return wrong;
}

/* Wrong elements of the table after an update with the first list of each rank. */
static long long count_wrong_table(const job *j)
{
    float *const wanted = allocate(j->own, sizeof *wanted);
    int64_t *const ids = allocate(j->count, sizeof *ids);
    long long wrong = 0;
    for (int64_t i = 0; i < j->own; i++)
        wanted[i] = row_value(j->first + i);
    for (int rank = 0; rank < j->ranks; rank++) {
        draw_list(j, rank, 0, ids);
        for (int64_t i = 0; i < j->count; i++) {
            const int64_t at = ids[i] - j->first;
            if (at >= 0 && at < j->own)
                wanted[at] = brought_value(rank) + (j->op == ADD ? wanted[at] : 0);
        }
    }
    for (int64_t i = 0; i < j->own * j->width; i++)
        wrong += j->table[i] != wanted[i / j->width];
    free(wanted);
    free(ids);
    return wrong;
}

/* Calls once more on a table and rows that are known, and compares. */
static long long count_wrong(job *j)
{
    long long wrong, all;
    fill(j);
    j->turn = 0;
    call(j);
    wrong = j->op == GATHER ? count_wrong_rows(j) : count_wrong_table(j);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Seconds of a call on the slowest rank, the mean of `calls`. */
static double time_calls(job *j, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = clock_seconds();
    for (int i = 0; i < calls; i++)
        call(j);
    double seconds = (clock_seconds() - begin) / calls;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static void run(job *j, int samples)
{
    double *const seconds = malloc((size_t)samples * sizeof *seconds);
    if (!seconds)
        MPI_Abort(MPI_COMM_WORLD, 1);
    start(j);
    int calls = 1;
    time_calls(j, calls);
    for (int i = 0; i <= WARM_LOOPS; i++)
        calls = calls_in_sample(time_calls(j, calls));
    for (int i = 0; i < samples; i++)
        seconds[i] = time_calls(j, calls);
    const long long wrong = count_wrong(j);
    if (j->rank == 0)
        print_answer(seconds, samples, wrong);
    finish(j);
    free(seconds);
}

static bool read_arguments(char **given, job *j, int *samples)
{
    for (j->op = 0; j->op < OPS && strcmp(given[1], op_names[j->op]) != 0;)
        j->op++;
    j->zipf = strcmp(given[2], "zipf") == 0;
    j->rows = atoll(given[3]);
    j->width = atoll(given[4]);
    j->count = atoll(given[5]);
    *samples = atoi(given[6]);
    return j->op < OPS && (j->zipf || strcmp(given[2], "uniform") == 0) && j->rows > 0 && j->width > 0 &&
           j->count > 0 && *samples > 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    job j = {0};
    int samples = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    const bool understood = argc == 7 && read_arguments(argv, &j, &samples);
    if (understood)
        run(&j, samples);
    else if (j.rank == 0)
        fprintf(stderr, "usage: mpirun -n RANKS mpi_rows gather|add|assign uniform|zipf ROWS COLUMNS IDS SAMPLES\n");
    MPI_Finalize();
    return understood ? 0 : 2;
}
