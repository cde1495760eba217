#include "redistribute/execute/holding.h"

#include "base/memory/memory.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"

#include <tessera/sys/status.h>

static bool wants_scratch(const tsr_holding *held, const tsr_holding_wanted *wanted)
{
    return wanted->scratch_bytes > held->scratch_bytes;
}

static bool wants_shelf(const tsr_holding *held, const tsr_holding_wanted *wanted)
{
    return wanted->shelf_bytes > held->shelf_bytes;
}

static bool lacks(const void *slot, const void *wanted)
{
    return wants_scratch(slot, wanted) || wants_shelf(slot, wanted);
}

/* Allocates what the slot lacks into `made`; the rest of `made` stays NULL. */
static tsr_status holding_make(tsr_comm *comm, const void *slot, const void *wanted_of_plan, void *made)
{
    const tsr_holding_wanted *wanted = wanted_of_plan;
    tsr_holding *grown = made;
    if (wants_scratch(slot, wanted)) {
        TSR_TRY(tsr_allocate(tsr_comm_context(comm), wanted->scratch_bytes, &grown->scratch));
        grown->scratch_bytes = wanted->scratch_bytes;
    }
    if (wants_shelf(slot, wanted)) {
        TSR_TRY(tsr_comm_alloc_shared(comm, wanted->shelf_bytes, &grown->shelf));
        grown->shelf_bytes = wanted->shelf_bytes;
    }
    return TSR_OK;
}

static void holding_release(tsr_comm *comm, void *slot)
{
    tsr_holding *held = slot;
    tsr_release(tsr_comm_context(comm), held->scratch);
    tsr_comm_free(comm, held->shelf, held->shelf_bytes);
    *held = (tsr_holding){.scratch = NULL};
}

static void exchange_memory(void **a, size_t *a_bytes, void **b, size_t *b_bytes)
{
    void *const memory = *a;
    const size_t bytes = *a_bytes;
    *a = *b;
    *a_bytes = *b_bytes;
    *b = memory;
    *b_bytes = bytes;
}

static void holding_take(tsr_comm *comm, void *slot, void *made)
{
    tsr_holding *held = slot, *grown = made;
    if (grown->scratch)
        exchange_memory(&held->scratch, &held->scratch_bytes, &grown->scratch, &grown->scratch_bytes);
    if (grown->shelf)
        exchange_memory(&held->shelf, &held->shelf_bytes, &grown->shelf, &grown->shelf_bytes);
    if (!tsr_comm_shares_some(comm))
        held->shelf_bytes = SIZE_MAX;
    holding_release(comm, made);
}

/* A pending execution lives in the scratch, which a prepare may replace by a larger one. */
static bool is_busy(const void *slot)
{
    return ((const tsr_holding *)slot)->pending;
}

const tsr_group_keeper tsr_holding_keeper = {lacks, holding_make, holding_take, holding_release, is_busy};
