/** Layers on devices with streams: what holds on the host holds there, and training steps by plans only enqueue. */
#ifndef TESTS_OPS_DEVICE_LAYERS_H
#define TESTS_OPS_DEVICE_LAYERS_H

#include "layers.h"

enum { DEVICE_LAYERS_RANKS = 4 };

/** How streams are captured and graphs launched, where the device has graphs. */
typedef struct device_graphs {
    tsr_status (*begin)(tsr_stream stream);
    tsr_status (*end)(tsr_stream stream, void **graph);
    tsr_status (*launch)(void *graph, tsr_stream stream);
    void (*destroy)(void *graph);
} device_graphs;

/** A driver under test. Rank r is on device r mod `devices`, with a stream of its own for plans. */
typedef struct device_layers {
    const tsr_device_driver *driver;
    int devices, ranks;
    bool only_f32;            /**< it multiplies nothing else */
    int64_t (*held_up)(void); /**< grows whenever the host allocates on a device or waits for one; NULL: unknown */
    tsr_stream streams[DEVICE_LAYERS_RANKS];
    /** NULL: steps are enqueued; else the second is captured, for all ranks at once, and replayed from then on. */
    const device_graphs *graphs;
    void *graph, *fork, *join[DEVICE_LAYERS_RANKS]; /**< of a run with graphs, written between barriers */
} device_layers;

/** The calling test fails where a stream cannot be made. */
void device_layers_create(const tsr_device_driver *driver, int devices, int64_t (*held_up)(void), device_layers *out);
void device_layers_destroy(device_layers *d);

/** layer_check() of layers of all kinds and dtypes, on 1 to 4 ranks. */
void device_layers_check(device_layers *d);

/** Three training steps of a column- and a row-parallel layer, forward and backward, enqueued one after the other on other data, against
 * one rank alone, byte for byte; nothing is allocated or waited for meanwhile. On 1 to 4 ranks. */
void device_layers_check_perceptron(device_layers *d);

/** Both as one rank's main, whose argument is a device_layers, for communicators that others make. */
tsr_status device_layers_list(tsr_comm *comm, void *arg);
tsr_status device_layers_perceptron(tsr_comm *comm, void *arg);

#endif
