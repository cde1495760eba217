#include "fixture.h"

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void fixture_start(fixture *f, int ranks, async_options options)
{
    *f = (fixture){.ranks = ranks, .device = {.devices = options.devices, .held_up = async_held_up}};
    options.seed += test_seed();
    f->machine = async_create(&options);
    assert_non_null(f->machine);
    assert_int_equal(tsr_device_driver_create(async_table(), f->machine, &f->driver), TSR_OK);
    f->device.driver = f->driver;
    for (int r = 0; r < ranks; r++)
        assert_int_equal(async_table()->stream_create(f->machine, r % options.devices, &f->device.streams[r]), TSR_OK);
}

void fixture_check(fixture *f)
{
    const char *fault = async_fault(f->machine);
    if (fault)
        fail_msg("%s\ncase: %s", fault, test_case_text());
}

void fixture_finish(fixture *f)
{
    fixture_check(f);
    tsr_device_driver_destroy(f->driver);
    for (int r = 0; r < f->ranks; r++)
        async_table()->stream_destroy(f->machine, r % f->device.devices, f->device.streams[r]);
    async_destroy(f->machine);
}

void fixture_run(int ranks, async_options options, tsr_rank_main *body, void *arg)
{
    fixture f;
    fixture_start(&f, ranks, options);
    f.arg = arg;
    run_ranks(ranks, body, &f);
    fixture_finish(&f);
}

tsr_device fixture_device(const fixture *f, int rank)
{
    return (tsr_device){f->driver, rank % f->device.devices};
}

tsr_status fixture_wait(const fixture *f, int rank)
{
    return async_table()->stream_synchronize(f->machine, rank % f->device.devices, f->device.streams[rank]);
}

tsr_status fixture_alloc(const fixture *f, int rank, size_t bytes, void **out)
{
    return async_table()->alloc(f->machine, rank % f->device.devices, bytes, f->device.streams[rank], out);
}

void fixture_free(const fixture *f, int rank, void *memory, size_t bytes)
{
    if (memory)
        async_table()->free(f->machine, rank % f->device.devices, memory, bytes, f->device.streams[rank]);
}

static tsr_status copy(const fixture *f, int rank, void *dst, const void *src, size_t bytes, tsr_copy_kind kind)
{
    return async_table()->copy(f->machine, rank % f->device.devices, dst, src, bytes, kind, f->device.streams[rank]);
}

tsr_status fixture_put(const fixture *f, int rank, void *memory, const void *host, size_t bytes)
{
    return copy(f, rank, memory, host, bytes, TSR_COPY_FROM_HOST);
}

tsr_status fixture_get(const fixture *f, int rank, void *host, const void *memory, size_t bytes)
{
    return copy(f, rank, host, memory, bytes, TSR_COPY_TO_HOST);
}
