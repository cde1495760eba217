/* Libraries in the place of libtessera-cuda that do not serve: TSR_XLA_CUDA, of which the error has
 * WORDS. */
#include "cuda.h"

#include <tessera/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The library itself serves where there is a GPU. */
static void it_is_refused_in_a_sentence(void **state)
{
    (void)state;
    const tsr_status status = tsr_xla_cuda_acquire();
    if (status == TSR_OK && strstr(TSR_XLA_CUDA, "libtessera-cuda")) {
        assert_non_null(tsr_xla_cuda_driver());
        tsr_xla_cuda_release();
        skip();
    }
    assert_int_equal(status, TSR_ERROR_UNAVAILABLE);
    if (!strstr(tsr_status_message(), WORDS))
        fail_msg("it says \"%s\", not \"%s\"", tsr_status_message(), WORDS);
    /* And is tried again. */
    assert_int_equal(tsr_xla_cuda_acquire(), TSR_ERROR_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_refused_in_a_sentence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
