#include "bench/program/peak.h"

#include <tessera/sys/status.h>

#include <stdatomic.h>
#include <stdlib.h>

/* Bytes that a rank has allocated and not released, and the most that it had. */
typedef struct rank_bytes {
    atomic_int_least64_t now, most;
} rank_bytes;

/* Stands in front of the caller's bytes. */
typedef struct block {
    void *memory;
    rank_bytes *owner; /* NULL: allocated by no rank */
    int64_t bytes;
} block;

/* Whose allocations this thread makes; NULL: no rank's. */
static _Thread_local rank_bytes *mine;

static void count(rank_bytes *owner, int64_t bytes)
{
    if (!owner)
        return;
    const int64_t now = atomic_fetch_add(&owner->now, bytes) + bytes;
    int64_t most = atomic_load(&owner->most);
    while (now > most && !atomic_compare_exchange_weak(&owner->most, &most, now))
        ;
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    void *memory;
    /* Both are powers of two, so the caller's bytes are aligned. */
    const size_t front = alignment > 2 * sizeof(block) ? alignment : 64;
    (void)user;
    if (posix_memalign(&memory, front, front + bytes) != 0)
        return NULL;
    char *const at = (char *)memory + front;
    ((block *)at)[-1] = (block){memory, mine, (int64_t)bytes};
    count(mine, (int64_t)bytes);
    return at;
}

static void release(void *user, void *memory, size_t bytes)
{
    const block front = ((block *)memory)[-1];
    (void)user;
    (void)bytes;
    count(front.owner, -front.bytes);
    free(front.memory);
}

typedef struct job {
    const program_case *c;
    const tsr_mesh *like;
    rank_bytes *ranks;
} job;

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    program_side s;
    tsr_kept_sentence kept;
    mine = &j->ranks[tsr_comm_rank(comm)];
    tsr_status status = program_side_make(j->c, comm, j->like, false, &s);
    for (int i = 0; i < 2 && status == TSR_OK; i++)
        status = program_side_run(&s);
    tsr_status_keep(&kept);
    program_side_finish(&s);
    mine = NULL;
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}

tsr_status program_count_peak(const program_case *c, const tsr_mesh *like, int64_t *out)
{
    const int ranks = (int)tsr_mesh_count(like);
    job j = {c, like, calloc((size_t)ranks, sizeof *j.ranks)};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    if (!j.ranks)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the counts of %d ranks", ranks);
    options.allocator = (tsr_allocator){allocate, release, NULL};
    tsr_status status = tsr_context_create(&options, &threads.context);
    if (status == TSR_OK)
        status = tsr_threads_run(ranks, run_rank, &j, &threads);
    tsr_context_destroy(threads.context);
    *out = 0;
    for (int i = 0; i < ranks; i++) {
        const int64_t most = atomic_load(&j.ranks[i].most);
        *out = most > *out ? most : *out;
    }
    free(j.ranks);
    return status;
}
