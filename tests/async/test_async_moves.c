/* Redistributions of rank threads whose memory is on devices with streams, which run work later and
 * in any order that streams and events allow. Every byte is compared with the oracle, no execution
 * allocates or waits, and no two operations race. */
#include "async_device.h"
#include "recipes.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void check_machine(void *machine)
{
    const char *fault = async_fault(machine);
    if (fault)
        fail_msg("%s\ncase: %s", fault, test_case_text());
}

static void sweep_cases(recipe r, sweep_make *make, int64_t count, double seconds)
{
    const async_options options = {.devices = r.devices, .seed = test_seed() + (uint64_t)r.world, .lazy = r.lazy};
    sweep_device device = {.devices = r.devices, .held_up = async_held_up};
    tsr_device_driver *driver = NULL;
    async_machine *const machine = async_create(&options);
    assert_non_null(machine);
    r.machine = machine;
    r.check = check_machine;
    assert_int_equal(tsr_device_driver_create(async_table(), machine, &driver), TSR_OK);
    device.driver = driver;
    for (int rank = 0; rank < r.world; rank++)
        assert_int_equal(async_table()->stream_create(machine, rank % r.devices, &device.streams[rank]), TSR_OK);
    move_sweep sweep = {.world = r.world,
                        .make = make,
                        .arg = &r,
                        .count = count,
                        .device = &device,
                        .deadline = seconds > 0 ? test_now() + seconds : 0};
    assert_int_equal(sweep_run(&sweep), 0);
    recipe_check(&r);
    tsr_device_driver_destroy(driver);
    async_destroy(machine);
    fprintf(stderr, "%d ranks on %d devices%s: %lld cases\n", r.world, r.devices, r.lazy ? ", lazy" : "",
            (long long)sweep.ran);
}

static void sweep_random(recipe r, double share)
{
    sweep_cases(r, recipe_random, INT64_MAX, test_seconds(12) * share);
}

static void every_pair_of_placements(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 0}, {2, 0}, {3, 0}, {8, 0}, {2, 2}, {3, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        recipe r = {.devices = 1 + (int)i % 2,
                    .mesh = oracle_mesh_make(shapes[i][1] > 0 ? 2 : 1, shapes[i], 0),
                    .lazy = i % 3 == 2};
        r.world = (int)oracle_mesh_count(&r.mesh);
        sweep_cases(r, recipe_pair, r.mesh.ndim == 2 ? 256 : 5 * 16, 0);
    }
}

static void moves_on_one_mesh(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 1, .devices = 1, .mesh_ndim = 2, .elements = 200}, 0.02);
    sweep_random((recipe){.world = 2, .devices = 1, .mesh_ndim = 2, .elements = 300}, 0.1);
    sweep_random((recipe){.world = 3, .devices = 2, .mesh_ndim = 2, .elements = 300, .lazy = true}, 0.1);
    sweep_random((recipe){.world = 4, .devices = 2, .mesh_ndim = 3, .elements = 400}, 0.1);
    sweep_random((recipe){.world = 8, .devices = 1, .mesh_ndim = 3, .elements = 400}, 0.15);
}

static void moves_between_two_meshes(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 5, .devices = 1, .mesh_ndim = 2, .elements = 300, .two_meshes = true}, 0.1);
    sweep_random((recipe){.world = 8, .devices = 3, .mesh_ndim = 3, .elements = 400, .two_meshes = true, .lazy = true},
                 0.15);
}

static void batches(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 4, .devices = 1, .mesh_ndim = 2, .elements = 200, .batch = 3}, 0.05);
    sweep_random(
        (recipe){
            .world = 7, .devices = 2, .mesh_ndim = 3, .elements = 200, .batch = 4, .two_meshes = true, .lazy = true},
        0.1);
}

static void moves_over_nodes(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 6, .devices = 2, .mesh_ndim = 3, .elements = 400, .nodes.ranks_per_node = 2}, 0.06);
    sweep_random(
        (recipe){.world = 8, .devices = 1, .mesh_ndim = 3, .elements = 400, .nodes.ranks_per_node = 4, .lazy = true},
        0.07);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_placements), cmocka_unit_test(moves_on_one_mesh),
        cmocka_unit_test(moves_between_two_meshes), cmocka_unit_test(batches),
        cmocka_unit_test(moves_over_nodes),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
