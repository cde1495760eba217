/** Checks of layers on devices with streams: results are right, and training steps by plans only
 * enqueue. */
#ifndef TESTS_OPS_DEVICE_LAYERS_H
#define TESTS_OPS_DEVICE_LAYERS_H

#include "layers.h"

enum { DEVICE_LAYERS_RANKS = 4 };

/** Functions that capture streams and launch graphs, for a device with graphs. */
typedef struct device_graphs {
    tsr_status (*begin)(tsr_stream stream);
    tsr_status (*end)(tsr_stream stream, void **graph);
    tsr_status (*launch)(void *graph, tsr_stream stream);
    void (*destroy)(void *graph);
} device_graphs;

/** A driver under test. Rank r uses device r mod `devices`, with a stream of its own for plans. */
typedef struct device_layers {
    const tsr_device_driver *driver;
    int devices, ranks;
    bool only_f32;            /**< the driver multiplies f32 alone */
    int64_t (*held_up)(void); /**< counts the allocations and waits of the host on devices; NULL: unknown */
    tsr_stream streams[DEVICE_LAYERS_RANKS];
    /** NULL: steps are enqueued; else the second step is captured, for all ranks together, and
     * replayed from then on. */
    const device_graphs *graphs;
    void *graph, *fork, *join[DEVICE_LAYERS_RANKS]; /**< used with graphs, and written between barriers */
} device_layers;

/** Makes the streams; fails the running test if one cannot be made. */
void device_layers_create(const tsr_device_driver *driver, int devices, int64_t (*held_up)(void), device_layers *out);
void device_layers_destroy(device_layers *d);

/** Runs layer_check() for layers of all kinds and dtypes, on 1 to 4 ranks. */
void device_layers_check(device_layers *d);

/** Enqueues three training steps of a column- and a row-parallel layer, forward and backward, on
 * different data, and compares them byte for byte with one rank alone; fails if a step allocates or
 * waits. On 1 to 4 ranks. */
void device_layers_check_perceptron(device_layers *d);

/** The two checks as a rank's main function, whose argument is a device_layers, for other
 * communicators. */
tsr_status device_layers_list(tsr_comm *comm, void *arg);
tsr_status device_layers_perceptron(tsr_comm *comm, void *arg);

#endif
