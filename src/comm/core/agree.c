/*
 * Over a direct engine ranks agree in a call (call.h) that does nothing else. Over a message engine
 * every rank sends 32 bytes to rank 0, and rank 0 sends its verdict to every rank. Only if a rank
 * failed or ranks disagree, words follow. Every rank calls the engine's exchange equally often,
 * also where it has no message to send or receive.
 */
#include "comm/core/agree.h"

#include "base/hash.h"
#include "comm/core/call.h"
#include "comm/core/object.h"
#include "comm/core/traits.h"

#include <tessera/sys/log.h>

#include <stdio.h>
#include <string.h>

#define WORDS 512

typedef enum outcome { AGREED, FAILED, DISAGREED } outcome;

typedef struct verdict {
    int64_t outcome;
    int64_t rank;     /* the rank that failed, or that disagrees with rank 0 */
    int64_t status;   /* the status of the rank that failed */
    int64_t unable;   /* not 0: at least one rank is unable */
    uint64_t balance; /* the sum over all ranks */
} verdict;

tsr_status tsr_message_to_root(tsr_comm *comm, const void *mine, void *all, size_t bytes)
{
    tsr_message *messages = comm->messages;
    if (comm->rank > 0) {
        messages[0] = (tsr_message){0, (void *)mine, bytes};
        return comm->engine.messages.exchange(comm->self, messages, 1, NULL, 0, tsr_device_host(), NULL);
    }
    memcpy(all, mine, bytes);
    for (int r = 1; r < comm->size; r++)
        messages[r - 1] = (tsr_message){r, (char *)all + (size_t)r * bytes, bytes};
    return comm->engine.messages.exchange(comm->self, NULL, 0, messages, (size_t)comm->size - 1, tsr_device_host(),
                                          NULL);
}

tsr_status tsr_message_from_root(tsr_comm *comm, void *data, size_t bytes)
{
    tsr_message *messages = comm->messages;
    for (int r = 1; r < comm->size; r++)
        messages[r - 1] = (tsr_message){comm->rank == 0 ? r : 0, data, bytes};
    if (comm->rank > 0)
        return comm->engine.messages.exchange(comm->self, NULL, 0, messages, 1, tsr_device_host(), NULL);
    return comm->engine.messages.exchange(comm->self, messages, (size_t)comm->size - 1, NULL, 0, tsr_device_host(),
                                          NULL);
}

static tsr_status brought_by(const tsr_comm *comm, int rank)
{
    return (tsr_status)comm->agreements[rank].status;
}

static verdict judge_agreements(const tsr_comm *comm)
{
    const tsr_agreement *brought = comm->agreements;
    int64_t unable = 0;
    uint64_t balance = 0;
    const int failed = tsr_find_failed(comm, brought_by);
    if (failed >= 0)
        return (verdict){.outcome = FAILED, .rank = failed, .status = brought[failed].status};
    for (int r = 1; r < comm->size; r++)
        if (brought[r].fingerprint != brought[0].fingerprint)
            return (verdict){.outcome = DISAGREED, .rank = r};
    for (int r = 0; r < comm->size; r++) {
        unable |= brought[r].unable;
        balance += brought[r].balance;
    }
    return (verdict){.outcome = AGREED, .unable = unable, .balance = balance};
}

/* Brings the words of rank `from` to rank 0. Every rank calls this. */
static tsr_status fetch_words(tsr_comm *comm, int from, char *words)
{
    if (from == 0)
        return TSR_OK;
    tsr_message message = {comm->rank == 0 ? from : 0, words, WORDS};
    const size_t sends = comm->rank == from, receives = comm->rank == 0;
    return comm->engine.messages.exchange(comm->self, sends ? &message : NULL, sends, receives ? &message : NULL,
                                          receives, tsr_device_host(), NULL);
}

static tsr_status explain_failure(tsr_comm *comm, int failed, tsr_status cause, tsr_status local)
{
    char words[WORDS] = "";
    if (comm->rank == failed)
        snprintf(words, sizeof words, "%s", tsr_status_message());
    TSR_TRY(fetch_words(comm, failed, words));
    TSR_TRY(tsr_message_from_root(comm, words, sizeof words));
    return tsr_status_yields(local, cause) ? tsr_peer_failed(tsr_comm_name(comm, failed), words) : local;
}

