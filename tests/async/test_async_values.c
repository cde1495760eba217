/* What works on a dtensor's elements where they are, and rows in new numbers, on devices with
 * streams: each call in the order of its stream, and waited for once. */
#include "fixture.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, COLUMNS = 10, COUNT = ROWS * COLUMNS, RANKS = 4 };

static tsr_status make(tsr_comm *comm, const fixture *f, const char *mesh, const char *placements, tsr_dtype dtype,
                       tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(layout_over(comm, mesh, "40x10", placements, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, fixture_device(f, tsr_comm_rank(comm)), out);
    tsr_layout_destroy(layout);
    return status;
}

/* Every element of an f32 shard is `value`, once the rank's stream is done. */
static tsr_status check_all(const fixture *f, int rank, const tsr_dtensor *x, float value)
{
    float got[COUNT];
    int64_t count;
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_tensor_count(&local, &count));
    TSR_TRY(fixture_get(f, rank, got, local.data, (size_t)count * sizeof *got));
    TSR_TRY(fixture_wait(f, rank));
    for (int64_t i = 0; i < count; i++)
        CHECK(got[i] == value);
    return TSR_OK;
}

static tsr_status fill_and_add(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_stream stream = f->device.streams[rank];
    tsr_dtensor *x = NULL, *y = NULL, *narrow = NULL, *view = NULL;
    TSR_TRY(make(comm, f, "4", "S(0)", TSR_F32, &x));
    TSR_TRY(tsr_dtensor_like(x, &y));
    TSR_TRY(tsr_dtensor_like_as(x, TSR_BF16, &narrow));
    TSR_TRY(tsr_dtensor_fill(x, 2, stream));
    TSR_TRY(tsr_dtensor_fill(narrow, 0.5, stream));
    TSR_TRY(tsr_dtensor_fill(y, 1, stream));
    for (int round = 0; round < 3; round++) {
        TSR_TRY(tsr_dtensor_accumulate(x, y, stream));
        TSR_TRY(tsr_dtensor_accumulate(narrow, y, stream));
    }
    TSR_TRY(check_all(f, rank, y, 8.5F));
    TSR_TRY(tsr_dtensor_rows(y, 0, ROWS, &view));
    TSR_TRY(tsr_dtensor_fill(view, -3, stream));
    TSR_TRY(check_all(f, rank, y, -3));
    tsr_dtensor_destroy(view);
    tsr_dtensor_destroy(narrow);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void shards_are_filled_and_added_in_the_order_of_a_stream(void **state)
{
    (void)state;
    fixture_run(RANKS, (async_options){.devices = 1}, fill_and_add, NULL);
    fixture_run(RANKS, (async_options){.devices = 3, .lazy = true}, fill_and_add, NULL);
}

/* On the default stream, as calls without a stream work. */
static tsr_status sum_up(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    static const char *const layouts[] = {"S(0),S(1)", "R,S(0)", "R,R", "S(0;interleave=2),R"};
    for (int i = 0; i < 4; i++) {
        tsr_dtensor *x = NULL, *view = NULL;
        double sum = 0, norm = 0;
        TSR_TRY(make(comm, f, "2x2", layouts[i], TSR_F16, &x));
        TSR_TRY(tsr_dtensor_fill(x, 1.5, NULL));
        TSR_TRY(tsr_dtensor_sum(x, &sum));
        TSR_TRY(tsr_dtensor_norm(x, &norm));
        CHECK(sum == 1.5 * COUNT && norm == sqrt(2.25 * COUNT));
        TSR_TRY(tsr_dtensor_rows(x, 3, 17, &view));
        TSR_TRY(tsr_dtensor_fill(view, -1, NULL));
        TSR_TRY(tsr_dtensor_sum(x, &sum));
        CHECK(sum == 1.5 * (COUNT - 14 * COLUMNS) - 14 * COLUMNS);
        tsr_dtensor_destroy(view);
        tsr_dtensor_destroy(x);
    }
    return TSR_OK;
}

static void sums_go_over_the_host(void **state)
{
    (void)state;
    fixture_run(RANKS, (async_options){.devices = 2}, sum_up, NULL);
    fixture_run(RANKS, (async_options){.devices = 4, .lazy = true}, sum_up, NULL);
}

/* Several moves between two meshes, each of a value of its own. */
static tsr_status move_across(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_stream stream = f->device.streams[rank];
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(make(comm, f, "3@0", "S(0)", TSR_F32, &x));
    TSR_TRY(make(comm, f, "2@2", "S(1)", TSR_F32, &y));
    for (int round = 1; round <= 4; round++) {
        TSR_TRY(tsr_dtensor_fill(x, round, stream));
        TSR_TRY(tsr_redistribute_into(x, y, stream));
        TSR_TRY(check_all(f, rank, y, (float)round));
    }
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void tensors_move_between_meshes(void **state)
{
    (void)state;
    fixture_run(RANKS, (async_options){.devices = 2}, move_across, NULL);
    fixture_run(RANKS, (async_options){.devices = 4, .lazy = true}, move_across, NULL);
}

/* In step s, rank r has r + s + to rows for rank `to`, filled with 100 * s + 10 * r + to. */
static tsr_status exchange_rows(tsr_comm *comm, void *arg)
{
    enum { WIDTH = 3, MOST = 64, STEPS = 3 };
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_stream stream = f->device.streams[rank];
    static _Thread_local float host[STEPS][MOST * WIDTH], got[STEPS][MOST * WIDTH];
    int64_t from[STEPS][RANKS];
    void *send[STEPS], *receive[STEPS];
    for (int s = 0; s < STEPS; s++) {
        int64_t counts[RANKS], rows = 0;
        for (int to = 0; to < RANKS; to++) {
            counts[to] = rank + s + to;
            for (int64_t i = 0; i < counts[to] * WIDTH; i++)
                host[s][rows * WIDTH + i] = (float)(100 * s + 10 * rank + to);
            rows += counts[to];
        }
        TSR_TRY(fixture_alloc(f, rank, sizeof host[s], &send[s]));
        TSR_TRY(fixture_alloc(f, rank, sizeof got[s], &receive[s]));
        TSR_TRY(fixture_put(f, rank, send[s], host[s], sizeof host[s]));
        tsr_tensor have = tsr_tensor_contiguous(send[s], TSR_F32, 2, (const int64_t[]){rows, WIDTH});
        tsr_tensor room = tsr_tensor_contiguous(receive[s], TSR_F32, 2, (const int64_t[]){MOST, WIDTH});
        have.device = room.device = fixture_device(f, rank);
        TSR_TRY(tsr_comm_exchange_rows(comm, &have, counts, &room, from[s], stream));
        TSR_TRY(fixture_get(f, rank, got[s], receive[s], sizeof got[s]));
    }
    TSR_TRY(fixture_wait(f, rank));
    for (int s = 0; s < STEPS; s++) {
        const float *at = got[s];
        for (int r = 0; r < RANKS; r++) {
            CHECK(from[s][r] == r + s + rank);
            for (int64_t i = 0; i < from[s][r] * WIDTH; i++)
                CHECK(*at++ == (float)(100 * s + 10 * r + rank));
        }
    }
    TSR_TRY(tsr_comm_barrier(comm));
    for (int s = 0; s < STEPS; s++) {
        fixture_free(f, rank, send[s], sizeof host[s]);
        fixture_free(f, rank, receive[s], sizeof got[s]);
    }
    return TSR_OK;
}

static void rows_in_new_numbers_are_enqueued(void **state)
{
    (void)state;
    fixture_run(RANKS, (async_options){.devices = 1}, exchange_rows, NULL);
    fixture_run(RANKS, (async_options){.devices = 4, .lazy = true}, exchange_rows, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_filled_and_added_in_the_order_of_a_stream),
        cmocka_unit_test(sums_go_over_the_host),
        cmocka_unit_test(tensors_move_between_meshes),
        cmocka_unit_test(rows_in_new_numbers_are_enqueued),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
