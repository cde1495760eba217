#include "comm/groups/mates.h"

#include "base/hash.h"
#include "comm/core/hierarchy.h"
#include "comm/core/traits.h"

#include <tessera/sys/status.h>

#include <stdio.h>

static void describe_mates(const void *arg, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s, which makes groups of nodes", (const char *)arg);
}

static tsr_rank_set find_set(const tsr_comm *comm)
{
    const tsr_hierarchy *const h = comm->hierarchy;
    return (tsr_rank_set){h->members + h->starts[h->own], h->starts[h->own + 1] - h->starts[h->own]};
}

tsr_status tsr_group_find_mates(tsr_comm *comm, const char *call, const tsr_group **out)
{
    *out = NULL;
    if (!comm->hierarchy || !tsr_comm_has_direct_nodes(comm))
        return TSR_OK;
    const tsr_rank_set set = find_set(comm);
    if (comm->mates == 0) {
        const tsr_group_request request = {
            .set = set, .fingerprint = tsr_hash_text(TSR_HASH_SEED, "mates"), .describe = describe_mates, .arg = call};
        tsr_group_answer answer;
        TSR_TRY(tsr_group_prepare(comm, &request, &answer));
        comm->mates = tsr_rank_set_hash(set);
    }
    if (set.count > 1)
        *out = tsr_group_find(comm, comm->mates);
    return TSR_OK;
}
