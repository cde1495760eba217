#include "standin_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upper bound of the queries after which a pending operation of a non-blocking communicator is
 * done. */
#define MOST_LOOKS 4

static ncclComm_t comms;
static standin_clique *cliques;
static uint64_t ids;

ncclResult_t standin_get_unique_id(ncclUniqueId *id)
{
    if (standin_fails("ncclGetUniqueId"))
        return ncclSystemError;
    standin_lock();
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "standin %llu", (unsigned long long)++ids);
    standin_unlock();
    return ncclSuccess;
}

static standin_clique *make_clique(const char *id, int ranks)
{
    const size_t n = (size_t)ranks;
    standin_clique *clique = calloc(1, sizeof *clique);
    *clique = (standin_clique){
        .next = cliques,
        .ranks = ranks,
        .living = 0,
        .members = calloc(n, sizeof *clique->members),
        .sends = calloc(n * n, sizeof *clique->sends),
        .receives = calloc(n * n, sizeof *clique->receives),
        .collectives = calloc(n, sizeof *clique->collectives),
        .splits = calloc(n, sizeof *clique->splits),
    };
    memcpy(clique->id, id, sizeof clique->id);
    cliques = clique;
    return clique;
}

static standin_clique *find_clique(const char *id, int ranks)
{
    for (standin_clique *clique = cliques; clique; clique = clique->next)
        if (memcmp(clique->id, id, sizeof clique->id) == 0)
            return clique;
    return make_clique(id, ranks);
}

static ncclComm_t make_comm(standin_clique *clique, int rank, int device, bool blocking)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    *comm = (struct ncclComm){.next = comms, .clique = clique, .rank = rank, .device = device, .blocking = blocking};
    comms = comm;
    clique->members[rank] = comm;
    clique->joined++;
    clique->living++;
    return comm;
}

static void free_clique(standin_clique *clique)
{
    while (clique->rounds) {
        standin_round *round = clique->rounds;
        clique->rounds = round->next;
        free(round->ops);
        free(round);
    }
    free(clique->members);
    free(clique->sends);
    free(clique->receives);
    free(clique->collectives);
    free(clique->splits);
    free(clique);
}

int standin_free_comms(void)
{
    int left = 0;
    while (comms) {
        ncclComm_t comm = comms;
        comms = comm->next;
        left += !comm->gone;
        if (comm->held)
            standin_free_kernel(comm->held);
        free(comm);
    }
    while (cliques) {
        standin_clique *clique = cliques;
        cliques = clique->next;
        free_clique(clique);
    }
    return left;
}

static bool is_known(ncclComm_t comm)
{
    for (ncclComm_t known = comms; known; known = known->next)
        if (known == comm)
            return true;
    return false;
}

/* True if the communicator exists; else complains: even its state must not be asked. */
static bool is_there(ncclComm_t comm, const char *call)
{
    if (is_known(comm) && !comm->gone)
        return true;
    standin_complain("%s: a communicator that %s", call, is_known(comm) ? "was destroyed or aborted" : "never was");
    return false;
}

bool standin_usable(ncclComm_t comm, const char *call)
{
    if (!is_there(comm, call))
        return false;
    if (comm->pending != STANDIN_READY)
        standin_complain("%s: rank %d's communicator is in progress", call, comm->rank);
    else if (comm->finalized)
        standin_complain("%s: rank %d's communicator was finalized", call, comm->rank);
    return comm->pending == STANDIN_READY && !comm->finalized;
}

static ncclResult_t refuse_duplicates(const standin_clique *clique)
{
    for (int a = 0; a < clique->ranks; a++)
        for (int b = 0; b < a; b++)
            if (clique->members[a]->device == clique->members[b]->device) {
                snprintf(standin.last_error, sizeof standin.last_error,
                         "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", a, b,
                         clique->members[a]->device);
                return ncclInvalidUsage;
            }
    return ncclSuccess;
}

static int place_in_split(const standin_clique *clique, int rank, int *size)
{
    const standin_split *mine = &clique->splits[rank];
    int place = 0;
    *size = 0;
    for (int r = 0; r < clique->ranks; r++) {
        const standin_split *theirs = &clique->splits[r];
        if (theirs->color != mine->color)
            continue;
        ++*size;
        place += theirs->key < mine->key || (theirs->key == mine->key && r < rank);
    }
    return place;
}

