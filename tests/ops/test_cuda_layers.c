/* Layers on CUDA tensors: the driver and its calls of cuBLASLt, over the emulated machine. */
#include "device_layers.h"
#include "emulated_driver.h"

static int64_t held_up(void)
{
    return emulated_host_waits() + emulated_alive();
}

static void layers_are_exact_on_gpus(void **state)
{
    device_layers d;
    (void)state;
    const machine m = start();
    device_layers_create(m.driver, EMULATED_GPUS, held_up, &d);
    device_layers_check(&d);
    device_layers_destroy(&d);
    stop(&m);
}

static void training_steps_on_gpus_only_enqueue_and_are_exact(void **state)
{
    (void)state;
    for (int devices = 1; devices <= EMULATED_GPUS; devices++) {
        device_layers d;
        const machine m = start();
        device_layers_create(m.driver, devices, held_up, &d);
        device_layers_check_perceptron(&d);
        device_layers_destroy(&d);
        stop(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layers_are_exact_on_gpus),
        TEST(training_steps_on_gpus_only_enqueue_and_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
