/* A host of XLA in C: programs as StableHLO text, compiled by a PJRT plugin for n devices of this
 * process, without Python.
 *
 * Each function returns NULL, or what failed as text that the caller frees. */
#ifndef TSR_EXAMPLES_XLA_PJRT_H
#define TSR_EXAMPLES_XLA_PJRT_H

#include <pjrt_c_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A plugin with its client and devices. */
typedef struct xla_host {
    void *library;
    const PJRT_Api *api;
    PJRT_Client *client;
    PJRT_Device *const *devices;
    size_t count;
} xla_host;

/* Opens the plugin at `path` with `devices` CPU devices. */
char *xla_host_open(const char *path, int64_t devices, xla_host *out);
void xla_host_close(xla_host *host);

/* Registers a handler of custom calls, an XLA_FFI_Handler, for the CPU. */
char *xla_host_register(const xla_host *host, const char *name, void *handler);

/* A compiled program that runs on `devices`, one partition on each. */
typedef struct xla_program {
    const xla_host *host;
    PJRT_LoadedExecutable *executable;
    size_t partitions;
} xla_program;

/* Compiles StableHLO text for `partitions` partitions: partition p runs on device devices[p], or p
 * if `devices` is NULL. */
char *xla_program_compile(const xla_host *host, const char *text, size_t partitions, const int64_t *devices,
                          xla_program *out);
void xla_program_destroy(xla_program *program);

/* The optimized program, as XLA serializes it; names of its operations are readable in it. The
 * caller frees `*out`. */
char *xla_program_optimized(const xla_program *program, char **out, size_t *size);

/* A buffer on device `device` with a copy of `data`, and back. The caller destroys `*out`. */
char *xla_buffer_create(const xla_host *host, size_t device, PJRT_Buffer_Type type, size_t ndim, const int64_t *dims,
                        const void *data, PJRT_Buffer **out);
char *xla_buffer_read(const xla_host *host, PJRT_Buffer *buffer, void *out, size_t size);
void xla_buffer_destroy(const xla_host *host, PJRT_Buffer *buffer);

/* What a launch passes on to custom calls. */
typedef struct xla_launch {
    int id;       /* the run's id: launches that overlap have different ones */
    int64_t type; /* the type id of `data`, */
    void *data;   /* user data for handlers; NULL: none */
} xla_launch;

/* Runs the program: `arguments[p]` are those of partition p, of which there are `count`, and its
 * results go to `results[p]`. Waits for all partitions. Of several that failed, `errors[p]` has
 * each one's text, which the caller frees, if `errors` is not NULL; the first is returned. */
char *xla_program_run(const xla_program *program, const xla_launch *launch, PJRT_Buffer *const *const *arguments,
                      size_t count, PJRT_Buffer **const *results, char **errors);

#endif
