/**
 * Redistributions of rank threads whose memory is on devices with streams, where everything is done later and in any order that streams and
 * events allow: every byte is compared with the oracle, nothing is allocated or waited for, and no two operations race.
 */
#include "async_device.h"
#include "oracle_random.h"
#include "support.h"
#include "sweep.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/** What a sweep draws from. */
typedef struct recipe {
    int world, devices, mesh_ndim;
    bool two_meshes, lazy;
    int batch; /**< up to so many tensors together */
    int64_t elements, ranks_per_node;
    oracle_mesh mesh; /**< for sweeps of one */
    async_machine *machine;
} recipe;

static void check_machine(const recipe *r)
{
    const char *fault = async_fault(r->machine);
    if (fault)
        fail_msg("%s\ncase: %s", fault, test_case_text());
}

/** Handing round inside a node costs nothing, so that it is done wherever it can be. */
static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};

static void random_pair(oracle_random *random, const recipe *r, oracle_layout *src, oracle_layout *dst, oracle_numbers *numbers)
{
    src->dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 4, r->elements, src);
    src->mesh = oracle_random_mesh(random, r->mesh_ndim, r->world, r->world);
    *dst = *src;
    if (r->two_meshes)
        dst->mesh = oracle_random_mesh(random, r->mesh_ndim, r->world, r->world);
    oracle_random_placements(random, src, numbers);
    oracle_random_placements(random, dst, numbers);
}

static void add_others(oracle_random *random, const recipe *r, sweep_case *out)
{
    static sweep_pair others[SWEEP_TENSORS - 1];
    out->others = others;
    for (out->more = 0; out->more < r->batch - 1; out->more++) {
        others[out->more] = (sweep_pair){.numbers.count = 0};
        random_pair(random, r, &others[out->more].src, &others[out->more].dst, &others[out->more].numbers);
        if (r->two_meshes)
            continue;
        others[out->more].src.mesh = others[out->more].dst.mesh = out->src.mesh;
        others[out->more].numbers.count = 0;
        oracle_random_placements(random, &others[out->more].src, &others[out->more].numbers);
        oracle_random_placements(random, &others[out->more].dst, &others[out->more].numbers);
    }
}

static bool make_random(void *arg, int64_t number, sweep_case *out)
{
    static const sweep_cap caps[] = {CAP_LEAST, CAP_SOME};
    const recipe *r = arg;
    check_machine(r);
    const uint64_t seed = test_seed() * UINT64_C(1000000007) + (uint64_t)number + (uint64_t)r->world * 1000003;
    oracle_random random = {.state = seed};
    random_pair(&random, r, &out->src, &out->dst, &out->numbers);
    out->seed = seed;
    out->mode = oracle_random_below(&random, 3) == 0 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = !r->two_meshes && r->ranks_per_node == 0 && oracle_random_below(&random, 3) == 0 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = oracle_random_below(&random, 2) == 0;
    out->halves = oracle_random_below(&random, 3) == 0;
    const int64_t cap = oracle_random_below(&random, 8);
    out->cap = cap < 2 && out->way == WAY_PLAN ? caps[cap] : CAP_NONE;
    out->no_split = oracle_random_below(&random, 5) == 0;
    out->ranks_per_node = r->ranks_per_node;
    out->profile = r->ranks_per_node > 0 ? &quick_inside : NULL;
    add_others(&random, r, out);
    return true;
}

/** Every pair of lists over {R, S(0), S(1), P} on one mesh, in several shapes, with all dtypes in turn. */
static bool make_pair(void *arg, int64_t number, sweep_case *out)
{
    static const int64_t lengths[] = {0, 1, 3, 5, 8, 13};
    const recipe *r = arg;
    oracle_layout layout = {.mesh = r->mesh, .ndim = 2, .shape = {lengths[number % 5 + 1], lengths[number / 5 % 6]}};
    check_machine(r);
    layout.dtype = (tsr_dtype)(1 + number % (TSR_DTYPE_END - 1));
    const tsr_reduce_op op = layout.dtype == TSR_BOOL ? TSR_MAX : TSR_SUM; /* bool has no sum */
    const tsr_placement kinds[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(op)};
    out->src = out->dst = layout;
    int64_t pair = number;
    for (int m = 0; m < r->mesh.ndim; m++, pair /= 16) {
        out->src.placements[m] = kinds[pair % 4];
        out->dst.placements[m] = kinds[pair / 4 % 4];
    }
    out->seed = (uint64_t)number + test_seed();
    out->mode = number / 3 % 3 == 1 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = number % 3 == 2 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = number % 7 == 3;
    out->halves = number % 5 == 3;
    return true;
}

static void sweep_cases(recipe r, sweep_make *make, int64_t count, double seconds)
{
    const async_options options = {.devices = r.devices, .seed = test_seed() + (uint64_t)r.world, .lazy = r.lazy};
    sweep_device device = {.devices = r.devices, .held_up = async_held_up};
    tsr_device_driver *driver = NULL;
    r.machine = async_create(&options);
    assert_non_null(r.machine);
    assert_int_equal(tsr_device_driver_create(async_table(), r.machine, &driver), TSR_OK);
    device.driver = driver;
    for (int rank = 0; rank < r.world; rank++)
        assert_int_equal(async_table()->stream_create(r.machine, rank % r.devices, &device.streams[rank]), TSR_OK);
    move_sweep sweep = {
        .world = r.world, .make = make, .arg = &r, .count = count, .device = &device, .deadline = seconds > 0 ? test_now() + seconds : 0};
    assert_int_equal(sweep_run(&sweep), 0);
    check_machine(&r);
    tsr_device_driver_destroy(driver);
    async_destroy(r.machine);
    fprintf(stderr, "%d ranks on %d devices%s: %lld cases\n", r.world, r.devices, r.lazy ? ", lazy" : "", (long long)sweep.ran);
}

static void sweep_random(recipe r, double share)
{
    sweep_cases(r, make_random, INT64_MAX, test_seconds(12) * share);
}

static void every_pair_of_placements(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 0}, {2, 0}, {3, 0}, {8, 0}, {2, 2}, {3, 2}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        recipe r = {.devices = 1 + (int)i % 2, .mesh = oracle_mesh_make(shapes[i][1] > 0 ? 2 : 1, shapes[i], 0), .lazy = i % 3 == 2};
        r.world = (int)oracle_mesh_count(&r.mesh);
        sweep_cases(r, make_pair, r.mesh.ndim == 2 ? 256 : 5 * 16, 0);
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
    sweep_random((recipe){.world = 8, .devices = 3, .mesh_ndim = 3, .elements = 400, .two_meshes = true, .lazy = true}, 0.15);
}

static void batches(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 4, .devices = 1, .mesh_ndim = 2, .elements = 200, .batch = 3}, 0.05);
    sweep_random((recipe){.world = 7, .devices = 2, .mesh_ndim = 3, .elements = 200, .batch = 4, .two_meshes = true, .lazy = true}, 0.1);
}

static void moves_over_nodes(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 6, .devices = 2, .mesh_ndim = 3, .elements = 400, .ranks_per_node = 2}, 0.06);
    sweep_random((recipe){.world = 8, .devices = 1, .mesh_ndim = 3, .elements = 400, .ranks_per_node = 4, .lazy = true}, 0.07);
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
