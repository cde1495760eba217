/**
 * A device for tests whose work is really done later: host memory, streams that are drained in a random order, events as CUDA has them.
 *
 * Calls only enqueue, and copy what they are given. One thread takes from the streams what may run, by priorities that change at random, so
 * that any order which streams and events allow may come up, and, if asked, nothing runs before somebody waits. Products, sums and copies
 * are the host table's. What the device finds wrong is kept as its fault:
 *
 * - a race: bytes that are written by one operation and touched by another which streams, events and waits of the host do not order. It is
 *   found when the operations are enqueued, by vector clocks for each byte, whichever way they then happen to run;
 * - memory that was freed, was never allocated, is out of reach of the device, or is the host's where it may not be;
 * - a wait, inside a capture, for what was recorded outside it; a synchronization inside a capture.
 *
 * Memory cannot be touched by the host's own loads and stores: they end the program. Thread-safe.
 */
#ifndef TESTS_ASYNC_DEVICE_H
#define TESTS_ASYNC_DEVICE_H

#include <stdbool.h>
#include <tessera/sys/device.h>

/** All devices and streams of one machine. */
typedef struct async_machine async_machine;

/** What a machine counts, and lets fail. */
typedef enum async_call {
    ASYNC_ALLOC,
    ASYNC_FREE,
    ASYNC_COPY,
    ASYNC_COPY_BOXES,
    ASYNC_FILL,
    ASYNC_REDUCE,
    ASYNC_CONVERT,
    ASYNC_GEMM,
    ASYNC_STREAM_CREATE,
    ASYNC_SYNCHRONIZE,
    ASYNC_EVENT_CREATE,
    ASYNC_EVENT_DESTROY,
    ASYNC_EVENT_RECORD,
    ASYNC_EVENT_WAIT,
    ASYNC_REACHES,
    ASYNC_CAPTURE,
    ASYNC_CALLS
} async_call;

typedef struct async_options {
    int devices; /**< 1 to 8 */
    uint64_t seed;
    bool lazy;                             /**< nothing runs until somebody synchronizes */
    bool (*reaches)(int index, int owner); /**< NULL: every device reaches every other */
} async_options;

/** NULL where there is no memory. Up to 32 streams, the default ones of the devices included, and 16 MiB. */
async_machine *async_create(const async_options *options);

/** Finishes what was enqueued. Drivers, and communicators that have served them, must be gone; what is still allocated is a fault, told
 * on standard error. */
void async_destroy(async_machine *machine);

/** The table, for which the machine is `self`. It has every entry but `destroy`. */
const tsr_device_table *async_table(void);

/** How often something was called so far. */
int64_t async_count(async_machine *machine, async_call call);

/** How often the calling thread has allocated, freed or waited for a stream, on any machine. */
int64_t async_held_up(void);

/** Lets the `nth` call from now (1: the next) of a kind fail, with TSR_ERROR_DEVICE, or TSR_ERROR_MEMORY where memory is asked for. 0:
 * none. */
void async_fail(async_machine *machine, async_call call, int64_t nth);

/** The first thing that was wrong, or NULL; it then starts anew. The text lives until the next call. */
const char *async_fault(async_machine *machine);

/** The stream is recorded by capture `id` from now on (0: it runs). What it is given runs all the same. */
void async_capture(async_machine *machine, int index, tsr_stream stream, uint64_t id);

/** Leaves out what `mask` has the bit 1 << call of, for ASYNC_EVENT_RECORD and ASYNC_EVENT_WAIT: a library that forgot it. */
void async_leave_out(async_machine *machine, unsigned mask);

#endif
