/* Layers on devices that run work later, in any order that streams and events allow, and that
 * detect races. */
#include "async_device.h"
#include "device_layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct queued {
    async_machine *machine;
    tsr_device_driver *driver;
    device_layers layers;
} queued;

static void start(queued *q, int devices, bool lazy)
{
    const async_options options = {.devices = devices, .seed = 20, .lazy = lazy};
    q->machine = async_create(&options);
    assert_non_null(q->machine);
    assert_int_equal(tsr_device_driver_create(async_table(), q->machine, &q->driver), TSR_OK);
    device_layers_create(q->driver, devices, async_held_up, &q->layers);
}

static void stop(queued *q)
{
    const char *fault = async_fault(q->machine);
    if (fault)
        fail_msg("%s", fault);
    device_layers_destroy(&q->layers);
    tsr_device_driver_destroy(q->driver);
    async_destroy(q->machine);
}

static void layers_are_exact_and_race_free(void **state)
{
    queued q;
    (void)state;
    start(&q, 2, false);
    device_layers_check(&q.layers);
    stop(&q);
}

static void training_steps_only_enqueue_and_are_exact(void **state)
{
    (void)state;
    for (int lazy = 0; lazy < 2; lazy++) {
        queued q;
        start(&q, 1 + lazy, lazy);
        device_layers_check_perceptron(&q.layers);
        stop(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_exact_and_race_free),
        cmocka_unit_test(training_steps_only_enqueue_and_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
