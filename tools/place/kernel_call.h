/** One call of a kernel of the host, as benchmarks and `tessera info` make it, on rows of f32. Rows
 * of a source start twice their length apart; rows of a destination are contiguous. */
#ifndef TESSERA_TOOLS_PLACE_KERNEL_CALL_H
#define TESSERA_TOOLS_PLACE_KERNEL_CALL_H

#include <tessera/sys/device.h>

#include <stdbool.h>

/** The sources of a reduction, and the destinations of reduce-to-all. */
#define KERNEL_SOURCES 2

typedef struct kernel_call {
    const char *kernel;      /**< "copy", "reduce" or "reduce-to-all" */
    int64_t run_bytes, rows; /**< bytes of a row, a whole number of elements, and the number of rows */
    int targets;             /**< number of destinations */
    int64_t part_bytes;      /**< bytes of one destination */
    void *sources[KERNEL_SOURCES], *destinations[KERNEL_SOURCES];
} kernel_call;

/** Makes a call that writes at most `bytes` in rows of `run_bytes`, or in one shorter row if
 * `bytes` are too few. The caller sets the pointers. False: `bytes` are too few for one element. */
bool kernel_call_make(const char *kernel, int64_t run_bytes, int64_t bytes, kernel_call *out);

/** Bytes of memory that each source needs. */
int64_t kernel_call_source_bytes(const kernel_call *c);

/** Bytes that the call writes. */
int64_t kernel_call_bytes(const kernel_call *c);

/** Runs the call. */
tsr_status kernel_call_run(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices);

/** The way that `choices` has chosen for calls of this size; NULL while ways are still being tried.
 * Static. */
const char *kernel_call_way(const kernel_call *c, const tsr_kernel_choices *choices);

#endif
