#include "gpu_seats.h"

#include "cuda.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

tsr_status tsr_xla_gpu_seats_begin(tsr_context *context, void (*end)(void *work), tsr_xla_gpu_seats *out)
{
    *out = (tsr_xla_gpu_seats){.context = context, .end = end};
    if (pthread_mutex_init(&out->gate, NULL) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a lock");
    return TSR_OK;
}

/* Ends what the seat has. */
static void clear_seat(const tsr_xla_gpu_seats *seats, tsr_xla_gpu_seat *seat)
{
    if (seat->seat.work)
        seats->end(seat->seat.work);
    if (seat->lent)
        tsr_xla_cuda_close(seat->seat.comm, seat->failed);
    seat->seat = (tsr_xla_seat){NULL, NULL};
    seat->lent = NULL;
    seat->failed = false;
}

uint64_t tsr_xla_gpu_seats_renewed(tsr_xla_gpu_seats *seats)
{
    pthread_mutex_lock(&seats->gate);
    const uint64_t renewed = seats->renewed;
    pthread_mutex_unlock(&seats->gate);
    return renewed;
}

static void renew_seat(tsr_xla_gpu_seats *seats, tsr_xla_gpu_seat *seat)
{
    clear_seat(seats, seat);
    pthread_mutex_lock(&seats->gate);
    seats->renewed++;
    pthread_mutex_unlock(&seats->gate);
}

void tsr_xla_gpu_seats_end(tsr_xla_gpu_seats *seats)
{
    while (seats->first) {
        tsr_xla_gpu_seat *const seat = seats->first;
        seats->first = seat->next;
        clear_seat(seats, seat);
        tsr_release(seats->context, seat);
    }
    if (seats->opened)
        tsr_xla_cuda_release();
    pthread_mutex_destroy(&seats->gate);
}

tsr_status tsr_xla_gpu_seats_open(tsr_xla_gpu_seats *seats)
{
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&seats->gate);
    if (!seats->opened) {
        status = tsr_xla_cuda_acquire();
        seats->opened = status == TSR_OK;
    }
    pthread_mutex_unlock(&seats->gate);
    return status;
}

/* The GPU's seat, perhaps an empty one. */
static tsr_status find_seat(tsr_xla_gpu_seats *seats, int64_t device, tsr_xla_gpu_seat **out)
{
    void *memory = NULL;
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&seats->gate);
    tsr_xla_gpu_seat *seat = seats->first;
    while (seat && seat->device != device)
        seat = seat->next;
    if (!seat)
        status = tsr_allocate(seats->context, sizeof *seat, &memory);
    if (memory) {
        seat = memory;
        *seat = (tsr_xla_gpu_seat){.next = seats->first, .device = device};
        seats->first = seat;
    }
    pthread_mutex_unlock(&seats->gate);
    if (status == TSR_OK)
        *out = seat;
    return status;
}

tsr_status tsr_xla_gpu_seats_find(tsr_xla_gpu_seats *seats, int64_t device, struct ncclComm *lent, int64_t timeout_ms,
                                  tsr_xla_gpu_seat **out)
{
    tsr_xla_gpu_seat *seat = NULL;
    TSR_TRY(find_seat(seats, device, &seat));
    if (seat->lent && (seat->lent != lent || seat->failed))
        renew_seat(seats, seat);
    if (!seat->lent) {
        TSR_TRY(tsr_xla_cuda_open(lent, device, timeout_ms, &seat->seat.comm));
        seat->lent = lent;
    }
    *out = seat;
    return TSR_OK;
}
