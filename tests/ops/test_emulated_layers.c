/* Layers on emulated GPUs: the emulation's counts show that the host only enqueues. */
#include "device_layers.h"
#include "emulated_driver.h"

#include <tessera/sys/status.h>

static int64_t held_up(void)
{
    return emulated_host_waits() + emulated_alive();
}

static void training_steps_on_gpus_neither_allocate_nor_wait(void **state)
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

/* A row-parallel layer whose y is reduced, again and again: x (2, 4), w (3, 4), b (3). */
static tsr_status count_waits(tsr_comm *comm, void *arg)
{
    device_layers *d = arg;
    layer l = {"2", 2, {2, 4}, 3, "S(1)", "S(1)", "R", TSR_F32, .driver = d->driver, .devices = d->devices};
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *y[3];
    const tsr_placement whole = tsr_replicate();
    TSR_TRY(layer_reference_create(&l, &r));
    TSR_TRY(layer_tensors_create(comm, &l, &r, &t));
    for (int i = 0; i < 3; i++) {
        TSR_TRY(tsr_comm_barrier(comm));
        const int before = emulated_host_waits();
        TSR_TRY(tsr_comm_barrier(comm));
        TSR_TRY(tsr_linear(t.x, t.w, t.b, &whole, &y[i]));
        TSR_TRY(tsr_comm_barrier(comm));
        const int waits = emulated_host_waits() - before;
        TSR_TRY(tsr_comm_barrier(comm));
        /* The first call plans and opens peers' memory. In later calls each rank's y, which belongs
         * to no stream, is waited for once, where it is allocated. */
        if (i > 0 && waits != 2)
            return tsr_status_set(TSR_ERROR_INTERNAL, "call %d made the host wait %d times", i, waits);
    }
    for (int i = 0; i < 3; i++) {
        TSR_TRY(layer_expect(&l, "y", y[i], r.y));
        tsr_dtensor_destroy(y[i]);
    }
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return TSR_OK;
}

static void a_call_without_a_plan_waits_for_nothing_but_the_memory_of_its_result(void **state)
{
    device_layers d;
    (void)state;
    const machine m = start();
    device_layers_create(m.driver, EMULATED_GPUS, held_up, &d);
    layers_run(2, count_waits, &d);
    device_layers_destroy(&d);
    stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(training_steps_on_gpus_neither_allocate_nor_wait),
        TEST(a_call_without_a_plan_waits_for_nothing_but_the_memory_of_its_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
