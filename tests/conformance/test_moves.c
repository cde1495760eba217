/* Redistributions of rank threads whose tensors lie on the device. Every byte is compared with the
 * oracle. */
#include "devices.h"
#include "recipes.h"
#include "support.h"
#include "variants.h"

#include <stdbool.h>

static bool has_streams(const tsr_device_table *table)
{
    return table->stream_create != NULL;
}

/* Runs cases 0 to count - 1 of a recipe, of which each rank has a stream of its own. */
static void sweep_cases(recipe r, sweep_make *make, int64_t count)
{
    void *self;
    const tsr_device_table *const table = devices_table(&self);
    sweep_device device = {.driver = devices_driver(), .devices = r.devices};
    for (int rank = 0; rank < r.world && has_streams(table); rank++)
        assert_int_equal(table->stream_create(self, rank % r.devices, &device.streams[rank]), TSR_OK);
    move_sweep sweep = {.world = r.world, .make = make, .arg = &r, .count = count, .device = &device};
    assert_int_equal(sweep_run(&sweep), 0);
    for (int rank = 0; rank < r.world && has_streams(table); rank++)
        table->stream_destroy(self, rank % r.devices, device.streams[rank]);
}

static void every_pair_of_placements(void **state)
{
    static const int64_t shapes[][2] = {{1, 0}, {2, 0}, {3, 0}, {2, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        recipe r = {.devices = i % 2 == 1 ? devices_count() : 1,
                    .mesh = oracle_mesh_make(shapes[i][1] > 0 ? 2 : 1, shapes[i], 0)};
        r.world = (int)oracle_mesh_count(&r.mesh);
        sweep_cases(r, recipe_pair, r.mesh.ndim == 2 ? 256 : 5 * 16);
    }
}

static void random_layouts_on_one_mesh(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks += 2)
        sweep_cases(
            (recipe){.world = ranks, .devices = ranks % 4 == 0 ? devices_count() : 1, .mesh_ndim = 3, .elements = 400},
            recipe_random, 40);
}

static void random_layouts_on_two_meshes(void **state)
{
    (void)state;
    sweep_cases((recipe){.world = 5, .devices = devices_count(), .mesh_ndim = 2, .elements = 300, .two_meshes = true},
                recipe_random, 60);
}

static void several_tensors_at_once(void **state)
{
    (void)state;
    sweep_cases((recipe){.world = 4, .devices = devices_count(), .mesh_ndim = 2, .elements = 200, .batch = 4},
                recipe_random, 40);
}

int devices_moves(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_placements),
        cmocka_unit_test(random_layouts_on_one_mesh),
        cmocka_unit_test(random_layouts_on_two_meshes),
        cmocka_unit_test(several_tensors_at_once),
    };
    return cmocka_run_group_tests_name("moves", tests, NULL, NULL);
}
