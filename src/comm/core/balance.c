#include "comm/core/balance.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "comm/core/agree.h"
#include "comm/core/arrays.h"

#include <stdint.h>
#include <stdio.h>

/* Sizes that a rank tells each peer in one exchange. */
#define WINDOW 30

/* What one rank tells a peer in one exchange: how many messages it sends there, and the sizes of
 * some of them. */
typedef struct window {
    int64_t count; /* of all messages to this peer, not of `sizes` */
    int64_t sizes[WINDOW];
} window;

/* What a rank has found in a window; also the verdict of rank 0 about the findings of all ranks. */
typedef struct finding {
    int64_t found, more; /* `found`: a mismatch; `more`: there are messages after this window */
    char words[240];
} finding;

static uint64_t hash_of(int from, int to, size_t nth, int64_t size)
{
    uint64_t hash = tsr_hash_word(TSR_HASH_SEED, (uint64_t)from);
    hash = tsr_hash_word(hash, (uint64_t)to);
    hash = tsr_hash_word(hash, (uint64_t)nth);
    return tsr_hash_word(hash, (uint64_t)size);
}

static uint64_t sum_sends(tsr_comm *comm, const tsr_message *list, size_t count)
{
    uint64_t sum = 0;
    tsr_cursors_rewind(comm);
    for (size_t i = 0; i < count; i++)
        sum += hash_of(comm->rank, list[i].peer, comm->cursors[list[i].peer]++, (int64_t)list[i].bytes);
    return sum;
}

static uint64_t sum_receives(tsr_comm *comm, const tsr_message *list, size_t count)
{
    uint64_t sum = 0;
    tsr_cursors_rewind(comm);
    for (size_t i = 0; i < count; i++)
        sum += hash_of(list[i].peer, comm->rank, comm->cursors[list[i].peer]++, (int64_t)list[i].bytes);
    return sum;
}

uint64_t tsr_balance_of(tsr_comm *comm, const tsr_sizes *mine)
{
    if (!mine->send_counts)
        return sum_sends(comm, mine->sends, mine->send_count) - sum_receives(comm, mine->receives, mine->receive_count);
    uint64_t sum = 0;
    for (int r = 0; r < comm->size; r++)
        sum += hash_of(comm->rank, r, 0, mine->send_counts[r]) - hash_of(r, comm->rank, 0, mine->receive_counts[r]);
    return sum;
}

/* The sizes of the messages to `peer` (with `receives`: expected from it), of those from number
 * `first` on that a window holds. */
static window list_sizes(const tsr_sizes *sizes, bool receives, int peer, int64_t first)
{
    const tsr_message *list = receives ? sizes->receives : sizes->sends;
    const size_t count = receives ? sizes->receive_count : sizes->send_count;
    window w = {0};
    if (sizes->send_counts) {
        w.sizes[w.count++] = (receives ? sizes->receive_counts : sizes->send_counts)[peer];
        return w;
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].peer != peer)
            continue;
        if (w.count >= first && w.count < first + WINDOW)
            w.sizes[w.count - first] = (int64_t)list[i].bytes;
        w.count++;
    }
    return w;
}

/* Returns true if it found a mismatch in this window, with the words in `out`. */
static bool compare_windows(const tsr_comm *comm, const tsr_sizes *sizes, int peer, int64_t first, const window *sent,
                            finding *out)
{
    const window wanted = list_sizes(sizes, true, peer, first);
    const int64_t most = sent->count > wanted.count ? sent->count : wanted.count;
    const int here = tsr_comm_name(comm, comm->rank), there = tsr_comm_name(comm, peer);
    for (int64_t i = first; i < most && i < first + WINDOW; i++) {
        if (i >= sent->count)
            snprintf(out->words, sizeof out->words, "%s: rank %d expects %lld %s from rank %d, which sends 0 more",
                     sizes->caller, here, (long long)wanted.sizes[i - first], sizes->unit, there);
        else if (i >= wanted.count)
            snprintf(out->words, sizeof out->words, "%s: rank %d sends %lld %s to rank %d, which expects 0 more",
                     sizes->caller, there, (long long)sent->sizes[i - first], sizes->unit, here);
        else if (sent->sizes[i - first] != wanted.sizes[i - first])
            snprintf(out->words, sizeof out->words, "%s: rank %d sends %lld %s to rank %d, which expects %lld",
                     sizes->caller, there, (long long)sent->sizes[i - first], sizes->unit, here,
                     (long long)wanted.sizes[i - first]);
        else
            continue;
        return true;
    }
    out->more |= most > first + WINDOW;
    return false;
}

static tsr_status swap_windows(tsr_comm *comm, const tsr_sizes *mine, int64_t first, window *windows)
{
    size_t count = 0;
    window *const out = windows + comm->size;
    tsr_message *sends = comm->messages, *receives = comm->messages + comm->size;
    for (int r = 0; r < comm->size; r++) {
        out[r] = list_sizes(mine, false, r, first);
        if (r == comm->rank)
            windows[r] = out[r];
        if (r == comm->rank)
            continue;
        sends[count] = (tsr_message){r, &out[r], sizeof *out};
        receives[count++] = (tsr_message){r, &windows[r], sizeof *windows};
    }
    return comm->engine.messages.exchange(comm->self, sends, count, receives, count, tsr_device_host(), NULL);
}

static void judge_findings(const tsr_comm *comm, const finding *all, finding *verdict)
{
    *verdict = (finding){0};
    for (int r = comm->size - 1; r >= 0; r--) {
        const int64_t more = verdict->more | all[r].more;
        if (all[r].found)
            *verdict = all[r];
        verdict->more = more;
    }
}

static tsr_status look_through(tsr_comm *comm, const tsr_sizes *mine, int64_t first, window *windows, finding *all,
                               finding *verdict)
{
    finding own = {0};
    TSR_TRY(swap_windows(comm, mine, first, windows));
    for (int r = 0; r < comm->size && !own.found; r++)
        own.found = compare_windows(comm, mine, r, first, &windows[r], &own);
    TSR_TRY(tsr_message_to_root(comm, &own, all, sizeof own));
    if (comm->rank == 0)
        judge_findings(comm, all, verdict);
    return tsr_message_from_root(comm, verdict, sizeof *verdict);
}

static tsr_status look_through_all(tsr_comm *comm, const tsr_sizes *mine, window *windows, finding *all)
{
    finding verdict = {.more = 1};
    for (int64_t first = 0; verdict.more && !verdict.found; first += WINDOW)
        TSR_TRY(look_through(comm, mine, first, windows, all, &verdict));
    if (verdict.found)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s", verdict.words);
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: ranks do not expect what is sent, but no single message differs",
                          mine->caller);
}

static void describe_caller(const void *arg, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s", (const char *)arg);
}

tsr_status tsr_balance_explain(tsr_comm *comm, const tsr_sizes *mine)
{
    const size_t ranks = (size_t)comm->size;
    void *memory = NULL;
    const tsr_status local = tsr_allocate(comm->context, ranks * (2 * sizeof(window) + sizeof(finding)), &memory);
    tsr_status status = tsr_comm_agree(comm, TSR_HASH_SEED, local, describe_caller, mine->caller);
    if (status == TSR_OK)
        status = look_through_all(comm, mine, memory, (finding *)((window *)memory + 2 * ranks));
    tsr_release(comm->context, memory);
    return status;
}
