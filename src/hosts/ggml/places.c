#include "hosts/ggml/places.h"

#include <stdio.h>
#include <unistd.h>

enum { MAX_NODES = 64 };

typedef struct processor {
    int cpu;
    int node;
} processor;

/* The NUMA node of a processor; 0 where the system does not say. */
static int node_of(int cpu)
{
    char path[96];
    for (int node = 0; node < MAX_NODES; node++) {
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
        if (access(path, F_OK) == 0)
            return node;
    }
    return 0;
}

/* Lists the processors that this process may use, by node, then by number; at least one. */
static int list_processors(processor list[CPU_SETSIZE])
{
    cpu_set_t allowed;
    int count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        const processor added = {cpu, node_of(cpu)};
        int at = count++;
        for (; at > 0 && list[at - 1].node > added.node; at--)
            list[at] = list[at - 1];
        list[at] = added;
    }
    if (count == 0)
        list[count++] = (processor){0, 0};
    return count;
}

void tsr_ggml_places(int devices, tsr_ggml_place places[])
{
    processor list[CPU_SETSIZE];
    const int count = list_processors(list);
    for (int d = 0; d < devices; d++) {
        tsr_ggml_place *const place = &places[d];
        int begin = d * count / devices, end = (d + 1) * count / devices;
        if (begin == end) {
            begin = d % count;
            end = begin + 1;
        }
        CPU_ZERO(&place->processors);
        place->processor_count = end - begin;
        place->node = list[begin].node == list[end - 1].node ? list[begin].node : -1;
        for (int i = begin; i < end; i++)
            CPU_SET(list[i].cpu, &place->processors);
    }
}

int tsr_ggml_node_count(void)
{
    processor list[CPU_SETSIZE];
    const int count = list_processors(list);
    int nodes = 1;
    for (int i = 1; i < count; i++)
        nodes += list[i].node != list[i - 1].node;
    return nodes < TSR_GGML_MAX_DEVICES ? nodes : TSR_GGML_MAX_DEVICES;
}
