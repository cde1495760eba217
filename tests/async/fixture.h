/** Ranks with memory on the devices of one machine: rank r uses device r % devices, with a stream
 * of its own. */
#ifndef TESTS_ASYNC_FIXTURE_H
#define TESTS_ASYNC_FIXTURE_H

#include "async_device.h"
#include "ranks.h"
#include "sweep.h"

typedef struct fixture {
    async_machine *machine;
    tsr_device_driver *driver;
    sweep_device device; /**< the device for sweeps and mirrors */
    int ranks;
    void *arg; /**< argument of the test */
} fixture;

/** Makes the machine and the ranks' streams. `options` has the number of devices; TSR_TEST_SEED,
 * else 1, is added to its seed. */
void fixture_start(fixture *f, int ranks, async_options options);

/** Fails the running test if the machine found a fault. */
void fixture_check(fixture *f);

/** fixture_check(), and frees everything. */
void fixture_finish(fixture *f);

/** fixture_start(), a run of `body` on all ranks with the fixture as its argument, and
 * fixture_finish(). */
void fixture_run(int ranks, async_options options, tsr_rank_main *body, void *arg);

tsr_device fixture_device(const fixture *f, int rank);

/** Waits for the rank's stream. */
tsr_status fixture_wait(const fixture *f, int rank);

/** Memory of the rank's device, and copies to and from it in the order of its stream; host memory
 * must stay until a copy is done. */
tsr_status fixture_alloc(const fixture *f, int rank, size_t bytes, void **out);
void fixture_free(const fixture *f, int rank, void *memory, size_t bytes);
tsr_status fixture_put(const fixture *f, int rank, void *memory, const void *host, size_t bytes);
tsr_status fixture_get(const fixture *f, int rank, void *host, const void *memory, size_t bytes);

#endif