static tsr_status explain_disagreement(tsr_comm *comm, int odd, tsr_call_describe *describe, const void *arg)
{
    char words[2][WORDS] = {"", ""}; /* of rank 0, and of rank `odd` */
    if (comm->rank == 0)
        describe(arg, words[0], WORDS);
    if (comm->rank == odd)
        describe(arg, words[1], WORDS);
    TSR_TRY(fetch_words(comm, odd, words[1]));
    TSR_TRY(tsr_message_from_root(comm, words, sizeof words));
    return tsr_disagreement(tsr_comm_name(comm, 0), words[0], tsr_comm_name(comm, odd), words[1]);
}

static tsr_status explain_verdict(tsr_comm *comm, const verdict *found, tsr_status local, tsr_call_describe *describe,
                                  const void *arg)
{
    const int rank = (int)found->rank;
    const tsr_status status = found->outcome == FAILED ? explain_failure(comm, rank, (tsr_status)found->status, local)
                                                       : explain_disagreement(comm, rank, describe, arg);
    tsr_log(comm->context, TSR_LOG_WARN, "rank %d of %d: %s", comm->rank, comm->size, tsr_status_message());
    return status;
}

/* Rank 0 judges what all ranks bring; `*found` becomes its verdict on every rank. */
static tsr_status exchange_verdict(tsr_comm *comm, const tsr_agreement *mine, verdict *found)
{
    TSR_TRY(tsr_message_to_root(comm, mine, comm->agreements, sizeof *mine));
    if (comm->rank == 0)
        *found = judge_agreements(comm);
    return tsr_message_from_root(comm, found, sizeof *found);
}

static tsr_status agree_by_messages(tsr_comm *comm, const tsr_agreement *mine, bool *able, uint64_t *balance,
                                    tsr_call_describe *describe, const void *arg)
{
    verdict found = {.outcome = AGREED};
    TSR_TRY(exchange_verdict(comm, mine, &found));
    if (found.outcome != AGREED)
        return explain_verdict(comm, &found, (tsr_status)mine->status, describe, arg);
    if (able)
        *able = !found.unable;
    if (balance)
        *balance = found.balance;
    return TSR_OK;
}

/* A rank that failed for a reason of its own returns that failure even if its peers leave before
 * the exchange of words is done. */
tsr_status tsr_message_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able, uint64_t *balance,
                             tsr_call_describe *describe, const void *arg)
{
    const tsr_agreement mine = {fingerprint, local, able && !*able, balance ? *balance : 0};
    TSR_TRY(tsr_comm_check_idle(comm));
    if (local == TSR_OK)
        return agree_by_messages(comm, &mine, able, balance, describe, arg);
    tsr_kept_sentence own;
    tsr_status_keep(&own);
    const tsr_status status = agree_by_messages(comm, &mine, able, balance, describe, arg);
    return status == TSR_ERROR_PEER && local != TSR_ERROR_PEER ? tsr_status_restore(&own, local) : status;
}

static tsr_status agree_directly(tsr_comm *comm, const tsr_call *mine, uint64_t *balance, tsr_call_describe *describe,
                                 const void *arg)
{
    TSR_TRY(tsr_call_begin(comm, mine, describe, arg));
    if (balance)
        *balance = tsr_call_sum_counts(comm);
    return tsr_call_end(comm, TSR_OK);
}

tsr_status tsr_comm_agree_balance(tsr_comm *comm, uint64_t fingerprint, tsr_status local, uint64_t *balance,
                                  tsr_call_describe *describe, const void *arg)
{
    if (!tsr_comm_is_direct(comm))
        return tsr_message_agree(comm, fingerprint, local, NULL, balance, describe, arg);
    const tsr_call mine = {.fingerprint = fingerprint, .status = local, .count = balance ? *balance : 0};
    const tsr_status status = agree_directly(comm, &mine, balance, describe, arg);
    tsr_call_forget(comm);
    return status;
}

tsr_status tsr_comm_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe,
                          const void *arg)
{
    return tsr_comm_agree_balance(comm, fingerprint, local, NULL, describe, arg);
}

static void describe_name(const void *arg, char *text, size_t capacity)
{
    if (capacity == 0)
        return;
    const size_t length = strnlen(arg, capacity - 1);
    memcpy(text, arg, length);
    text[length] = '\0';
}

tsr_status tsr_comm_agree_able(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able,
                               tsr_call_describe *describe, const void *arg)
{
    return tsr_message_agree(comm, fingerprint, local, able, NULL, describe, arg);
}

tsr_status tsr_comm_agree_on(tsr_comm *comm, const char *name, tsr_status local)
{
    return tsr_comm_agree(comm, tsr_hash_text(TSR_HASH_SEED, name), local, describe_name, name);
}
