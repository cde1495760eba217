/* A mesh finds a kept plan by the layouts for which it was made: what must not change by that. */
#include "ranks.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIZE = 8, ELEMENTS = SIZE * SIZE, MANY = 12 };

static tsr_status make_on(const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    const int64_t shape[] = {SIZE, SIZE};
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

/* Makes a replicated dtensor whose element with global number g is g. */
static tsr_status make_numbered(const tsr_mesh *mesh, tsr_dtensor **out)
{
    TSR_TRY(make_on(mesh, "R", out));
    float *values = tsr_dtensor_to_local(*out).data;
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)i;
    return TSR_OK;
}

static tsr_status check_shard(const tsr_dtensor *y, bool by_rows, int rank, int ranks)
{
    const tsr_tensor local = tsr_dtensor_to_local(y);
    const int row = by_rows ? rank * SIZE / ranks : 0, column = by_rows ? 0 : rank * SIZE / ranks;
    for (int64_t i = 0; i < local.shape[0]; i++)
        for (int64_t j = 0; j < local.shape[1]; j++)
            CHECK(((const float *)local.data)[i * local.shape[1] + j] == (float)((row + i) * SIZE + column + j));
    return TSR_OK;
}

static tsr_status replace_layouts(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_numbered(mesh, &x));
    for (int i = 0; i < MANY; i++) {
        tsr_dtensor *y = NULL;
        TSR_TRY(make_on(mesh, i % 2 ? "S(0)" : "S(1)", &y));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_shard(y, i % 2, tsr_comm_rank(comm), 2));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_shard(y, i % 2, tsr_comm_rank(comm), 2));
        tsr_dtensor_destroy(y);
    }
    const tsr_cache_statistics plans = tsr_mesh_cache_statistics(mesh);
    CHECK(plans.misses == 2 && plans.hits == 2 * MANY - 2);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_layout_is_not_taken_for_one_that_had_its_memory_before(void **state)
{
    (void)state;
    test_case("layouts made and destroyed");
    run_ranks(2, replace_layouts, NULL);
}

/* Dtensors of one rank alone, in a context of their own. */
typedef struct alone {
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_dtensor *at[MANY];
} alone;

static tsr_status stand_alone(alone *a)
{
    *a = (alone){0};
    TSR_TRY(tsr_comm_create_threads(1, NULL, &a->comm));
    TSR_TRY(tsr_mesh_parse(a->comm, NULL, "1", &a->mesh));
    for (int i = 0; i < MANY; i++)
        TSR_TRY(make_on(a->mesh, "R", &a->at[i]));
    return TSR_OK;
}

static void leave(alone *a)
{
    for (int i = 0; i < MANY; i++)
        tsr_dtensor_destroy(a->at[i]);
    tsr_mesh_destroy(a->mesh);
    tsr_comm_destroy(a->comm);
}

static tsr_status mix_contexts(tsr_comm *comm, void *arg)
{
    (void)comm;
    (void)arg;
    alone here, there;
    TSR_TRY(stand_alone(&here));
    TSR_TRY(stand_alone(&there));
    /* A context numbers layouts when it keeps a plan for them, so layouts of two contexts have
     * equal numbers. */
    for (int i = 1; i < MANY; i++)
        TSR_TRY(tsr_redistribute_into(there.at[0], there.at[i], NULL));
    for (int i = 1; i < MANY; i++) {
        TSR_TRY(tsr_redistribute_into(here.at[0], here.at[i], NULL));
        for (int k = 0; k < MANY; k++)
            CHECK_ERROR(tsr_redistribute_into(here.at[0], there.at[k], NULL), TSR_ERROR_ARGUMENT,
                        "the communicators differ");
    }
    leave(&there);
    leave(&here);
    return TSR_OK;
}

static void a_layout_is_not_taken_for_that_of_another_context(void **state)
{
    (void)state;
    test_case("two contexts");
    run_ranks(1, mix_contexts, NULL);
}

static tsr_status bring_bad_memory(tsr_comm *comm, void *arg)
{
    (void)arg;
    float memory[2 * ELEMENTS] = {0};
    tsr_layout *rows = NULL, *all = NULL;
    tsr_dtensor *x = NULL, *good = NULL, *over = NULL, *flat = NULL;
    TSR_TRY(layout_over(comm, "1", "8x8", "S(0)", TSR_F32, &rows));
    const tsr_placement replicate = tsr_replicate();
    TSR_TRY(tsr_layout_with(rows, &replicate, &all));
    const tsr_tensor source = tsr_tensor_contiguous(memory, TSR_F32, 2, tsr_layout_shape(all));
    const tsr_tensor apart = tsr_tensor_contiguous(memory + ELEMENTS, TSR_F32, 2, tsr_layout_shape(all));
    const tsr_tensor shifted = tsr_tensor_contiguous(memory + 1, TSR_F32, 2, tsr_layout_shape(all));
    tsr_tensor repeated = apart;
    repeated.strides[0] = 0;
    TSR_TRY(tsr_dtensor_from_local(&source, rows, NULL, &x));
    TSR_TRY(tsr_dtensor_from_local(&apart, all, NULL, &good));
    TSR_TRY(tsr_dtensor_from_local(&shifted, all, NULL, &over));
    TSR_TRY(tsr_dtensor_from_local(&repeated, all, NULL, &flat));
    for (int i = 0; i < 2; i++) {
        TSR_TRY(tsr_redistribute_into(x, good, NULL));
        CHECK_ERROR(tsr_redistribute_into(x, over, NULL), TSR_ERROR_ARGUMENT, "overlap");
        CHECK_ERROR(tsr_redistribute_into(x, flat, NULL), TSR_ERROR_ARGUMENT, "share memory");
    }
    tsr_dtensor_destroy(flat);
    tsr_dtensor_destroy(over);
    tsr_dtensor_destroy(good);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(all);
    tsr_layout_destroy(rows);
    return TSR_OK;
}

static void tensors_are_checked_also_where_their_layouts_were_before(void **state)
{
    (void)state;
    test_case("memory that does not do");
    run_ranks(1, bring_bad_memory, NULL);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_not_taken_for_one_that_had_its_memory_before),
        cmocka_unit_test(a_layout_is_not_taken_for_that_of_another_context),
        cmocka_unit_test(tensors_are_checked_also_where_their_layouts_were_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
