/* Layers on CUDA tensors, on GPUs if the machine has any, else on emulated ones. */
#include "device_layers.h"
#include "gpus.h"
#include "graph_calls.h"

#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void with_layers(void (*check)(device_layers *d), const device_graphs *graphs)
{
    gpus g;
    device_layers d;
    gpus_open(&g);
    for (int devices = 1; devices <= g.count; devices++) {
        device_layers_create(g.driver, devices, NULL, &d);
        d.graphs = graphs;
        check(&d);
        device_layers_destroy(&d);
    }
    tsr_device_driver_destroy(g.driver);
}

static void layers_are_exact_on_gpus(void **state)
{
    (void)state;
    with_layers(device_layers_check, NULL);
}

static void training_steps_on_gpus_are_exact(void **state)
{
    (void)state;
    with_layers(device_layers_check_perceptron, NULL);
}

static void training_steps_of_all_ranks_are_one_graph(void **state)
{
    static const device_graphs graphs = {graph_begin, graph_end, graph_launch, graph_destroy};
    (void)state;
    with_layers(device_layers_check_perceptron, &graphs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_exact_on_gpus),
        cmocka_unit_test(training_steps_on_gpus_are_exact),
        cmocka_unit_test(training_steps_of_all_ranks_are_one_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
