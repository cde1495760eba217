/* Which processors, and which memory, each device has: the processors that this process may use, in
 * the order of NUMA nodes, dealt out in equal runs. */
#ifndef TSR_HOSTS_GGML_PLACES_H
#define TSR_HOSTS_GGML_PLACES_H

#include <sched.h>

enum { TSR_GGML_MAX_DEVICES = 16 /* what ggml's meta device takes */ };

typedef struct tsr_ggml_place {
    cpu_set_t processors;
    int processor_count; /* at least 1 */
    int node;            /* the NUMA node of all processors; -1: they lie on several, or it is unknown */
} tsr_ggml_place;

/* Fills places[0..devices). Where there are more devices than processors, devices share them. */
void tsr_ggml_places(int devices, tsr_ggml_place places[]);

/* How many NUMA nodes have processors that this process may use: 1 to TSR_GGML_MAX_DEVICES. */
int tsr_ggml_node_count(void);

#endif
