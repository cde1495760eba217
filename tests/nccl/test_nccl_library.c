/* NCCL itself, in libtessera-cuda: what it answers where there is no GPU, and what is refused
 * before it is asked. */
#include <tessera/cuda.h>
#include <tessera/nccl.h>
#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool there_is_a_gpu(void)
{
    tsr_device_driver *driver = NULL;
    int count = 0;
    const char *reason = NULL;
    void *self = NULL;
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &driver), TSR_OK);
    const tsr_device_table *table = tsr_device_driver_table(driver, &self);
    assert_int_equal(table->count(self, &count, &reason), TSR_OK);
    tsr_device_driver_destroy(driver);
    return count > 0;
}

static void assert_says(const char *part)
{
    if (!strstr(tsr_status_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), part);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    tsr_nccl_id id = {{0}};
    tsr_comm *untouched = NULL;
    assert_int_equal(tsr_nccl_id_create(NULL), TSR_ERROR_ARGUMENT);
    assert_says("out");
    assert_int_equal(tsr_comm_from_nccl(NULL, NULL, &untouched), TSR_ERROR_ARGUMENT);
    assert_says("comm");
    assert_int_equal(tsr_comm_create_nccl(2, 0, NULL, NULL, &untouched), TSR_ERROR_ARGUMENT);
    assert_says("id");
    assert_int_equal(tsr_comm_create_nccl(2, 2, &id, NULL, &untouched), TSR_ERROR_ARGUMENT);
    assert_says("rank");
    assert_null(untouched);
}

/* The error comes at once, although no other rank calls. */
static void without_a_gpu_a_communicator_is_not_to_be_had(void **state)
{
    (void)state;
    tsr_nccl_id id;
    tsr_comm *untouched = NULL;
    if (there_is_a_gpu()) {
        print_message("skipped: there is a GPU\n");
        skip();
    }
    if (tsr_nccl_id_create(&id) != TSR_OK)
        memset(&id, 0, sizeof id);
    assert_int_equal(tsr_comm_create_nccl(2, 0, &id, NULL, &untouched), TSR_ERROR_UNAVAILABLE);
    assert_null(untouched);
    assert_true(tsr_status_message()[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(without_a_gpu_a_communicator_is_not_to_be_had),
    };
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
