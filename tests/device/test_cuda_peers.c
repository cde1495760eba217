/* GPUs of the emulated machine that reach each other's memory, and those that do not. */
#include "emulated_driver.h"

#include <tessera/cuda.h>

#include <string.h>

static void devices_open_their_memory_to_each_other_when_they_meet(void **state)
{
    void *here, *there;
    int reaches;
    (void)state;
    for (int peers = 0; peers <= 1; peers++) {
        emulated_machine(EMULATED_GPUS, peers);
        const int before = emulated_openings();
        const machine m = start();
        assert_int_equal(m.table->alloc(m.self, 0, 64, NULL, &here), TSR_OK);
        assert_int_equal(emulated_openings(), before);
        assert_int_equal(m.table->alloc(m.self, 1, 64, NULL, &there), TSR_OK);
        assert_int_equal(emulated_openings(), before + 2 * peers);
        assert_int_equal(tsr_cuda_reaches(m.driver, 0, 1, &reaches), TSR_OK);
        assert_int_equal(reaches, peers);
        assert_int_equal(m.table->reaches(m.self, 0, 1, &reaches), TSR_OK);
        assert_int_equal(reaches, peers);
        assert_int_equal(tsr_cuda_reaches(m.driver, 1, 1, &reaches), TSR_OK);
        assert_int_equal(reaches, 1);
        m.table->free(m.self, 0, here, 64, NULL);
        m.table->free(m.self, 1, there, 64, NULL);
        stop(&m);
    }
}

static void asking_who_reaches_whom_opens_both(void **state)
{
    int reaches;
    (void)state;
    const int before = emulated_openings();
    const machine m = start();
    assert_int_equal(m.table->reaches(m.self, 1, 1, &reaches), TSR_OK);
    assert_int_equal(reaches, 1);
    assert_int_equal(emulated_openings(), before);
    assert_int_equal(m.table->reaches(m.self, 0, 1, &reaches), TSR_OK);
    assert_int_equal(reaches, 1);
    assert_int_equal(emulated_openings(), before + 2);
    assert_int_equal(m.table->reaches(m.self, 0, 2, &reaches), TSR_ERROR_UNAVAILABLE);
    stop(&m);
}

/* Counts the directions in which the devices reach each other, each asked in both manners. */
static int count_ways(const machine *m)
{
    int there, back, again;
    assert_int_equal(m->table->reaches(m->self, 0, 1, &there), TSR_OK);
    assert_int_equal(m->table->reaches(m->self, 1, 0, &back), TSR_OK);
    assert_int_equal(tsr_cuda_reaches(m->driver, 0, 1, &again), TSR_OK);
    assert_int_equal(again, there);
    return there + back;
}

static void a_peer_that_the_hardware_has_no_room_for_is_out_of_reach(void **state)
{
    int refused = 0;
    (void)state;
    for (int k = 0; k < 100; k++) {
        int reaches;
        const machine m = start();
        emulated_fail(k, EMULATED_TOO_MANY_PEERS);
        const tsr_status status = m.table->reaches(m.self, 0, 1, &reaches);
        const char *const call = emulated_failed_call();
        emulated_heal(GIB);
        if (call && strcmp(call, "cudaDeviceEnablePeerAccess") == 0) {
            assert_int_equal(status, TSR_OK);
            assert_int_equal(count_ways(&m), 1);
            refused++;
        }
        stop(&m);
    }
    assert_int_equal(refused, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(devices_open_their_memory_to_each_other_when_they_meet),
        TEST(asking_who_reaches_whom_opens_both),
        TEST(a_peer_that_the_hardware_has_no_room_for_is_out_of_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
