
#include "comm/engines/mpi/node/mates.h"

#include "base/checked.h"
#include "base/hash.h"
#include "comm/core/clock.h"
#include "comm/engines/mpi/calls/error.h"

#include <tessera/sys/memory.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Groups use this tag later. Nothing is mixed up, since MPI keeps the order of messages from one
 * rank to another. */
#define TAG 0

/* Equal for ranks of one node, different for others. */
typedef struct identity {
    uint64_t name;  /* hash of MPI's name for the processor */
    uint64_t start; /* hash of the kernel's boot id */
    uint64_t processes[2];
} identity;

static uint64_t hash_of(const char *bytes, size_t count)
{
    uint64_t hash = TSR_HASH_SEED;
    for (size_t i = 0; i < count; i++)
        hash = tsr_hash_word(hash, (unsigned char)bytes[i]);
    return hash;
}

static uint64_t hash_start(void)
{
    char id[64];
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t count = read(file, id, sizeof id);
    close(file);
    return count > 0 ? hash_of(id, (size_t)count) : 0;
}

/* Containers of one machine may have the same name, but processes that do not see one another:
 * namespaces tell them apart. */
static tsr_status identify(identity *out)
{
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0;
    struct stat processes = {0};
    TSR_TRY(tsr_mpi_check(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name"));
    const bool numbered = stat("/proc/self/ns/pid", &processes) == 0;
    *out = (identity){.name = hash_of(name, strlen(name)), .start = hash_start()};
    out->processes[0] = numbered ? (uint64_t)processes.st_dev : 0;
    out->processes[1] = numbered ? (uint64_t)processes.st_ino : 0;
    return TSR_OK;
}

static void list_first(const identity *all, int ranks, int *first)
{
    for (int r = 0; r < ranks; r++) {
        int at = r > 0 && memcmp(&all[first[r - 1]], &all[r], sizeof *all) == 0 ? first[r - 1] : 0;
        while (memcmp(&all[at], &all[r], sizeof *all) != 0)
            at++;
        first[r] = at;
    }
}

static tsr_status make_mates(const tsr_mpi_together *together, const int *first, int rank, int ranks,
                             tsr_mpi_mates *mates)
{
    size_t count = 0;
    for (int r = 0; r < ranks; r++)
        count += first[r] == first[rank];
    const size_t lists = tsr_round_up(count * sizeof *mates->ranks, TSR_ALIGNMENT),
                 requests = tsr_round_up(count * sizeof *mates->requests, TSR_ALIGNMENT);
    TSR_TRY(tsr_allocate(together->context, lists + requests + (count + 1) * TSR_MPI_ROW_BYTES, &mates->memory));
    mates->ranks = mates->memory;
    mates->requests = (MPI_Request *)((char *)mates->memory + lists);
    mates->rows = (char *)mates->memory + lists + requests;
    for (int r = 0; r < ranks; r++) {
        if (r == rank)
            mates->place = mates->count;
        if (first[r] == first[rank])
            mates->ranks[mates->count++] = r;
    }
    return TSR_OK;
}

/* Collective: lists the mates of every rank. If a rank has no memory for that, all ranks fail. */
static tsr_status find_mates(const tsr_mpi_together *together, identity *all, int *first, tsr_mpi_mates *out)
{
    identity mine;
    int rank, ranks;
    int64_t able = 0;
    TSR_TRY(tsr_mpi_check(MPI_Comm_rank(out->comm, &rank), "MPI_Comm_rank"));
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(out->comm, &ranks), "MPI_Comm_size"));
    TSR_TRY(identify(&mine));
    TSR_TRY(tsr_mpi_gather_all(together, out->comm, &mine, all, sizeof mine));
    list_first(all, ranks, first);
    const tsr_status made = make_mates(together, first, rank, ranks, out);
    TSR_TRY(tsr_mpi_least(together, out->comm, made == TSR_OK, &able));
    return able ? TSR_OK
                : tsr_status_set(TSR_ERROR_MEMORY, "%s: a rank has no memory for a list of its node's ranks",
                                 together->call);
}

tsr_status tsr_mpi_mates_find(const tsr_mpi_together *together, MPI_Comm comm, int *first, tsr_mpi_mates *out)
{
    int ranks;
    int64_t able = 0;
    void *all = NULL;
    *out = (tsr_mpi_mates){.comm = comm};
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size"));
    const tsr_status made = tsr_allocate(together->context, (size_t)ranks * sizeof(identity), &all);
    tsr_status status = tsr_mpi_least(together, comm, first && made == TSR_OK, &able);
    if (status == TSR_OK && !able)
        status =
            tsr_status_set(TSR_ERROR_MEMORY, "%s: a rank has no memory for a list of %d ranks", together->call, ranks);
    if (status == TSR_OK)
        status = find_mates(together, all, first, out);
    tsr_release(together->context, all);
    return status;
}

