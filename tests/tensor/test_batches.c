/* tsr_redistribute_batch(): many dtensors in one call, planned once for their layouts in this
 * order, and what it refuses. */
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TENSORS = 3, SIDE = 8, KEPT = 2 };

/* Dtensors on one mesh of 4 ranks; rank 4 is outside. */
typedef struct fixture {
    tsr_mesh *mesh;
    tsr_dtensor *x[TENSORS], *y[TENSORS];
    const tsr_dtensor *in[TENSORS];
} fixture;

static const struct {
    const char *from, *to;
    int64_t rows;
    tsr_dtype dtype;
} rows[TENSORS] = {
    {"S(0),S(1)", "S(1),S(0)", SIDE, TSR_I32},
    {"P,R", "R,S(0)", SIDE, TSR_I32},
    {"S(0),S(0)", "R,R", 5, TSR_I16},
};

static tsr_status make_dtensor(const tsr_mesh *mesh, const char *placements, int64_t row_count, tsr_dtype dtype,
                               tsr_dtensor **out)
{
    const int64_t shape[] = {row_count, SIDE};
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, placements, 2, shape, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

static int64_t count_of(const tsr_dtensor *x)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    return local.ndim == 2 ? local.shape[0] * local.shape[1] : 0;
}

/* Every element of tensor i holds base + i. */
static void fill(const fixture *f, int base)
{
    for (int i = 0; i < TENSORS; i++) {
        void *data = tsr_dtensor_to_local(f->x[i]).data;
        for (int64_t k = 0; k < count_of(f->x[i]); k++) {
            if (rows[i].dtype == TSR_I32)
                ((int32_t *)data)[k] = base + i;
            else
                ((int16_t *)data)[k] = (int16_t)(base + i);
        }
    }
}

/* Checks the results; the second tensor is a sum of two terms, and so has twice its number. */
static tsr_status check_filled(const fixture *f, int base)
{
    for (int i = 0; i < TENSORS; i++) {
        const void *data = tsr_dtensor_to_local(f->y[i]).data;
        for (int64_t k = 0; k < count_of(f->y[i]); k++) {
            const int value = rows[i].dtype == TSR_I32 ? ((const int32_t *)data)[k] : ((const int16_t *)data)[k];
            CHECK(value == (i == 1 ? 2 : 1) * (base + i));
        }
    }
    return TSR_OK;
}

static tsr_status fixture_make(fixture *f, tsr_comm *comm)
{
    *f = (fixture){.mesh = NULL};
    TSR_TRY(mesh_over(comm, "2x2", &f->mesh));
    for (int i = 0; i < TENSORS; i++) {
        TSR_TRY(make_dtensor(f->mesh, rows[i].from, rows[i].rows, rows[i].dtype, &f->x[i]));
        TSR_TRY(make_dtensor(f->mesh, rows[i].to, rows[i].rows, rows[i].dtype, &f->y[i]));
        f->in[i] = f->x[i];
    }
    return TSR_OK;
}

static void fixture_destroy(fixture *f)
{
    for (int i = 0; i < TENSORS; i++) {
        tsr_dtensor_destroy(f->x[i]);
        tsr_dtensor_destroy(f->y[i]);
    }
    tsr_mesh_destroy(f->mesh);
}

static tsr_status check_cache(const tsr_mesh *mesh, int64_t hits, int64_t misses, int64_t entries)
{
    const tsr_cache_statistics s = tsr_mesh_cache_statistics(mesh);
    CHECK(s.hits == hits && s.misses == misses && s.entries == entries);
    return TSR_OK;
}

static tsr_status count_plans(tsr_comm *comm, void *arg)
{
    (void)arg;
    fixture f;
    TSR_TRY(fixture_make(&f, comm));
    for (int turn = 0; turn < 3; turn++) {
        fill(&f, 10 * turn);
        TSR_TRY(tsr_redistribute_batch(TENSORS, f.in, f.y, NULL));
        TSR_TRY(check_filled(&f, 10 * turn));
    }
    TSR_TRY(check_cache(f.mesh, 2, 1, 1));
    /* The first two tensors alone are another batch, and in another order a third batch. */
    const tsr_dtensor *in[] = {f.x[1], f.x[0]};
    tsr_dtensor *out[] = {f.y[1], f.y[0]};
    TSR_TRY(tsr_redistribute_batch(2, f.in, f.y, NULL));
    TSR_TRY(check_cache(f.mesh, 2, 2, 2));
    TSR_TRY(tsr_redistribute_batch(2, in, out, NULL));
    TSR_TRY(check_cache(f.mesh, 2, 3, 3));
    TSR_TRY(check_filled(&f, 20));
    /* A batch of one tensor and a call for it have the same plan. */
    TSR_TRY(tsr_redistribute_batch(1, f.in, f.y, NULL));
    TSR_TRY(tsr_redistribute_into(f.x[0], f.y[0], NULL));
    TSR_TRY(check_cache(f.mesh, 3, 4, 4));
    fixture_destroy(&f);
    return TSR_OK;
}

static void layouts_in_their_order_are_planned_once(void **state)
{
    (void)state;
    test_case("plans of batches counted");
    run_ranks(5, count_plans, NULL);
}

