/** A CUDA driver over the emulated machine, for tests of the driver. */
#ifndef TESTS_DEVICE_EMULATED_DRIVER_H
#define TESTS_DEVICE_EMULATED_DRIVER_H

#include "emulated_gpu.h"
#include "variants.h"

#include <tessera/cuda.h>

#define GIB ((size_t)1 << 30)

typedef struct machine {
    tsr_device_driver *driver;
    const tsr_device_table *table;
    void *self;
} machine;

static inline machine start(void)
{
    machine m;
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &m.driver), TSR_OK);
    m.table = tsr_device_driver_table(m.driver, &m.self);
    return m;
}

/* Destroys the driver, and checks that nothing is left of it. */
static inline void stop(const machine *m)
{
    tsr_device_driver_destroy(m->driver);
    assert_int_equal(emulated_alive(), 0);
}

/* Waits for enqueued work, before results are read. */
static inline void await(const machine *m, tsr_stream stream)
{
    assert_int_equal(m->table->stream_synchronize(m->self, 0, stream), TSR_OK);
}

static inline void says(const char *word)
{
    if (!strstr(tsr_status_message(), word))
        fail_msg("\"%s\" is not in: %s", word, tsr_status_message());
}

static inline int heal(void **state)
{
    (void)state;
    emulated_heal(GIB);
    emulated_machine(EMULATED_GPUS, 1);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, heal, heal)

#endif
