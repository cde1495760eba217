/* Programs on ranks that are processes of MPI: by messages, where moves start early, they give the
 * bits of memory that ranks share, and a rank that fails leaves none waiting. */
#include "launched.h"
#include "samples.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The rank that fails. */
enum { FAILING = 1, MOST_CALLS = 100 };

/* Of this process. */
static sample_written wanted, got;

static tsr_status run_wanted(tsr_comm *comm, void *arg)
{
    return sample_run_all(arg, comm, &wanted);
}

static tsr_status run_compared(tsr_comm *comm, void *arg)
{
    TSR_TRY(sample_run_all(arg, comm, &got));
    EXPECT(got.count == wanted.count && memcmp(got.bytes, wanted.bytes, got.count) == 0, "other bits by messages");
    return TSR_OK;
}

static void run(const sample *s, tsr_rank_main *main, int no_sharing)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    const tsr_context_options inside = sample_options(s);
    assert_int_equal(tsr_context_create(&inside, &options.context), TSR_OK);
    options.timeout_ms = 20000;
    options.no_sharing = no_sharing;
    launched_run_all(s->ranks, main, (void *)s, &options);
    tsr_context_destroy(options.context);
}

static void messages_give_the_same_bits(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++) {
        run(s, run_wanted, 0);
        run(s, run_compared, 1);
    }
}

/* The n-th call of the sample's own kernel fails on one rank; of each failure all hear. `*through`:
 * there are not so many calls. */
static tsr_status fail_once(const sample *s, const sample_scene *c, tsr_comm *comm, int n, bool *through)
{
    const bool is_failing = tsr_comm_rank(comm) == FAILING;
    int32_t failed;
    samples_fail_here(is_failing ? n : 0);
    const tsr_status status = sample_run(s, c->x, comm, c->bound, &got);
    EXPECT(status == TSR_OK || strstr(tsr_status_message(), "the disk is gone"), "call %d: %s", n,
           tsr_status_message());
    EXPECT(status == TSR_OK || status == (is_failing ? TSR_ERROR_IO : TSR_ERROR_PEER), "call %d: %s", n,
           tsr_status_name(status));
    samples_fail_here(0);
    const int32_t mine = status != TSR_OK;
    TSR_TRY(tsr_comm_all_reduce(comm, &mine, &failed, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    EXPECT(!failed || failed == tsr_comm_size(comm), "call %d: %d ranks failed", n, (int)failed);
    *through = !failed;
    return sample_run(s, c->x, comm, c->bound, &got);
}

static tsr_status run_failing(tsr_comm *comm, void *arg)
{
    sample_scene c;
    bool through = false;
    TSR_TRY(sample_open(arg, comm, NULL, tsr_comm_rank(comm), &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    for (int n = 1; n < MOST_CALLS && !through; n++)
        TSR_TRY(fail_once(arg, &c, comm, n, &through));
    EXPECT(through, "it does not get through");
    sample_close(&c);
    return TSR_OK;
}

static void no_rank_waits_for_one_that_failed(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (strcmp(s->name, "early") == 0)
            run(s, run_failing, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_give_the_same_bits),
        cmocka_unit_test(no_rank_waits_for_one_that_failed),
    };
    (void)launched_rank(); /* silences all processes but the first, before tests are told */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
