/* Checks of layer calls that several test programs share: of their statuses, and that they allocate
 * nothing. */
#include "counted_memory.h"
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void layers_run_counting(int nranks, tsr_rank_main *main)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.context = counted_context(&memory);
    const tsr_status status = tsr_threads_run(nranks, main, &memory.allocations, &threads);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    assert_true(memory.allocations > 0);
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

void layers_run_sets(tsr_rank_main *main, void *results, size_t bytes)
{
    static const char *const sets[] = {"portable", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
        char *const own = (char *)results + i * bytes;
        options.kernels = sets[i];
        if (tsr_context_create(&options, &threads.context) != TSR_OK) {
            assert_true(i > 0);
            print_message("not here: %s\n", tsr_status_message());
            continue;
        }
        const tsr_status status = tsr_threads_run(1, main, own, &threads);
        tsr_context_destroy(threads.context);
        if (status != TSR_OK)
            fail_msg("%s: %s", sets[i], tsr_status_message());
        assert_memory_equal(own, results, bytes);
    }
}

tsr_status layer_expect_faults(tsr_comm *comm, layer_execution *execute, const void *fixture, const char *const *words,
                               int count)
{
    const int rank = tsr_comm_rank(comm);
    const tsr_status wanted = rank == 0 ? TSR_ERROR_PEER : TSR_ERROR_ARGUMENT;
    for (int fault = 0; fault < count; fault++) {
        const tsr_status status = execute(fixture, rank, fault);
        if (status != wanted || !strstr(tsr_status_message(), rank == 0 ? "rank 1" : words[fault]))
            return tsr_status_set(TSR_ERROR_INTERNAL, "fault %d on rank 1, rank %d: %s: %.200s", fault, rank,
                                  tsr_status_name(status), tsr_status_message());
        TSR_TRY(execute(fixture, rank, -1));
    }
    return TSR_OK;
}

tsr_status layer_expect_no_allocation(tsr_comm *comm, const atomic_size_t *count, layer_execution *execute,
                                      const void *fixture)
{
    TSR_TRY(execute(fixture, tsr_comm_rank(comm), -1));
    TSR_TRY(tsr_comm_barrier(comm));
    const size_t before = atomic_load(count);
    TSR_TRY(tsr_comm_barrier(comm));
    for (int i = 0; i < 20; i++)
        TSR_TRY(execute(fixture, tsr_comm_rank(comm), -1));
    TSR_TRY(tsr_comm_barrier(comm));
    const size_t after = atomic_load(count);
    TSR_TRY(tsr_comm_barrier(comm));
    return before == after ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%zu allocations", after - before);
}

tsr_status layer_expect_status(const char *what, tsr_status given, tsr_status wanted, const char *words)
{
    if (given == wanted && strstr(tsr_status_message(), words))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: %s, \"%.300s\" without \"%s\"", what, tsr_status_name(given),
                          tsr_status_message(), words);
}

tsr_status layer_expect_refusal(tsr_status given, const char *sentence)
{
    if (given == TSR_ERROR_ARGUMENT && strcmp(tsr_status_message(), sentence) == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s, \"%.300s\" instead of \"%s\"", tsr_status_name(given),
                          tsr_status_message(), sentence);
}

tsr_status layer_expect_refusal_with(tsr_status given, const char *words)
{
    return layer_expect_status("a refusal", given, TSR_ERROR_ARGUMENT, words);
}
