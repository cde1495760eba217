/* Many more ranks than cores: barriers, moves and groups, with one element of each shard checked by
 * the rules. */
#include "drill.h"

#include <tessera/tessera.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 512 };

typedef struct trial {
    drill *d;
    drill_draws shared;
} trial;

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Checks a shard under S(0) of a tensor whose element i is i. */
static void check_chunk(trial *t, const tsr_dtensor *x, int64_t length, int64_t ranks, int64_t rank)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const int64_t part = ceiling(length, ranks), begin = part * rank < length ? part * rank : length;
    const int64_t end = part * (rank + 1) < length ? part * (rank + 1) : length;
    const int32_t *values = local.data;
    if (local.shape[0] != end - begin || (end > begin && (values[0] != begin || values[end - begin - 1] != end - 1)))
        drill_fail(t->d, "rank %lld of %lld has other elements than [%lld, %lld)", (long long)rank, (long long)ranks,
                   (long long)begin, (long long)end);
}

static void check_copy(trial *t, const tsr_dtensor *x, int64_t length)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const int32_t *values = local.data;
    for (int64_t i = 0; i < length; i++)
        if (local.shape[0] != length || values[i] != i) {
            drill_fail(t->d, "a copy has other elements");
            return;
        }
}

/* Moves S(0) -> R -> S(0), and reduces a term of every rank. */
static tsr_status move(trial *t, tsr_comm *comm, tsr_mesh *mesh, drill_draws *draws)
{
    const int64_t ranks = tsr_comm_size(comm), length = 1 + drill_below(draws, 2 * ranks);
    const tsr_placement rows = tsr_shard(0), copy = tsr_replicate(), sum = tsr_partial(TSR_SUM);
    int32_t *values = malloc((size_t)length * sizeof *values);
    if (!values)
        return TSR_ERROR_MEMORY;
    for (int64_t i = 0; i < length; i++)
        values[i] = (int32_t)i;
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_I32, 1, &length);
    tsr_dtensor *all[4] = {NULL};
    tsr_status status = tsr_distribute_tensor(&global, mesh, &sum, NULL, &all[0]);
    if (status == TSR_OK)
        status = tsr_redistribute(all[0], &rows, &all[1]);
    if (status == TSR_OK)
        status = tsr_redistribute(all[1], &copy, &all[2]);
    if (status == TSR_OK)
        status = tsr_redistribute(all[2], &rows, &all[3]);
    if (status == TSR_OK) {
        check_chunk(t, all[1], length, ranks, tsr_comm_rank(comm));
        check_copy(t, all[2], length);
        check_chunk(t, all[3], length, ranks, tsr_comm_rank(comm));
    }
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    free(values);
    return status;
}

static tsr_status work(trial *t, tsr_comm *comm, drill_draws *draws)
{
    const int64_t ranks = tsr_comm_size(comm);
    tsr_mesh *mesh = NULL;
    tsr_status status = tsr_comm_barrier(comm);
    if (status == TSR_OK)
        status = tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = move(t, comm, mesh, draws);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Runs all ranks, then groups of them, then all again. */
static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    trial *t = arg;
    drill_draws draws = t->shared;
    const int groups = 1 + (int)drill_below(&draws, 8), rank = tsr_comm_rank(comm);
    tsr_comm *group = NULL;
    tsr_status status = work(t, comm, &draws);
    if (status == TSR_OK)
        status = tsr_comm_split(comm, rank % groups, -rank, &group);
    if (status == TSR_OK && tsr_comm_size(group) != (tsr_comm_size(comm) - rank % groups + groups - 1) / groups)
        drill_fail(t->d, "a group has %d ranks", tsr_comm_size(group));
    drill_draws own = drill_draws_of(draws.state, (uint64_t)(rank % groups));
    if (status == TSR_OK)
        status = work(t, group, &own);
    tsr_comm_destroy(group);
    return status == TSR_OK ? tsr_comm_barrier(comm) : status;
}

int main(int argc, char **argv)
{
    const drill_about about = {"scale", "512 ranks on two cores make barriers, groups and moves, none of which hangs",
                               20, 300};
    drill *d = drill_begin(argc, argv, &about);
    int64_t index;
    while (drill_next(d, &index)) {
        trial t = {d, drill_draws_of(drill_seed(d), (uint64_t)index)};
        const int ranks = index == 0 ? MOST_RANKS : 1 + (int)drill_below(&t.shared, MOST_RANKS);
        const tsr_status status = tsr_threads_run(ranks, run_rank, &t, NULL);
        if (status != TSR_OK)
            drill_fail(d, "%d ranks: %s: %s", ranks, tsr_status_name(status), tsr_status_message());
    }
    return drill_end(d);
}