/* Makes the communicators of all ranks; called by the last rank that comes to the split. */
static void make_split(standin_clique *clique)
{
    for (int r = 0; r < clique->ranks; r++) {
        const standin_split *mine = &clique->splits[r];
        char id[128] = "";
        int size;
        const int place = place_in_split(clique, r, &size);
        if (mine->color < 0)
            continue;
        snprintf(id, sizeof id, "part %llu of color %d", (unsigned long long)ids, mine->color);
        ncclComm_t made = make_comm(find_clique(id, size), place, clique->members[r]->device, mine->blocking);
        made->pending = mine->blocking ? STANDIN_READY : STANDIN_INIT;
        made->looks = (int)standin_draw(MOST_LOOKS);
        *clique->members[r]->split_out = made;
    }
    ids++;
}

static bool any_gone(const standin_clique *clique)
{
    for (int r = 0; r < clique->ranks; r++)
        if (clique->members[r] && clique->members[r]->gone)
            return true;
    return false;
}

static bool take_split(ncclComm_t comm)
{
    standin_clique *clique = comm->clique;
    standin_split *mine = &clique->splits[comm->rank];
    if (clique->split_came < clique->ranks || (clique->split_taken == 0 && any_gone(clique)))
        return false;
    if (clique->split_taken == 0)
        make_split(clique);
    mine->taken = true;
    if (++clique->split_taken == clique->ranks) {
        memset(clique->splits, 0, (size_t)clique->ranks * sizeof *clique->splits);
        clique->split_came = clique->split_taken = 0;
    }
    return true;
}

/* Does the pending operation if all ranks that it needs have come; true if it is done. */
static bool try_pending(ncclComm_t comm)
{
    standin_clique *clique = comm->clique;
    switch (comm->pending) {
    case STANDIN_INIT:
        if (clique->joined < clique->ranks)
            return false;
        comm->broken = refuse_duplicates(clique);
        break;
    case STANDIN_LAUNCH:
        standin_launch(comm);
        break;
    case STANDIN_SPLIT:
        if (!take_split(comm))
            return false;
        break;
    case STANDIN_FINALIZE:
        standin_drive();
        if (comm->running > 0 || clique->finalizing < clique->ranks)
            return false;
        break;
    default:
        break;
    }
    comm->pending = STANDIN_READY;
    return true;
}

ncclResult_t standin_pend(ncclComm_t comm, standin_pending pending, const char *call)
{
    comm->pending = pending;
    if (!comm->blocking) {
        comm->looks = (int)standin_draw(MOST_LOOKS);
        return ncclInProgress;
    }
    while (!comm->gone && comm->broken == ncclSuccess && !try_pending(comm))
        pthread_cond_wait(&standin.changed, &standin.lock);
    if (comm->gone)
        standin_complain("%s: aborted by another thread while it blocks", call);
    return comm->broken;
}

ncclResult_t standin_comm_get_async_error(ncclComm_t comm, ncclResult_t *error)
{
    if (standin_fails("ncclCommGetAsyncError"))
        return ncclSystemError;
    standin_lock();
    if (!is_there(comm, "ncclCommGetAsyncError")) {
        standin_unlock();
        return ncclInvalidArgument;
    }
    if (comm->pending != STANDIN_READY && comm->broken == ncclSuccess && comm->looks-- <= 0)
        try_pending(comm);
    *error = comm->broken != ncclSuccess ? comm->broken : comm->pending != STANDIN_READY ? ncclInProgress : ncclSuccess;
    standin_unlock();
    return ncclSuccess;
}

ncclResult_t standin_comm_init(ncclComm_t *out, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    if (standin_fails("ncclCommInitRankConfig"))
        return ncclSystemError;
    standin_lock();
    standin_clique *clique = find_clique(id.internal, ranks);
    if (rank < 0 || rank >= ranks || clique->ranks != ranks || clique->members[rank]) {
        standin_complain("ncclCommInitRankConfig: rank %d of %d", rank, ranks);
        standin_unlock();
        return ncclInvalidArgument;
    }
    *out = make_comm(clique, rank, standin_device(), !config || config->blocking != 0);
    pthread_cond_broadcast(&standin.changed);
    const ncclResult_t result = standin_pend(*out, STANDIN_INIT, "ncclCommInitRankConfig");
    standin_unlock();
    return result;
}