void tsr_mpi_mates_free(const tsr_mpi_together *together, tsr_mpi_mates *mates)
{
    tsr_release(together->context, mates->memory);
    *mates = (tsr_mpi_mates){0};
}

static tsr_status test_all(tsr_mpi_mates *mates, int count, bool *done)
{
    *done = true;
    for (int i = 0; i < count; i++) {
        int over = 1;
        if (mates->requests[i] != MPI_REQUEST_NULL)
            TSR_TRY(tsr_mpi_check(MPI_Test(&mates->requests[i], &over, MPI_STATUS_IGNORE), "MPI_Test"));
        *done = *done && over;
    }
    return TSR_OK;
}

/* Waits until the first `count` requests are over. On failure their memory is left to MPI, with the
 * context that it is from. */
static tsr_status await_requests(const tsr_mpi_together *together, tsr_mpi_mates *mates, int count,
                                 tsr_deadline deadline)
{
    bool done = false;
    for (int look = 0; !done; look++) {
        const bool last = tsr_deadline_passed(deadline);
        tsr_status status = test_all(mates, count, &done);
        if (status == TSR_OK && !done && last)
            status = tsr_mpi_say_late(together);
        if (status != TSR_OK) {
            tsr_context_retain(together->context);
            mates->memory = NULL;
            return status;
        }
        if (!done)
            tsr_pause(look);
    }
    return TSR_OK;
}

static tsr_status post_rows(tsr_mpi_mates *mates, int request, int mate, void *rows, size_t bytes, bool receives)
{
    const int peer = mates->ranks[mate], count = (int)bytes;
    MPI_Request *const out = &mates->requests[request];
    return receives ? tsr_mpi_check(MPI_Irecv(rows, count, MPI_BYTE, peer, TAG, mates->comm, out), "MPI_Irecv")
                    : tsr_mpi_check(MPI_Isend(rows, count, MPI_BYTE, peer, TAG, mates->comm, out), "MPI_Isend");
}

/* The part of the first mate: it receives a row from each other mate, and sends all rows to
 * each. */
static tsr_status collect_rows(const tsr_mpi_together *together, tsr_mpi_mates *mates, char *all, size_t bytes,
                               tsr_deadline deadline)
{
    memcpy(all, mates->rows, bytes);
    for (int m = 1; m < mates->count; m++)
        TSR_TRY(post_rows(mates, m - 1, m, all + (size_t)m * bytes, bytes, true));
    TSR_TRY(await_requests(together, mates, mates->count - 1, deadline));
    for (int m = 1; m < mates->count; m++)
        TSR_TRY(post_rows(mates, m - 1, m, all, (size_t)mates->count * bytes, false));
    return await_requests(together, mates, mates->count - 1, deadline);
}

static tsr_status hand_in(const tsr_mpi_together *together, tsr_mpi_mates *mates, char *all, size_t bytes,
                          tsr_deadline deadline)
{
    TSR_TRY(post_rows(mates, 0, 0, mates->rows, bytes, false));
    TSR_TRY(post_rows(mates, 1, 0, all, (size_t)mates->count * bytes, true));
    return await_requests(together, mates, 2, deadline);
}

/* Collective: `*all` becomes one row of `bytes` bytes per mate, in memory of `mates`. */
static tsr_status gather_from_mates(const tsr_mpi_together *together, tsr_mpi_mates *mates, const void *mine,
                                    size_t bytes, const char **all)
{
    const tsr_deadline deadline = tsr_deadline_in(together->timeout_ms);
    char *const rows = mates->rows + TSR_MPI_ROW_BYTES;
    for (int m = 0; m < mates->count; m++)
        mates->requests[m] = MPI_REQUEST_NULL;
    memcpy(mates->rows, mine, bytes);
    *all = rows;
    return mates->place == 0 ? collect_rows(together, mates, rows, bytes, deadline)
                             : hand_in(together, mates, rows, bytes, deadline);
}

tsr_status tsr_mpi_mates_gather(const tsr_mpi_together *together, tsr_mpi_mates *mates, const void *mine, void *all,
                                size_t bytes)
{
    const char *rows;
    TSR_TRY(gather_from_mates(together, mates, mine, bytes, &rows));
    memcpy(all, rows, (size_t)mates->count * bytes);
    return TSR_OK;
}

tsr_status tsr_mpi_mates_least(const tsr_mpi_together *together, tsr_mpi_mates *mates, int64_t mine, int64_t *least)
{
    const char *rows;
    TSR_TRY(gather_from_mates(together, mates, &mine, sizeof mine, &rows));
    *least = mine;
    for (int m = 0; m < mates->count; m++) {
        int64_t theirs;
        memcpy(&theirs, rows + (size_t)m * sizeof theirs, sizeof theirs);
        *least = theirs < *least ? theirs : *least;
    }
    return TSR_OK;
}
