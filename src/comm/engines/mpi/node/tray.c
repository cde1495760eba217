
#include "comm/engines/mpi/node/tray.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdatomic.h>
#include <string.h>

/* Values of `gone`: the rank could not open its trays; it has left. */
enum { UNABLE = 1, LEFT = 2 };

typedef enum tray_state { EMPTY, FULL, TAKING, WITHDRAWN } tray_state;

/* The sender writes it while its state is EMPTY, the receiver reads it while its state is
 * TAKING. */
typedef struct tray {
    _Atomic(int32_t) state; /* tray_state */
    int32_t by_mpi;
    const void *data;
    uint64_t bytes;
    char own_line[128 - 24]; /* to two cache lines: processors fetch them in pairs */
} tray;

struct tsr_mpi_desk {
    _Atomic(int32_t) left; /* mates that no longer use this desk */
    int32_t room;
    _Atomic(int32_t) gone;    /* 0, UNABLE or LEFT */
    _Atomic(int32_t) awaited; /* 1 + the member for which its rank waits; 0: none */
    char own_line[128 - 16];
    tray trays[]; /* `room` trays, then `room` times TSR_MPI_SHORT bytes for short messages */
};

static char *letter_of(tsr_mpi_desk *desk, int member)
{
    return (char *)&desk->trays[desk->room] + (size_t)member * TSR_MPI_SHORT;
}

tsr_status tsr_mpi_trays_prepare(tsr_mpi_trays *trays, tsr_mpi_node *node, tsr_context *context, int room)
{
    void *desks;
    const size_t trays_bytes = sizeof(tsr_mpi_desk) + (size_t)room * sizeof(tray);
    *trays = (tsr_mpi_trays){.context = context};
    TSR_TRY(tsr_allocate(context, (size_t)room * sizeof *trays->desks, &desks));
    const tsr_status status =
        tsr_mpi_node_alloc(node, trays_bytes + (size_t)room * TSR_MPI_SHORT, (void **)&trays->own);
    if (status != TSR_OK) {
        tsr_release(context, desks);
        return status;
    }
    memset(trays->own, 0, trays_bytes);
    memset(desks, 0, (size_t)room * sizeof *trays->desks);
    trays->own->room = room;
    trays->desks = desks;
    trays->node = node;
    return TSR_OK;
}

void tsr_mpi_trays_open(tsr_mpi_trays *trays, int count, int member)
{
    trays->count = count;
    trays->member = member;
}

void tsr_mpi_trays_set(tsr_mpi_trays *trays, int member, tsr_mpi_desk *desk)
{
    trays->desks[member] = desk;
}

static void depart_from_trays(const tsr_mpi_trays *trays)
{
    int mates = 0;
    atomic_store(&trays->own->gone, LEFT);
    for (int m = 0; m < trays->count; m++)
        mates += trays->desks[m] != NULL;
    tsr_mpi_node_free_later(trays->node, trays->own, (const int32_t *)&trays->own->left, mates);
    for (int m = 0; m < trays->count; m++)
        if (trays->desks[m])
            atomic_fetch_add(&trays->desks[m]->left, 1);
}

void tsr_mpi_trays_leave(tsr_mpi_trays *trays)
{
    if (!trays->node)
        return;
    if (trays->count > 0)
        depart_from_trays(trays);
    else
        tsr_mpi_node_free(trays->node, trays->own);
    tsr_release(trays->context, trays->desks);
}

void tsr_mpi_trays_abandon(tsr_mpi_trays *trays)
{
    if (!trays->node)
        return;
    atomic_store(&trays->own->gone, UNABLE);
    tsr_release(trays->context, trays->desks);
}

bool tsr_mpi_trays_is_gone(const tsr_mpi_trays *trays, int member)
{
    return atomic_load_explicit(&trays->desks[member]->gone, memory_order_acquire) == UNABLE;
}

bool tsr_mpi_trays_has_left(const tsr_mpi_trays *trays, int member)
{
    return atomic_load_explicit(&trays->desks[member]->gone, memory_order_acquire) != 0;
}

void tsr_mpi_trays_show_awaited(const tsr_mpi_trays *trays, int awaited)
{
    atomic_store(&trays->own->awaited, awaited + 1);
}

int tsr_mpi_trays_awaited_by(const tsr_mpi_trays *trays, int member)
{
    return atomic_load(&trays->desks[member]->awaited) - 1;
}

bool tsr_mpi_trays_reach(const tsr_mpi_trays *trays, int member)
{
    return trays->node && trays->desks[member];
}

tsr_mpi_delivery tsr_mpi_trays_lay(const tsr_mpi_trays *trays, int member, const void *data, size_t bytes)
{
    tray *t = &trays->own->trays[member];
    if (atomic_load_explicit(&t->state, memory_order_acquire) != EMPTY)
        return TSR_MPI_NOT_YET;
    const bool is_short = bytes <= TSR_MPI_SHORT, lies = !is_short && tsr_mpi_node_holds(trays->node, data, bytes);
    t->data = is_short ? letter_of(trays->own, member) : data;
    t->bytes = bytes;
    t->by_mpi = !is_short && !lies;
    if (is_short && bytes > 0)
        memcpy(letter_of(trays->own, member), data, bytes);
    atomic_store_explicit(&t->state, FULL, memory_order_release);
    if (is_short)
        return TSR_MPI_THROUGH;
    return lies ? TSR_MPI_LIES : TSR_MPI_BY_MPI;
}

bool tsr_mpi_trays_is_empty(const tsr_mpi_trays *trays, int member)
{
    return atomic_load_explicit(&trays->own->trays[member].state, memory_order_acquire) == EMPTY;
}

bool tsr_mpi_trays_withdraw(const tsr_mpi_trays *trays, int member)
{
    int32_t state = FULL;
    return atomic_compare_exchange_strong(&trays->own->trays[member].state, &state, WITHDRAWN) || state != TAKING;
}

tsr_mpi_delivery tsr_mpi_trays_take(const tsr_mpi_trays *trays, int member, void *data, size_t bytes, size_t *sent)
{
    tray *t = &trays->desks[member]->trays[trays->member];
    int32_t state = atomic_load_explicit(&t->state, memory_order_relaxed);
    if (state == EMPTY)
        return TSR_MPI_NOT_YET;
    if (state == WITHDRAWN || !atomic_compare_exchange_strong(&t->state, &state, TAKING))
        return TSR_MPI_WITHDRAWN;
    const bool by_mpi = t->by_mpi;
    *sent = t->bytes;
    if (!by_mpi && t->bytes == bytes && bytes > 0)
        memcpy(data, t->data, bytes);
    atomic_store_explicit(&t->state, EMPTY, memory_order_release);
    return by_mpi ? TSR_MPI_BY_MPI : TSR_MPI_THROUGH;
}