ncclResult_t standin_comm_split(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    if (standin_fails("ncclCommSplit"))
        return ncclSystemError;
    standin_lock();
    if (!standin_usable(comm, "ncclCommSplit")) {
        standin_unlock();
        return ncclInvalidUsage;
    }
    if (comm->running > 0)
        standin_complain("ncclCommSplit: %d kernels of rank %d are under way", comm->running, comm->rank);
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        standin_complain("ncclCommSplit: color %d", color);
    if (comm->clique->splits[comm->rank].came)
        standin_complain("ncclCommSplit: rank %d again, before all have taken the last one", comm->rank);
    const bool blocking = !config || config->blocking == NCCL_CONFIG_UNDEF_INT ? comm->blocking : config->blocking != 0;
    comm->clique->splits[comm->rank] = (standin_split){true, false, color, key, blocking};
    comm->clique->split_came++;
    comm->split_out = out;
    *out = NULL;
    pthread_cond_broadcast(&standin.changed);
    const ncclResult_t result = standin_pend(comm, STANDIN_SPLIT, "ncclCommSplit");
    standin_unlock();
    return result;
}

ncclResult_t standin_comm_finalize(ncclComm_t comm)
{
    if (standin_fails("ncclCommFinalize"))
        return ncclSystemError;
    standin_lock();
    if (!standin_usable(comm, "ncclCommFinalize")) {
        standin_unlock();
        return ncclInvalidUsage;
    }
    comm->finalized = true;
    comm->clique->finalizing++;
    pthread_cond_broadcast(&standin.changed);
    const ncclResult_t result = standin_pend(comm, STANDIN_FINALIZE, "ncclCommFinalize");
    standin_unlock();
    return result == ncclInProgress ? ncclSuccess : result;
}

static void end_comm(ncclComm_t comm)
{
    comm->gone = true;
    comm->clique->living--;
    standin.stirred = true;
}

ncclResult_t standin_comm_destroy(ncclComm_t comm)
{
    standin_lock();
    if (!is_there(comm, "ncclCommDestroy")) {
        standin_unlock();
        return ncclInvalidArgument;
    }
    if (comm->broken != ncclSuccess)
        standin_complain("ncclCommDestroy: rank %d's communicator is broken; it is to be aborted", comm->rank);
    if (!comm->finalized) {
        comm->blocking = true;
        comm->finalized = true;
        comm->clique->finalizing++;
        pthread_cond_broadcast(&standin.changed);
        standin_pend(comm, STANDIN_FINALIZE, "ncclCommDestroy");
    } else if (comm->pending != STANDIN_READY) {
        standin_complain("ncclCommDestroy: rank %d's communicator is not finalized yet", comm->rank);
    }
    end_comm(comm);
    standin_unlock();
    return ncclSuccess;
}

/* Ends this communicator's kernels that wait for peers; kernels of peers go on waiting. */
ncclResult_t standin_comm_abort(ncclComm_t comm)
{
    standin_lock();
    if (!is_there(comm, "ncclCommAbort")) {
        standin_unlock();
        return ncclInvalidArgument;
    }
    if (comm->blocking && comm->pending != STANDIN_READY)
        standin_complain("ncclCommAbort: another thread is in a call of rank %d's communicator", comm->rank);
    standin_drop_ops(comm);
    end_comm(comm);
    standin.aborted++;
    standin_unlock();
    return ncclSuccess;
}

void standin_break_network(ncclComm_t comm, ncclResult_t error)
{
    standin_lock();
    for (int r = 0; r < comm->clique->ranks; r++)
        if (comm->clique->members[r])
            comm->clique->members[r]->broken = error;
    standin_unlock();
}

static ncclResult_t ask(ncclComm_t comm, const char *call, int value, int *out)
{
    if (standin_fails(call))
        return ncclSystemError;
    standin_lock();
    const bool there = is_there(comm, call);
    if (there && comm->pending != STANDIN_READY)
        standin_complain("%s: rank %d's communicator is in progress", call, comm->rank);
    standin_unlock();
    *out = value;
    return there ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t standin_comm_count(const ncclComm_t comm, int *count)
{
    return ask(comm, "ncclCommCount", comm->clique->ranks, count);
}

ncclResult_t standin_comm_user_rank(const ncclComm_t comm, int *rank)
{
    return ask(comm, "ncclCommUserRank", comm->rank, rank);
}

ncclResult_t standin_comm_cu_device(const ncclComm_t comm, int *device)
{
    return ask(comm, "ncclCommCuDevice", comm->device, device);
}
