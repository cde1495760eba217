/**
 * Two GPUs that are none: the calls of the CUDA runtime and of cuBLASLt that the library makes, over host memory. Kernels are the library's
 * own bodies, run thread by thread. Streams do their work when somebody waits for it, in an order that nobody could rely on, and may be
 * captured into graphs. What the runtime's rules forbid fails the test, or is refused as the runtime refuses it: memory of a foreign pool,
 * streams of another device, objects that are destroyed twice, waits and allocations in a capture. Any call can be made to fail.
 */
#ifndef TESTS_DEVICE_EMULATED_GPU_H
#define TESTS_DEVICE_EMULATED_GPU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_GPUS 2

/** Numbers of cudaError_t that tests give. */
#define EMULATED_INVALID_VALUE       1
#define EMULATED_NO_MEMORY           2
#define EMULATED_INSUFFICIENT_DRIVER 35
#define EMULATED_ILLEGAL_ADDRESS     700
#define EMULATED_TOO_MANY_PEERS      711

/** The call that is `after` calls from now on returns `error`; one that is sticky then comes from all later calls too. */
void emulated_fail(int after, int error);

/** Back to two sound GPUs of `bytes` each; what lives on them stays. */
void emulated_heal(size_t bytes);

/** How many GPUs there are from now on, and whether they reach each other. */
void emulated_machine(int gpus, int peers);

/** Calls that could have failed so far; name of the last one that was made to. */
int emulated_calls(void);
const char *emulated_failed_call(void);

/** Allocations, streams, events, pools, libraries and handles that have not been freed. */
int emulated_alive(void);

/** Kernels launched so far. */
int emulated_launches(void);

/** How often algorithms have been looked for so far. */
int emulated_searches(void);

/** Puts something into a stream, with a copy of its argument; 1 if a capture that was spoilt refuses it. */
int emulated_enqueue(void *stream, void (*run)(const void *argument), const void *argument, size_t bytes);

/** How often streams were made to wait for events, peers' memory was opened, and the host waited for a device, so far. */
int emulated_waits(void);
int emulated_openings(void);
int emulated_host_waits(void);

/** For the parts of the emulation: counts a call of cuBLASLt, which fails (1) when its turn has come; keeps the number of handles. */
int emulated_blas_call(const char *name);
void emulated_count(int handles);

/** Runs a kernel on a grid; 0 if there is none of that name. */
int emulated_kernel(const char *name, unsigned blocks, void **arguments);

/** Bytes of a kernel's argument; 0 if it has none of that number (0 or 1). */
size_t emulated_argument_bytes(const char *name, int number);

/** 1 if the kernels divide `index` by `value` exactly. */
int emulated_division_is_exact(unsigned value, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
