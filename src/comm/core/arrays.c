#include "comm/core/arrays.h"

#include "base/memory/memory.h"
#include "comm/core/traits.h"

#include <string.h>

static tsr_status reserve_array(tsr_comm *comm, void **array, size_t bytes)
{
    return *array ? TSR_OK : tsr_allocate_array(comm->context, (size_t)comm->size, bytes, array);
}

/* Uses the list of slots that the engine keeps for this process, if it keeps one, else fills a list
 * that this handle owns. */
static tsr_status list_slots(tsr_comm *comm)
{
    if (comm->engine.direct.slots) {
        comm->slots = (tsr_slot **)comm->engine.direct.slots(comm->self);
        return TSR_OK;
    }
    TSR_TRY(reserve_array(comm, (void **)&comm->own_slots, sizeof *comm->own_slots));
    for (int r = 0; r < comm->size; r++)
        comm->own_slots[r] = comm->engine.direct.slot(comm->self, r);
    comm->slots = comm->own_slots;
    return TSR_OK;
}

tsr_status tsr_arrays_create(tsr_comm *comm)
{
    if (comm->engine.table.direct)
        TSR_TRY(list_slots(comm));
    if (tsr_comm_shares_all(comm))
        return TSR_OK;
    TSR_TRY(reserve_array(comm, (void **)&comm->messages, 2 * sizeof *comm->messages));
    return reserve_array(comm, (void **)&comm->agreements, sizeof *comm->agreements);
}

static tsr_status reserve_ones(tsr_comm *comm)
{
    if (comm->ones)
        return TSR_OK;
    TSR_TRY(reserve_array(comm, (void **)&comm->ones, sizeof *comm->ones));
    for (int r = 0; r < comm->size; r++)
        for (int d = 0; d < TSR_MAX_DIMS; d++)
            comm->ones[r][d] = 1;
    return TSR_OK;
}

tsr_status tsr_terms_reserve(tsr_comm *comm, bool ones)
{
    TSR_TRY(reserve_array(comm, (void **)&comm->sources, sizeof *comm->sources));
    TSR_TRY(reserve_array(comm, (void **)&comm->destinations, sizeof *comm->destinations));
    return ones ? reserve_ones(comm) : TSR_OK;
}

tsr_status tsr_cursors_reserve(tsr_comm *comm)
{
    return reserve_array(comm, (void **)&comm->cursors, sizeof *comm->cursors);
}

void tsr_cursors_rewind(tsr_comm *comm)
{
    memset(comm->cursors, 0, (size_t)comm->size * sizeof *comm->cursors);
}

tsr_status tsr_records_create(tsr_comm *comm)
{
    return reserve_array(comm, (void **)&comm->records, sizeof *comm->records);
}

void tsr_records_destroy(tsr_comm *comm)
{
    tsr_release(comm->context, comm->records);
    comm->records = NULL;
}

void tsr_arrays_destroy(tsr_comm *comm)
{
    void *const arrays[] = {comm->own_slots, (void *)comm->sources, comm->destinations, comm->ones,
                            comm->messages,  comm->cursors,         comm->agreements,   comm->records};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        tsr_release(comm->context, arrays[i]);
}
