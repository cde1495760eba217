/** Ranks of the stand-in for NCCL that one thread plays, in the middle of things. */
#ifndef TESTS_STANDIN_STAGE_H
#define TESTS_STANDIN_STAGE_H

#include "standin.h"
#include <tessera/sys/device.h>

enum { RANKS = 3, WORDS = 8, BYTES = WORDS * (int)sizeof(int32_t) };

#define API (&standin_api)

/** Two communicators of all ranks, and two streams and two buffers a rank: the first has 100 * rank + i, the second -1. */
typedef struct stage {
    ncclComm_t comm[2][RANKS];
    cudaStream_t stream[2][RANKS];
    int32_t *buffer[2][RANKS];
    tsr_device_driver *driver;
} stage;

/** Sets the stage; fails the running test where that does not work. */
void stage_begin(stage *s);

/** Waits for the streams, unless a misuse has left them hanging, and takes everything down. No misuse may be left untold. */
void stage_end(stage *s, int hangs);

ncclResult_t stage_state(ncclComm_t comm);

/** Until nothing is in progress in these communicators, one a rank, of which some may be NULL. */
void stage_settle(const ncclComm_t *comms);

/** The driver's table. */
const tsr_device_table *stage_table(const stage *s);

/** Asks stream `set` of a rank whether it is done, which lets time pass. */
int stage_is_done(const stage *s, int set, int rank);

/** An all-reduce of the first buffer into the second, in communicator `set`. */
ncclResult_t stage_sum(stage *s, int set, int rank, size_t count, int stream);

/** Fails unless the first misuse so far says this, or there was none. Both forget it. */
void expect_misuse(const char *words);
void expect_none(void);

#endif
