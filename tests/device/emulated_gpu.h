/**
 * Two emulated GPUs: the calls of the CUDA runtime and of cuBLASLt that the library makes, over
 * host memory. Kernels are the library's own, run thread by thread. Streams do their work when a
 * thread waits for it, in a random order, and can be captured into graphs. What the runtime's rules
 * forbid fails the test, or is refused as by the runtime: memory of another pool, streams of
 * another device, objects destroyed twice, waits and allocations in a capture. Any call can be made
 * to fail.
 */
#ifndef TESTS_DEVICE_EMULATED_GPU_H
#define TESTS_DEVICE_EMULATED_GPU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_GPUS 2

/** Values of cudaError_t for tests. */
#define EMULATED_INVALID_VALUE       1
#define EMULATED_NO_MEMORY           2
#define EMULATED_INSUFFICIENT_DRIVER 35
#define EMULATED_ILLEGAL_ADDRESS     700
#define EMULATED_TOO_MANY_PEERS      711

/** Makes the call that is `after` calls from now return `error`; all later calls return a sticky
 * error too. */
void emulated_fail(int after, int error);

/** Restores two working GPUs of `bytes` each; objects on them stay. */
void emulated_heal(size_t bytes);

/** Sets the number of GPUs, and whether they reach each other. */
void emulated_machine(int gpus, int peers);

/** The number of calls so far that could fail, and the name of the last one that was made to
 * fail. */
int emulated_calls(void);
const char *emulated_failed_call(void);

/** The number of allocations, streams, events, pools, libraries and handles that are not freed. */
int emulated_alive(void);

/** The number of kernels launched so far. */
int emulated_launches(void);

/** The number of searches for algorithms so far. */
int emulated_searches(void);

/** Enqueues `run` with a copy of its argument; returns 1 if an invalidated capture refuses it, else
 * 0. */
int emulated_enqueue(void *stream, void (*run)(const void *argument), const void *argument, size_t bytes);

/** The numbers, so far, of waits of streams for events, of openings of peers' memory, and of waits
 * of the host for a device. */
int emulated_waits(void);
int emulated_openings(void);
int emulated_host_waits(void);

/** For the emulation itself: emulated_blas_call() counts a call of cuBLASLt, and returns 1 if it is
 * to fail; emulated_count() adds to the number of handles. */
int emulated_blas_call(const char *name);
void emulated_count(int handles);

/** Runs a kernel on a grid; returns 0 if there is no kernel of this name. */
int emulated_kernel(const char *name, unsigned blocks, void **arguments);

/** Bytes of a kernel's argument `number` (0 or 1); 0 if it has no such argument. */
size_t emulated_argument_bytes(const char *name, int number);

/** 1 if the kernels divide `index` by `value` exactly. */
int emulated_division_is_exact(unsigned value, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
