/* What several programs expect of a layer's calls: their statuses, and that they allocate nothing. */
#include "layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#include <cmocka.h>

/* Memory of a context that counts what is asked for, on any thread. */
static void *count_allocation(void *user, size_t bytes, size_t alignment)
{
    atomic_fetch_add((atomic_int *)user, 1);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

void layers_run_counting(int nranks, tsr_rank_main *main)
{
    atomic_int count = 0;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){count_allocation, release, &count};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    const tsr_status status = tsr_threads_run(nranks, main, &count, &threads);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    assert_true(count > 0);
    tsr_context_destroy(threads.context);
}

tsr_status layer_expect_no_allocation(tsr_comm *comm, const atomic_int *count, tsr_status (*execute)(const void *fixture, int rank),
                                      const void *fixture)
{
    TSR_TRY(execute(fixture, tsr_comm_rank(comm)));
    TSR_TRY(tsr_comm_barrier(comm));
    const int before = atomic_load(count);
    TSR_TRY(tsr_comm_barrier(comm));
    for (int i = 0; i < 20; i++)
        TSR_TRY(execute(fixture, tsr_comm_rank(comm)));
    TSR_TRY(tsr_comm_barrier(comm));
    const int after = atomic_load(count);
    TSR_TRY(tsr_comm_barrier(comm));
    return before == after ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%d allocations", after - before);
}

tsr_status layer_expect_status(const char *what, tsr_status given, tsr_status wanted, const char *words)
{
    if (given == wanted && strstr(tsr_status_message(), words))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: %s, \"%.300s\" without \"%s\"", what, tsr_status_name(given), tsr_status_message(),
                          words);
}