/* Where there is room for two plans, every rank drops the one that was used least recently. */
static tsr_status evict(tsr_comm *comm, void *arg)
{
    (void)arg;
    fixture f;
    TSR_TRY(fixture_make(&f, comm));
    fill(&f, 1);
    TSR_TRY(tsr_redistribute_batch(3, f.in, f.y, NULL));
    TSR_TRY(tsr_redistribute_batch(2, f.in, f.y, NULL));
    TSR_TRY(tsr_redistribute_batch(3, f.in, f.y, NULL));
    TSR_TRY(check_cache(f.mesh, 1, 2, KEPT));
    TSR_TRY(tsr_redistribute_into(f.x[0], f.y[0], NULL));
    TSR_TRY(tsr_redistribute_batch(3, f.in, f.y, NULL));
    TSR_TRY(check_cache(f.mesh, 2, 3, KEPT));
    TSR_TRY(tsr_redistribute_batch(2, f.in, f.y, NULL));
    TSR_TRY(check_cache(f.mesh, 2, 4, KEPT));
    TSR_TRY(check_filled(&f, 1));
    fixture_destroy(&f);
    return TSR_OK;
}

static void batches_and_single_tensors_share_a_bounded_cache(void **state)
{
    (void)state;
    tsr_context_options settings = TSR_CONTEXT_OPTIONS_INIT;
    settings.plan_cache_entries = KEPT;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    expect_ok(tsr_context_create(&settings, &options.context));
    test_case("a cache of two plans");
    expect_ok(tsr_threads_run(5, evict, NULL, &options));
    tsr_context_destroy(options.context);
}

static tsr_status make_driver(tsr_device_driver **out)
{
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "other";
    return tsr_device_driver_create(&table, self, out);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    (void)arg;
    fixture f;
    tsr_mesh *flat = NULL;
    tsr_dtensor *a = NULL, *b = NULL, *c = NULL;
    tsr_device_driver *driver = NULL;
    TSR_TRY(fixture_make(&f, comm));
    fill(&f, 5);
    tsr_dtensor *out[TENSORS] = {f.y[0], f.y[1], f.y[2]};
    CHECK_ERROR(tsr_redistribute_batch(0, f.in, out, NULL), TSR_ERROR_ARGUMENT, "count is 0");
    CHECK_ERROR(tsr_redistribute_batch(3, NULL, out, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_redistribute_batch(3, f.in, NULL, NULL), TSR_ERROR_ARGUMENT, "y is NULL");
    out[1] = NULL;
    CHECK_ERROR(tsr_redistribute_batch(3, f.in, out, NULL), TSR_ERROR_ARGUMENT,
                "tsr_redistribute_batch: tensor 1 of 3: y is NULL");
    out[1] = f.y[2];
    CHECK_ERROR(tsr_redistribute_batch(3, f.in, out, NULL), TSR_ERROR_ARGUMENT,
                "tsr_redistribute_batch: tensor 1 of 3: x is i32 8x8");
    out[1] = f.y[1];

    TSR_TRY(mesh_over(comm, "4", &flat));
    TSR_TRY(make_dtensor(flat, "S(0)", SIDE, TSR_I32, &a));
    TSR_TRY(make_dtensor(flat, "S(1)", SIDE, TSR_I32, &b));
    f.in[1] = a;
    out[1] = b;
    CHECK_ERROR(tsr_redistribute_batch(3, f.in, out, NULL), TSR_ERROR_ARGUMENT, "all must be on one mesh");
    TSR_TRY(make_driver(&driver));
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(f.x[1]), (tsr_device){driver, 0}, &c));
    f.in[1] = c;
    out[1] = f.y[1];
    CHECK_ERROR(tsr_redistribute_batch(3, f.in, out, NULL), TSR_ERROR_ARGUMENT, "tensor 1 of 3");
    CHECK_ERROR(tsr_redistribute_batch(1, &f.in[1], &out[1], NULL), TSR_ERROR_ARGUMENT, "device other:0");
    TSR_TRY(check_cache(f.mesh, 0, 0, 0));

    /* A rank outside the mesh takes no part. */
    f.in[1] = f.x[0];
    out[1] = f.y[0];
    const tsr_status wanted = tsr_comm_rank(comm) < 4 ? TSR_ERROR_ARGUMENT : TSR_OK;
    const tsr_status status = tsr_redistribute_batch(3, f.in, out, NULL);
    CHECK(status == wanted);
    CHECK(status == TSR_OK || strstr(tsr_status_message(), "overlaps memory of tensor"));
    f.in[1] = f.x[1];
    out[1] = f.y[1];
    TSR_TRY(tsr_redistribute_batch(3, f.in, out, NULL));
    TSR_TRY(check_filled(&f, 5));
    tsr_dtensor_destroy(c);
    tsr_device_driver_destroy(driver);
    tsr_dtensor_destroy(b);
    tsr_dtensor_destroy(a);
    tsr_mesh_destroy(flat);
    fixture_destroy(&f);
    return TSR_OK;
}

static void what_does_not_go_together_is_refused_by_a_sentence(void **state)
{
    (void)state;
    test_case("batches that are refused");
    run_ranks(5, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_in_their_order_are_planned_once),
        cmocka_unit_test(batches_and_single_tensors_share_a_bounded_cache),
        cmocka_unit_test(what_does_not_go_together_is_refused_by_a_sentence),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
