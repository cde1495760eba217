/** Messages that go round, and are looked at byte by byte. */
#ifndef TESTS_MPI_DELIVERY_H
#define TESTS_MPI_DELIVERY_H

#include <tessera/comm.h>

typedef struct delivery {
    size_t bytes;
    int rounds;
} delivery;

/** Three messages from every rank to the next: `bytes` long, one byte, and 64. A rank's program; `arg` is a delivery. */
tsr_status deliver(tsr_comm *comm, void *arg);

#endif
