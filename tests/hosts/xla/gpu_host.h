/* A host that runs calls on GPUs as XLA does, without XLA and without a GPU: the table of its FFI,
 * the extension for collectives, and a thread for each device, which passes the stages in XLA's
 * order. Its GPUs and NCCL are the stand-in of tests/comm. */
#ifndef TSR_TESTS_HOSTS_XLA_GPU_HOST_H
#define TSR_TESTS_HOSTS_XLA_GPU_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xla/ffi/api/c_api.h>

enum { GPU_DEVICES = 4, GPU_ARRAYS = 6, GPU_ATTRIBUTES = 8, GPU_DIMS = 3, GPU_SITES = 2 };

/* An attribute: `text`, of `count` bytes unless that is 0; else `numbers`, an array of `count`;
 * else `number`. */
typedef struct gpu_attribute {
    const char *name, *text;
    const int64_t *numbers;
    size_t count;
    int64_t number;
} gpu_attribute;

/* An operand or a result of f32 or i32: one array for each device, in one block of memory. */
typedef struct gpu_array {
    XLA_FFI_DataType dtype;
    int ndim;
    int64_t dims[GPU_DIMS];
    void *data;
} gpu_array;

/* A custom call. */
typedef struct gpu_call {
    XLA_FFI_Handler *handler;
    gpu_attribute attributes[GPU_ATTRIBUTES]; /* up to the first without a name */
    int operands, results;
    gpu_array arrays[GPU_ARRAYS]; /* the operands, then the results */
} gpu_call;

/* What differs from jaxlib 0.12. */
typedef struct gpu_faults {
    int more_sites;        /* the program has so many more calls like this one, below GPU_SITES */
    bool no_extension;     /* there is no extension for collectives */
    bool no_lookup;        /* the table ends before the look-up of extensions */
    bool no_communicator;  /* the communicator is NULL */
    bool skips_prepare;    /* the handler is registered for INSTANTIATE and EXECUTE alone */
    bool wrong_group;      /* communicators have two devices each */
    bool no_stream;        /* calls have no stream, as on CPUs */
    bool non_blocking;     /* communicators are non-blocking, as XLA's are */
    int major, minor;      /* the extension's version; 0.0: 0.2 */
    size_t extension_size; /* 0: that of its version */
    int renews;            /* before this launch, counted from 1, communicators are made anew */
    int no_memory_at;      /* in this launch device 0 gets no memory, and communicators are aborted */
    int kept_at;           /* in this launch device 0's memory is not taken back, and communicators stay */
} gpu_faults;

/* Runs the call `launches` times on `devices` GPUs, each after an all-reduce of XLA's own on the
 * same stream. Arrays are those of the program's partitions; partition p is on GPU assignment[p],
 * or without an assignment on GPU p. Results are those of the last launch. Returns what failed
 * first, as text that the caller frees; NULL: nothing. A test fails if NCCL was misused, or memory
 * of a GPU is left. */
char *gpu_host_run(const gpu_call *call, int devices, const int64_t *assignment, int launches,
                   const gpu_faults *faults);

/* Of the last run: the number of communicators that XLA had, those of its own collectives included,
 * and of blocks of memory that calls had from XLA. */
int gpu_host_cliques(void);
int gpu_host_blocks(void);

size_t gpu_host_bytes(const gpu_array *array); /* of one partition's array */

#endif
