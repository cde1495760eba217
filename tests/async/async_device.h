/**
 * A device for tests that does its work asynchronously: host memory, streams that are drained in a
 * random order, events as CUDA has them.
 *
 * Calls copy their arguments and only enqueue. One thread runs work from the streams, by priorities
 * that change at random, so that any order which streams and events allow can occur; a lazy machine
 * runs nothing before a thread waits. Products, sums and copies are those of the host's table. The
 * machine keeps the first fault that it finds:
 *
 * - a race: bytes that one operation writes and another touches, which streams, events and waits of
 *   the host do not order. It is found when the operations are enqueued, by vector clocks for each
 *   byte, in whatever order they run;
 * - memory that was freed or never allocated, that the device cannot reach, or that is the host's
 *   where it must not be;
 * - within a capture, a wait for an event recorded outside it, or a synchronization.
 *
 * Loads and stores of the host to the memory end the program. Thread-safe.
 */
#ifndef TESTS_ASYNC_DEVICE_H
#define TESTS_ASYNC_DEVICE_H

#include <tessera/sys/device.h>

#include <stdbool.h>

/** All devices and streams of one machine. */
typedef struct async_machine async_machine;

/** Calls that a machine counts, and can make fail. */
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
    ASYNC_LAUNCH,
    ASYNC_CALLS
} async_call;

typedef struct async_options {
    int devices; /**< 1 to 8 */
    uint64_t seed;
    bool lazy;                             /**< nothing runs until a thread synchronizes */
    bool (*reaches)(int index, int owner); /**< NULL: every device reaches every other */
} async_options;

/** Makes a machine, with up to 32 streams, default ones of the devices included, and 16 MiB of
 * memory; NULL if there is no memory. */
async_machine *async_create(const async_options *options);

/** Finishes enqueued work and destroys the machine. Drivers and communicators that used it must be
 * destroyed before; memory still allocated is a fault, printed on standard error. */
void async_destroy(async_machine *machine);

/** The operations, with the machine as `self`: every entry but `destroy`. */
const tsr_device_table *async_table(void);

/** The number of calls of a kind so far. */
int64_t async_count(async_machine *machine, async_call call);

/** The number of times that the calling thread has allocated, freed or waited for a stream, on any
 * machine. */
int64_t async_held_up(void);

/** Makes the `nth` call of a kind from now (1: the next; 0: none) fail, with TSR_ERROR_MEMORY for
 * an allocation, else TSR_ERROR_DEVICE. */
void async_fail(async_machine *machine, async_call call, int64_t nth);

/** Returns the first fault, or NULL, and forgets it. The text is valid until the next call. */
const char *async_fault(async_machine *machine);

/** From now on the stream counts as recorded by capture `id` (0: by none); its work runs
 * nevertheless. */
void async_capture(async_machine *machine, int index, tsr_stream stream, uint64_t id);

/** Ignores calls whose bit 1 << call is in `mask` (ASYNC_EVENT_RECORD, ASYNC_EVENT_WAIT), as if the
 * library had forgotten them. */
void async_leave_out(async_machine *machine, unsigned mask);

#endif
