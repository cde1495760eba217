/** What `tessera info` prints of the ways in which the host's kernels move many bytes, measured on
 * one thread. */
#ifndef TESSERA_TOOLS_INFO_INFO_KERNELS_H
#define TESSERA_TOOLS_INFO_INFO_KERNELS_H

#include <tessera/sys/device.h>

#include <jansson.h>

/** Upper bound of the classes of calls that are measured. */
#define KERNEL_FACTS 16

typedef struct kernel_facts {
    const char *reason; /**< how the ways were chosen, or why nothing was measured; static */
    tsr_kernel_choice choices[KERNEL_FACTS];
    size_t count; /**< number of choices; 0 if nothing was measured */
} kernel_facts;

/** Measures the ways of copies and reductions if the context chooses by measuring; else sets the
 * reason alone. A lack of memory is told by the reason. */
void kernel_facts_gather(tsr_context *context, kernel_facts *out);

/** The choices as a list of objects; NULL if there is no memory. */
json_t *kernel_facts_to_json(const kernel_facts *f);

/** Prints a line for each class. */
void kernel_facts_print(const kernel_facts *f);

#endif
