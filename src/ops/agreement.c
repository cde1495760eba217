#include "ops/agreement.h"

#include "ops/blas/processor.h"

#include <tessera/sys/log.h>
#include <tessera/sys/status.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The lowest rank that failed, `failed`, broadcasts its sentence. */
static tsr_status tell_sentence(tsr_comm *comm, int failed, const tsr_kept_sentence *own)
{
    tsr_kept_sentence told = {.text = ""};
    if (tsr_comm_rank(comm) == failed)
        told = *own;
    TSR_TRY(tsr_comm_broadcast(comm, told.text, sizeof told.text, TSR_U8, failed, tsr_device_host(), NULL));
    return tsr_status_set(TSR_ERROR_PEER, "rank %d failed: %s", failed, told.text);
}

/* Each value becomes its minimum over all ranks. */
static tsr_status reduce_values(tsr_comm *comm, int64_t *values, int count)
{
    return tsr_comm_all_reduce(comm, values, values, count, TSR_I64, TSR_MIN, tsr_device_host(), NULL);
}

/* tsr_agree() that also takes the minimum of values[1 .. count); values[0] is used for the lowest
 * rank that failed. */
static tsr_status agree_on_values(tsr_comm *comm, tsr_status local, int64_t *values, int count)
{
    tsr_kept_sentence own;
    if (local != TSR_OK)
        tsr_status_keep(&own);
    values[0] = local == TSR_OK ? INT64_MAX : tsr_comm_rank(comm);
    tsr_status status = reduce_values(comm, values, count);
    if (status == TSR_OK && values[0] != INT64_MAX)
        status = tell_sentence(comm, (int)values[0], &own);
    return local == TSR_OK ? status : tsr_status_restore(&own, local);
}

tsr_status tsr_agree(tsr_comm *comm, tsr_status local)
{
    int64_t values[1];
    return agree_on_values(comm, local, values, 1);
}

tsr_status tsr_agree_on_moves(tsr_comm *comm, tsr_status local, unsigned moves)
{
    int64_t values[] = {0, moves, -(int64_t)moves};
    TSR_TRY(agree_on_values(comm, local, values, 3));
    if (values[1] == -values[2])
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "ranks disagree: by their layouts a tensor moves on some ranks and stays on others; all ranks "
        "give the same layouts");
}

/* The values of tsr_agree_on_provider(), all reduced by minimum: the lowest rank that failed, the
 * lowest rank that multiplies, the least and the greatest (negated) fingerprint of ranks'
 * providers, and the least level of kernels. */
enum { FAILED, FIRST, LEAST, GREATEST, KERNELS, VALUES };

/* A hash of all providers in their order, below 2^62. */
static int64_t fingerprint(const tsr_choice *choice)
{
    uint64_t value = 0;
    for (int i = 0; i < choice->count; i++)
        value = value * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)tsr_provider_identity(choice->by[i]);
    return (int64_t)(value >> 2);
}

static bool has_provider(const tsr_choice *choice, int64_t identity, int *at)
{
    for (*at = 0; *at < choice->count; ++*at)
        if (tsr_provider_identity(choice->by[*at]) == identity)
            return true;
    return false;
}

/* Returns an error that names two ranks with different providers: `first`, and the lowest rank that
 * multiplies but lacks the best provider of `first`. */
static tsr_status explain_difference(tsr_comm *comm, int first, const int64_t *identities, const tsr_choice *choice)
{
    char words[2][256] = {"", ""};
    int at;
    const int rank = tsr_comm_rank(comm);
    int64_t odd = choice->count == 0 || has_provider(choice, identities[0], &at) ? INT64_MAX : rank;
    TSR_TRY(reduce_values(comm, &odd, 1));
    for (int i = 0; i < 2; i++) {
        const int of = i == 0 ? first : (int)odd;
        if (rank == of)
            snprintf(words[i], sizeof words[i], "%.40s with kernels for %.40s (%.120s)", choice->by[0]->table->name,
                     choice->by[0]->table->core, choice->by[0]->table->version);
        TSR_TRY(tsr_comm_broadcast(comm, words[i], sizeof words[i], TSR_U8, of, tsr_device_host(), NULL));
    }
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "ranks would multiply by different BLAS, and replicas would differ: rank %d has %s, rank %d "
                          "has %s; give all the same "
                          "by TSR_BLAS, or the same kernels by OPENBLAS_CORETYPE",
                          first, words[0], (int)odd, words[1]);
}

