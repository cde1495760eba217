/** Messages from each rank to the next, checked byte by byte. */
#ifndef TESTS_MPI_DELIVERY_H
#define TESTS_MPI_DELIVERY_H

#include <tessera/comm.h>

typedef struct delivery {
    size_t bytes;
    int rounds;
} delivery;

/** A rank's program that sends three messages to the next rank, of `bytes` bytes, one byte, and 64;
 * `arg` is a delivery. */
tsr_status deliver(tsr_comm *comm, void *arg);

#endif
