/* Layers on CUDA tensors: on GPUs where there are some, else on emulated ones. */
#include "device_layers.h"
#include "graph_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tessera/cuda.h>
#include <tessera/sys/device.h>

#include <cmocka.h>

/* Two devices where the second is reached, else one; skips where there is none. */
static int count_devices(tsr_device_driver *driver)
{
    void *self;
    const char *reason = "";
    int count = 0, reaches = 0;
    const tsr_device_table *table = tsr_device_driver_table(driver, &self);
    assert_int_equal(table->count(self, &count, &reason), TSR_OK);
    if (count == 0) {
        print_message("skipped: %s\n", reason);
        tsr_device_driver_destroy(driver);
        skip();
    }
    if (count > 1)
        assert_int_equal(table->reaches(self, 0, 1, &reaches), TSR_OK);
    return reaches ? 2 : 1;
}

static void with_layers(void (*check)(device_layers *d), const device_graphs *graphs)
{
    tsr_device_driver *driver;
    device_layers d;
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &driver), TSR_OK);
    const int most = count_devices(driver);
    for (int devices = 1; devices <= most; devices++) {
        device_layers_create(driver, devices, NULL, &d);
        d.graphs = graphs;
        check(&d);
        device_layers_destroy(&d);
    }
    tsr_device_driver_destroy(driver);
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