static void warn_of_another(tsr_comm *comm, const tsr_choice *own, const tsr_choice *kept)
{
    const tsr_blas_table *mine = own->by[0]->table, *theirs = kept->by[0]->table;
    if (own->by[0] != kept->by[0])
        tsr_log(tsr_comm_context(comm), TSR_LOG_WARN,
                "rank %d of %d multiplies by %s (%s) in place of %s (%s), which not all ranks have first",
                tsr_comm_rank(comm), tsr_comm_size(comm), theirs->name, theirs->core, mine->name, mine->core);
}

/* Keeps the providers identities[i] for which common[i] is 1, in that order. */
static void keep_common(tsr_comm *comm, const int64_t *identities, const int64_t *common, tsr_choice *choice)
{
    tsr_choice kept = {.kernels = choice->kernels};
    int at;
    for (int i = 0; i < TSR_MOST_PROVIDERS; i++)
        if (common[i] && has_provider(choice, identities[i], &at))
            kept.by[kept.count++] = choice->by[at];
    warn_of_another(comm, choice, &kept);
    *choice = kept;
}

/* The lowest rank that multiplies, `first`, broadcasts its providers; those of them that all ranks
 * have remain. */
static tsr_status meet_on_providers(tsr_comm *comm, int first, tsr_choice *choice)
{
    int64_t identities[TSR_MOST_PROVIDERS] = {0}, common[TSR_MOST_PROVIDERS];
    int at;
    bool some = false;
    if (tsr_comm_rank(comm) == first)
        for (int i = 0; i < choice->count; i++)
            identities[i] = tsr_provider_identity(choice->by[i]);
    TSR_TRY(tsr_comm_broadcast(comm, identities, TSR_MOST_PROVIDERS, TSR_I64, first, tsr_device_host(), NULL));
    for (int i = 0; i < TSR_MOST_PROVIDERS; i++)
        common[i] = identities[i] != 0 && (choice->count == 0 || has_provider(choice, identities[i], &at));
    TSR_TRY(reduce_values(comm, common, TSR_MOST_PROVIDERS));
    for (int i = 0; i < TSR_MOST_PROVIDERS; i++)
        some = some || common[i];
    if (!some)
        return explain_difference(comm, first, identities, choice);
    if (choice->count > 0)
        keep_common(comm, identities, common, choice);
    return TSR_OK;
}

tsr_status tsr_agree_on_provider(tsr_comm *comm, tsr_status local, tsr_choice *choice)
{
    int64_t values[VALUES] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    if (local == TSR_OK && choice->count > 0) {
        values[FIRST] = tsr_comm_rank(comm);
        values[LEAST] = fingerprint(choice);
        values[GREATEST] = -values[LEAST];
        values[KERNELS] = tsr_kernels_level(choice->kernels);
    }
    TSR_TRY(agree_on_values(comm, local, values, VALUES));
    if (choice->count > 0)
        choice->kernels = tsr_kernels_name((int)values[KERNELS]);
    return values[FIRST] == INT64_MAX || values[LEAST] == -values[GREATEST]
               ? TSR_OK
               : meet_on_providers(comm, (int)values[FIRST], choice);
}

tsr_comm *tsr_agreement_comm(const tsr_layout *const *layouts, int count)
{
    for (int i = 0; i < count; i++)
        if (layouts[i] && tsr_mesh_comm(tsr_layout_mesh(layouts[i])))
            return tsr_mesh_comm(tsr_layout_mesh(layouts[i]));
    return NULL;
}

const tsr_layout *tsr_agreement_layout(const tsr_dtensor *tensor)
{
    return tensor ? tsr_dtensor_layout(tensor) : NULL;
}
