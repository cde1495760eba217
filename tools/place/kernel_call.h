/** One call of a kernel of the host, as benchmarks and `tessera info` make it: rows of f32, those of sources twice as far apart as they are
 * long, those of destinations one after the other. */
#ifndef TESSERA_TOOLS_PLACE_KERNEL_CALL_H
#define TESSERA_TOOLS_PLACE_KERNEL_CALL_H

#include <stdbool.h>
#include <tessera/sys/device.h>

/** What a reduction reads, and the most destinations that one has. */
#define KERNEL_SOURCES 2

typedef struct kernel_call {
    const char *kernel;      /**< "copy", "reduce" or "reduce-to-all" */
    int64_t run_bytes, rows; /**< whole elements */
    int targets;             /**< destinations */
    int64_t part_bytes;      /**< of one destination; a source has up to twice as many */
    void *sources[KERNEL_SOURCES], *destinations[KERNEL_SOURCES];
} kernel_call;

/** A call that writes about `bytes`, at most, in runs of `run_bytes`, as far as there are so many; without memory as yet. False: not even
 * an element is written. */
bool kernel_call_make(const char *kernel, int64_t run_bytes, int64_t bytes, kernel_call *out);

/** Bytes that a source needs, and that the call writes. */
int64_t kernel_call_source_bytes(const kernel_call *c);
int64_t kernel_call_bytes(const kernel_call *c);

/** Makes it. */
tsr_status kernel_call_run(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices);

/** The way in which such calls go now; NULL while all are being tried. Static. */
const char *kernel_call_way(const kernel_call *c, const tsr_kernel_choices *choices);

#endif
