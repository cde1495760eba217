/* Syncs of tensors on devices, whose work is only enqueued, run after run. */
#include "comm_suite.h"
#include "rows_machine.h"
#include "rows_memory.h"
#include "rows_oracle.h"
#include "support.h"

#include <tessera/sync.h>

enum { RANKS = 5, TENSORS = 3, ROUNDS = 4, MOST = 256 };

/* Elements are whole numbers, which every dtype here has. */
static const struct {
    const char *name, *from, *to;
    tsr_dtype from_dtype, to_dtype;
} tensors[TENSORS] = {
    {"a", "S(0)", "S(1)", TSR_F32, TSR_BF16},
    {"b", "S(1;balanced)", "R", TSR_BF16, TSR_F32},
    {"c", "R", "S(0)", TSR_F32, TSR_F32},
};
static const int64_t shape[] = {7, 10};

static void put(tsr_dtype dtype, int64_t number, unsigned char *at)
{
    const float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    if (dtype == TSR_F32)
        memcpy(at, &bits, sizeof bits);
    else
        memcpy(at, &upper, sizeof upper);
}

/* What the memory of a local tensor must hold in a round; returns its bytes. */
static size_t describe(const tsr_dtensor *x, int i, int round, unsigned char *out)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const size_t bytes = tsr_dtype_bytes(local.dtype);
    int64_t count = 0;
    (void)tsr_tensor_count(&local, &count);
    for (int64_t k = 0; k < count; k++)
        put(local.dtype, (rows_global(tsr_dtensor_layout(x), k) + 11 * i + 50 * round) % 200, out + (size_t)k * bytes);
    return (size_t)count * bytes;
}

static rows_memory memory_of(const tsr_dtensor *x)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    return (rows_memory){.device = local.device, .data = local.data};
}

static tsr_status make(const tsr_mesh *mesh, const char *placement, tsr_dtype dtype, tsr_device device,
                       tsr_dtensor **out)
{
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, placement, 2, shape, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, device, out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status play_round(tsr_sync *sync, tsr_dtensor *const *x, tsr_dtensor *const *y, int round)
{
    unsigned char wanted[4 * MOST], got[4 * MOST];
    for (int i = 0; i < TENSORS; i++) {
        const size_t bytes = describe(x[i], i, round, wanted);
        const rows_memory memory = memory_of(x[i]);
        if (bytes > 0)
            TSR_TRY(rows_memory_put(&memory, wanted, bytes));
    }
    /* Runs that follow one another on a stream share the sync's memory. */
    TSR_TRY(tsr_sync_run(sync, (const tsr_dtensor *const *)x, y, NULL));
    TSR_TRY(tsr_sync_start(sync, (const tsr_dtensor *const *)x, y, NULL));
    TSR_TRY(tsr_sync_finish(sync));
    for (int i = 0; i < TENSORS; i++) {
        const size_t bytes = describe(y[i], i, round, wanted);
        const rows_memory memory = memory_of(y[i]);
        if (bytes > 0)
            TSR_TRY(rows_memory_get(&memory, got, bytes));
        CHECK(memcmp(got, wanted, bytes) == 0);
    }
    return TSR_OK;
}

static tsr_status play(tsr_comm *comm, void *arg)
{
    const tsr_device device = rows_machine_device(tsr_comm_rank(comm));
    tsr_mesh *from = NULL, *to = NULL;
    tsr_dtensor *x[TENSORS] = {NULL}, *y[TENSORS] = {NULL};
    tsr_sync_tensor sources[TENSORS], destinations[TENSORS];
    tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
    tsr_sync *sync = NULL;
    options.device = device;
    options.mode = *(const tsr_mode *)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &from));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@3", &to));
    for (int i = 0; i < TENSORS; i++) {
        TSR_TRY(make(from, tensors[i].from, tensors[i].from_dtype, device, &x[i]));
        TSR_TRY(make(to, tensors[i].to, tensors[i].to_dtype, device, &y[i]));
        sources[i] = (tsr_sync_tensor){tensors[i].name, tsr_dtensor_layout(x[i])};
        destinations[i] = (tsr_sync_tensor){tensors[i].name, tsr_dtensor_layout(y[i])};
    }
    TSR_TRY(tsr_sync_create(comm, TENSORS, sources, TENSORS, destinations, &options, &sync));
    for (int round = 0; round < ROUNDS; round++)
        TSR_TRY(play_round(sync, x, y, round));
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_sync_destroy(sync);
    for (int i = 0; i < TENSORS; i++) {
        tsr_dtensor_destroy(y[i]);
        tsr_dtensor_destroy(x[i]);
    }
    tsr_mesh_destroy(to);
    tsr_mesh_destroy(from);
    return TSR_OK;
}

static void runs_on_devices_follow_one_another(void **state)
{
    (void)state;
    tsr_mode mode = TSR_MODE_DIRECT;
    rows_machine_run(RANKS, play, &mode);
    mode = TSR_MODE_MESSAGE;
    rows_machine_run(RANKS, play, &mode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_on_devices_follow_one_another)};
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
