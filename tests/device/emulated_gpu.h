/**
 * Two GPUs that are none: the calls of the CUDA runtime and of cuBLASLt that the library makes, over host memory. Kernels are the library's
 * own bodies, run thread by thread. What the runtime's rules forbid fails the test: memory of a foreign pool, streams of another device,
 * objects that are destroyed twice. Any call can be made to fail.
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

/** Makes `stream` count as being captured, or none. */
void emulated_capture(void *stream);

/** How often streams were made to wait for events, peers' memory was opened, and the host waited for a device, so far. */
int emulated_waits(void);
int emulated_openings(void);
int emulated_host_waits(void);

/** For the parts of the emulation: counts a call of cuBLASLt, which fails (1) when its turn has come; keeps the number of handles. */
int emulated_blas_call(const char *name);
void emulated_count(int handles);

/** Runs a kernel on a grid; 0 if there is none of that name. */
int emulated_kernel(const char *name, unsigned blocks, void **arguments);

/** 1 if the kernels divide `index` by `value` exactly. */
int emulated_division_is_exact(unsigned value, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
