/** Ranks of the stand-in for NCCL, all played by one thread, with communicators, streams and
 * buffers. */
#ifndef TESTS_STANDIN_STAGE_H
#define TESTS_STANDIN_STAGE_H

#include "standin.h"

#include <tessera/sys/device.h>

enum { RANKS = 3, WORDS = 8, BYTES = WORDS * (int)sizeof(int32_t) };

#define API (&standin_api)

/** Two communicators of all ranks, and two streams and two buffers for each rank. Word i of the
 * first buffer is 100 * rank + i, of the second -1. */
typedef struct stage {
    ncclComm_t comm[2][RANKS];
    cudaStream_t stream[2][RANKS];
    int32_t *buffer[2][RANKS];
    tsr_device_driver *driver;
} stage;

/** Makes everything in `s`; fails the running test if that fails. */
void stage_begin(stage *s);

/** Waits for the streams, unless a misuse `hangs` them, and destroys everything. Fails the running
 * test if a misuse was not expected. */
void stage_end(stage *s, int hangs);

/** The state of a communicator, as ncclCommGetAsyncError() gives it. */
ncclResult_t stage_state(ncclComm_t comm);

/** Waits until nothing is in progress in these communicators, one for each rank; some may be
 * NULL. */
void stage_settle(const ncclComm_t *comms);

/** The driver's table. */
const tsr_device_table *stage_table(const stage *s);

/** Asks whether stream `set` of a rank is done, which lets the stand-in do work. */
int stage_is_done(const stage *s, int set, int rank);

/** An all-reduce of the first buffer to the second, in communicator `set`. */
ncclResult_t stage_sum(stage *s, int set, int rank, size_t count, int stream);

/** Fail unless the first misuse so far contains `words`, or unless there was none. Both forget
 * it. */
void expect_misuse(const char *words);
void expect_none(void);

#endif
