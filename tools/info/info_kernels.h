/** What `tessera info` says of the ways in which the host's kernels move many bytes: found out on the spot, by one thread. */
#ifndef TESSERA_TOOLS_INFO_INFO_KERNELS_H
#define TESSERA_TOOLS_INFO_INFO_KERNELS_H

#include <jansson.h>
#include <tessera/sys/device.h>

/** Most classes of calls that are measured. */
#define KERNEL_FACTS 16

typedef struct kernel_facts {
    const char *reason; /**< why ways are what they are, or why nothing was measured. Static */
    tsr_kernel_choice choices[KERNEL_FACTS];
    size_t count;
} kernel_facts;

/** Lets copies and reductions choose as the context says. Where there is no memory for that, the reason says so. */
void kernel_facts_gather(tsr_context *context, kernel_facts *out);

/** A list of objects; NULL if there is no memory. */
json_t *kernel_facts_to_json(const kernel_facts *f);

/** A line for each class. */
void kernel_facts_print(const kernel_facts *f);

#endif
