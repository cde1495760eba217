/** Ranks whose memory is on the devices of one machine: rank r's on device r % devices, with a stream of its own. */
#ifndef TESTS_ASYNC_FIXTURE_H
#define TESTS_ASYNC_FIXTURE_H

#include "async_device.h"
#include "ranks.h"
#include "sweep.h"

typedef struct fixture {
    async_machine *machine;
    tsr_device_driver *driver;
    sweep_device device; /**< the same, as sweeps and mirrors take it */
    int ranks;
    void *arg; /**< the test's own */
} fixture;

/** `options` says how many devices; the seed is the test's. */
void fixture_start(fixture *f, int ranks, async_options options);

/** Fails the running test if the machine found a fault. */
void fixture_check(fixture *f);

/** Checks, and frees what was made. */
void fixture_finish(fixture *f);

/** Starts, runs `body` on all ranks with the fixture as its argument, and finishes. */
void fixture_run(int ranks, async_options options, tsr_rank_main *body, void *arg);

tsr_device fixture_device(const fixture *f, int rank);

/** Waits for the rank's stream. */
tsr_status fixture_wait(const fixture *f, int rank);

/** Memory on the rank's device, and copies in its stream's order, of which the host's side has to stay until they are done. */
tsr_status fixture_alloc(const fixture *f, int rank, size_t bytes, void **out);
void fixture_free(const fixture *f, int rank, void *memory, size_t bytes);
tsr_status fixture_put(const fixture *f, int rank, void *memory, const void *host, size_t bytes);
tsr_status fixture_get(const fixture *f, int rank, void *host, const void *memory, size_t bytes);

#endif
