/* Ranks find the fastest way of moving many bytes while they move. Each rank finds its own, also
 * for communicators that are split off. */
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *nothing(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

/* The number of samples of a kernel; -1: nothing is measured. */
static int count_samples(const tsr_comm *comm, const char *kernel)
{
    tsr_kernel_choice told;
    int found, samples = 0;
    for (size_t i = 0;; i++) {
        if (tsr_kernel_choices_get(tsr_comm_kernel_choices(comm), i, &told, &found) != TSR_OK || (!found && i == 0))
            return -1;
        if (!found)
            return samples;
        samples += strcmp(told.kernel, kernel) == 0 ? told.samples : 0;
    }
}

/* Moves or sums, and checks the results. Values that are moved are their global numbers; terms of
 * sums are 1. */
static tsr_status move(tsr_comm *comm, const char *shape, const char *from, const char *to)
{
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_layout *source = NULL, *destination = NULL;
    TSR_TRY(layout_over(comm, "2", shape, from, TSR_F32, &source));
    TSR_TRY(layout_over(comm, "2", shape, to, TSR_F32, &destination));
    TSR_TRY(tsr_dtensor_create(source, tsr_device_host(), &x));
    const tsr_tensor before = tsr_dtensor_to_local(x);
    const int64_t columns = before.shape[1];
    for (int64_t i = 0; i < before.shape[0] * columns; i++)
        ((float *)before.data)[i] =
            from[0] == 'P' ? 1 : (float)((i + tsr_comm_rank(comm) * before.shape[0] * columns) % 4093);
    TSR_TRY(tsr_redistribute(x, tsr_layout_placements(destination), &y));
    const tsr_tensor after = tsr_dtensor_to_local(y);
    for (int64_t i = 0; i < after.shape[0]; i++)
        for (int64_t j = 0; j < after.shape[1]; j++) {
            const int64_t number = i * columns + j + tsr_comm_rank(comm) * after.shape[1];
            CHECK(((const float *)after.data)[i * after.shape[1] + j] == (from[0] == 'P' ? 2 : (float)(number % 4093)));
        }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_layout_destroy(source);
    tsr_layout_destroy(destination);
    return TSR_OK;
}

static tsr_status move_and_count(tsr_comm *comm, void *arg)
{
    tsr_comm *split = NULL;
    (void)arg;
    CHECK(count_samples(comm, "copy") == 0);
    TSR_TRY(move(comm, "128x64", "S(0)", "S(1)"));
    CHECK(count_samples(comm, "copy") == 0);
    TSR_TRY(move(comm, "2048x4096", "S(0)", "S(1)"));
    CHECK(count_samples(comm, "copy") > 0);
    CHECK(count_samples(comm, "reduce") == 0);
    TSR_TRY(move(comm, "2048x4096", "P", "S(0)"));
    CHECK(count_samples(comm, "reduce") > 0);
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &split));
    CHECK(tsr_comm_kernel_choices(split) == tsr_comm_kernel_choices(comm));
    tsr_comm_destroy(split);
    return TSR_OK;
}

static tsr_status move_by_the_rule(tsr_comm *comm, void *arg)
{
    (void)arg;
    TSR_TRY(move(comm, "2048x4096", "S(0)", "S(1)"));
    CHECK(count_samples(comm, "copy") == -1);
    return TSR_OK;
}

static tsr_status run(const char *kernels, tsr_rank_main *body)
{
    tsr_context_options chosen = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    chosen.kernels = kernels;
    chosen.environment = nothing;
    TSR_TRY(tsr_context_create(&chosen, &options.context));
    const tsr_status status = tsr_threads_run(2, body, NULL, &options);
    tsr_context_destroy(options.context);
    return status;
}

static void ranks_find_out_in_large_moves_alone(void **state)
{
    (void)state;
    if (run("measured", move_and_count) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

static void nothing_is_measured_where_a_way_is_pinned(void **state)
{
    static const char *const kernels[] = {"fixed", "stream", "plain-rows", "portable,stream-ahead"};
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (run(kernels[i], move_by_the_rule) != TSR_OK)
            fail_msg("%s: %s", kernels[i], tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_find_out_in_large_moves_alone),
        cmocka_unit_test(nothing_is_measured_where_a_way_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
