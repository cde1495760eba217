/* What a call site keeps for each GPU of the process: a communicator over the one that XLA lends,
 * and the work of its rank. */
#ifndef TSR_HOSTS_XLA_GPU_SEATS_H
#define TSR_HOSTS_XLA_GPU_SEATS_H

#include "teams.h"

#include <stdbool.h>
#include <stdint.h>

struct ncclComm;

/* A GPU's seat. One thread at a time uses it: XLA runs the calls of a device one after another. */
typedef struct tsr_xla_gpu_seat tsr_xla_gpu_seat;
struct tsr_xla_gpu_seat {
    tsr_xla_gpu_seat *next;
    int64_t device;        /* the GPU's ordinal in this process */
    struct ncclComm *lent; /* what seat.comm is over; NULL: there is no seat.comm */
    tsr_xla_seat seat;
    uint64_t planned; /* how many seats had been renewed when the work was planned */
    bool failed;      /* the last call failed, so that seat.comm may be broken */
};

/* The seats of a call site. */
typedef struct tsr_xla_gpu_seats {
    tsr_context *context;    /* borrowed */
    void (*end)(void *work); /* frees a seat's work */
    pthread_mutex_t gate;    /* held for the list */
    bool opened;             /* GPUs are acquired */
    uint64_t renewed;        /* how often a seat's communicator was replaced */
    tsr_xla_gpu_seat *first;
} tsr_xla_gpu_seats;

tsr_status tsr_xla_gpu_seats_begin(tsr_context *context, void (*end)(void *work), tsr_xla_gpu_seats *out);

/* Frees all seats, which no thread uses. */
void tsr_xla_gpu_seats_end(tsr_xla_gpu_seats *seats);

/* Opens libtessera-cuda. */
tsr_status tsr_xla_gpu_seats_open(tsr_xla_gpu_seats *seats);

/* The seat of GPU `device`, with a communicator over `lent`. What it has is ended first if it
 * belongs to another communicator, or has failed. */
tsr_status tsr_xla_gpu_seats_find(tsr_xla_gpu_seats *seats, int64_t device, struct ncclComm *lent, int64_t timeout_ms,
                                  tsr_xla_gpu_seat **out);

/* How often the communicator of a seat was replaced. XLA initializes all devices of this process
 * before the first one executes, so that in a launch all count alike: where one rank has to plan
 * anew, all do, because they plan together. */
uint64_t tsr_xla_gpu_seats_renewed(tsr_xla_gpu_seats *seats);

#endif
