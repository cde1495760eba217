/*
 * Redistributions of rank threads whose memory is on GPUs where there are some, else on emulated
 * ones that work late and in any order that streams and events allow: 1 to 8 ranks on one GPU and
 * on two, every dtype, odd sizes, gaps, both modes. Every byte is compared with the oracle.
 */
#include "gpus.h"
#include "recipes.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void sweep_cases(tsr_device_driver *driver, recipe r, sweep_make *make, int64_t count, double seconds)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(driver, &self);
    sweep_device device = {.driver = driver, .devices = r.devices};
    for (int rank = 0; rank < r.world; rank++)
        assert_int_equal(table->stream_create(self, rank % r.devices, &device.streams[rank]), TSR_OK);
    move_sweep sweep = {.world = r.world,
                        .make = make,
                        .arg = &r,
                        .count = count,
                        .device = &device,
                        .deadline = seconds > 0 ? test_now() + seconds : 0};
    assert_int_equal(sweep_run(&sweep), 0);
    for (int rank = 0; rank < r.world; rank++)
        table->stream_destroy(self, rank % r.devices, device.streams[rank]);
    fprintf(stderr, "%d ranks on %d GPUs: %lld cases\n", r.world, r.devices, (long long)sweep.ran);
}

/* Of the running test. */
static int no_gpus(void **state)
{
    static gpus g;
    g = (gpus){0};
    *state = &g;
    return 0;
}

static int close_gpus(void **state)
{
    tsr_device_driver_destroy(((gpus *)*state)->driver);
    return 0;
}

static const gpus *open_gpus(void **state)
{
    gpus_open(*state);
    return *state;
}

static void every_pair_of_placements(void **state)
{
    static const int64_t shapes[][2] = {{1, 0}, {2, 0}, {3, 0}, {8, 0}, {2, 2}};
    const gpus *g = open_gpus(state);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        recipe r = {.devices = i % 2 == 1 ? g->count : 1,
                    .mesh = oracle_mesh_make(shapes[i][1] > 0 ? 2 : 1, shapes[i], 0)};
        r.world = (int)oracle_mesh_count(&r.mesh);
        sweep_cases(g->driver, r, recipe_pair, r.mesh.ndim == 2 ? 256 : 5 * 16, 0);
    }
}

static void sweep_random(const gpus *g, recipe r, double share)
{
    sweep_cases(g->driver, r, recipe_random, INT64_MAX, test_seconds(8) * share);
}

static void moves_on_one_mesh(void **state)
{
    const gpus *g = open_gpus(state);
    for (int ranks = 1; ranks <= 8; ranks++)
        sweep_random(
            g, (recipe){.world = ranks, .devices = 1 + ranks % 2 * (g->count - 1), .mesh_ndim = 3, .elements = 400},
            0.08);
}

static void moves_between_two_meshes(void **state)
{
    const gpus *g = open_gpus(state);
    sweep_random(g, (recipe){.world = 5, .devices = 1, .mesh_ndim = 2, .elements = 300, .two_meshes = true}, 0.08);
    sweep_random(g, (recipe){.world = 8, .devices = g->count, .mesh_ndim = 3, .elements = 400, .two_meshes = true},
                 0.1);
}

static void batches(void **state)
{
    const gpus *g = open_gpus(state);
    sweep_random(
        g, (recipe){.world = 7, .devices = g->count, .mesh_ndim = 3, .elements = 200, .batch = 4, .two_meshes = true},
        0.1);
}

static void moves_over_nodes(void **state)
{
    const gpus *g = open_gpus(state);
    sweep_random(
        g, (recipe){.world = 8, .devices = g->count, .mesh_ndim = 3, .elements = 400, .nodes.ranks_per_node = 4}, 0.08);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, no_gpus, close_gpus)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_placements), TEST(moves_on_one_mesh), TEST(moves_between_two_meshes), TEST(batches),
        TEST(moves_over_nodes),
    };
    test_watchdog(200);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
