#include "bench/agree.h"

#include <stdbool.h>
#include <stdint.h>

/* Upper bound of the calls that peers make before they hear of a failure. */
#define MOST_TRIES 1000

void tsr_bench_outcome_add(tsr_bench_outcome *o, tsr_status status)
{
    if (o->status != TSR_OK || status == TSR_OK)
        return;
    o->status = status;
    tsr_status_keep_returned(&o->kept, status);
}

/* What the ranks minimize: the rank that tried most often failed first, for the others failed when
 * it did not take part in their call; of equal ones a rank with a reason of its own, then the
 * lowest. */
static int64_t key_of(const tsr_bench_outcome *o, int tries, int rank)
{
    if (o->status == TSR_OK)
        return INT64_MAX;
    const int64_t order = (int64_t)(MOST_TRIES - tries) * 2 + (o->status == TSR_ERROR_PEER);
    return order << 32 | rank;
}

/* The rank that failed first, `first`, broadcasts its sentence. */
static tsr_status tell_sentence(tsr_comm *comm, int first, const tsr_bench_outcome *own)
{
    tsr_kept_sentence told = {.text = ""};
    if (tsr_comm_rank(comm) == first)
        told = own->kept;
    TSR_TRY(tsr_comm_broadcast(comm, told.text, sizeof told.text, TSR_U8, first, tsr_device_host(), NULL));
    return tsr_status_set(TSR_ERROR_PEER, "rank %d failed: %s", first, told.text);
}

tsr_status tsr_bench_agree(tsr_comm *comm, tsr_bench_outcome *o)
{
    const bool failed = o->status != TSR_OK;
    tsr_status status;
    int64_t own, first;
    int tries = 0;
    do {
        own = first = key_of(o, failed ? tries : 0, tsr_comm_rank(comm));
        status = tsr_comm_all_reduce(comm, &first, &first, 1, TSR_I64, TSR_MIN, tsr_device_host(), NULL);
        tsr_bench_outcome_add(o, status);
    } while (status == TSR_ERROR_ARGUMENT && ++tries < MOST_TRIES);
    if (status != TSR_OK)
        return tsr_status_restore(&o->kept, o->status);
    if (first == INT64_MAX)
        return TSR_OK;
    status = tell_sentence(comm, (int)(first & INT32_MAX), o);
    const bool by_itself = own >> 32 == first >> 32;
    return by_itself ? tsr_status_restore(&o->kept, o->status) : status;
}
