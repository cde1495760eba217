/* Seeded random redistributions: all splits, units, blocks, orders, ops and dtypes, up to 5 dims,
 * strides, and two different meshes. */
#include "support.h"
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a sweep draws its cases from. */
typedef struct recipe {
    int world;
    int mesh_ndim;
    bool two_meshes;
    sweep_engine engine;
    int batch; /* upper bound of the tensors moved together; 0: one */
    int64_t elements;
    tsr_nodes nodes;
    bool unequal; /* nodes of any sizes, drawn for each case, which `node` lists */
    int64_t node[ORACLE_MAX_RANKS];
    tsr_objective objective;
} recipe;

static void random_layouts(oracle_random *random, const recipe *r, sweep_case *out)
{
    out->src.dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 5, r->elements, &out->src);
    const int64_t most = 1 + oracle_random_below(random, r->world);
    out->src.mesh = oracle_random_mesh(random, r->mesh_ndim, most, r->world);
    out->dst = out->src;
    if (r->two_meshes)
        out->dst.mesh = oracle_random_mesh(random, r->mesh_ndim, 1 + oracle_random_below(random, r->world), r->world);
    oracle_random_placements(random, &out->src, &out->numbers);
    oracle_random_placements(random, &out->dst, &out->numbers);
}

/* Half of the pairs on one mesh differ in few placements, as moves in models do, so that cuts and
 * terms are kept. */
static void take_over_some(oracle_random *random, sweep_case *c)
{
    oracle_layout dst = c->src;
    bool mixed = false;
    for (int m = 0; m < dst.mesh.ndim; m++) {
        if (oracle_random_below(random, 2) == 0)
            continue;
        const tsr_placement kinds[] = {{.kind = TSR_REPLICATE, .order = TSR_ORDER_DEFAULT},
                                       {.kind = TSR_PARTIAL, .order = TSR_ORDER_DEFAULT}};
        dst.placements[m] = kinds[oracle_random_below(random, 2)];
        dst.placements[m].op = oracle_has_op(dst.dtype, TSR_SUM) ? TSR_SUM : TSR_MAX;
    }
    tsr_reduce_op op = TSR_REDUCE_OP_END;
    for (int m = 0; m < dst.mesh.ndim; m++) {
        if (dst.placements[m].kind != TSR_PARTIAL)
            continue;
        const tsr_reduce_op plain = dst.placements[m].op == TSR_AVG ? TSR_SUM : dst.placements[m].op;
        mixed = mixed || (op != TSR_REDUCE_OP_END && plain != op);
        op = plain;
    }
    /* Where cuts are removed, the remaining ones may cut longer pieces, which explicit sizes would
     * not fit. */
    for (int m = 0; m < dst.mesh.ndim; m++)
        mixed = mixed || (dst.placements[m].kind == TSR_SHARD && (dst.placements[m].sizes || dst.placements[m].blocks));
    if (!mixed)
        c->dst = dst;
}

/* Sharing within a node costs nothing, so it is done wherever possible; one step is faster than
 * two. */
static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};

/* Adds other pairs to the first: of all dtypes and shapes, and on meshes of their own where there
 * are two. */
static void add_others(oracle_random *random, const recipe *r, sweep_case *out)
{
    static sweep_pair others[SWEEP_TENSORS - 1];
    if (r->batch == 0)
        return;
    memset(others, 0, sizeof others);
    out->others = others;
    for (out->more = 0; out->more < r->batch - 1 && oracle_random_below(random, 4) > 0; out->more++) {
        sweep_pair *pair = &others[out->more];
        pair->src.dtype = oracle_random_dtype(random);
        oracle_random_shape(random, 4, r->elements, &pair->src);
        pair->src.mesh = r->two_meshes ? oracle_random_mesh(random, r->mesh_ndim, r->world, r->world) : out->src.mesh;
        pair->dst = pair->src;
        pair->dst.mesh = r->two_meshes ? oracle_random_mesh(random, r->mesh_ndim, r->world, r->world) : out->dst.mesh;
        oracle_random_placements(random, &pair->src, &pair->numbers);
        oracle_random_placements(random, &pair->dst, &pair->numbers);
    }
}

/* In halves, in as many rounds as can be, without splitting. */
static void choose_execution(oracle_random *random, sweep_case *out)
{
    static const sweep_cap caps[] = {CAP_LEAST, CAP_SOME};
    out->halves = oracle_random_below(random, 3) == 0;
    const int64_t cap = oracle_random_below(random, 8);
    out->cap = cap < 2 && out->way == WAY_PLAN ? caps[cap] : CAP_NONE;
    out->no_split = oracle_random_below(random, 5) == 0;
}

/* The nodes are those of the recipe until the next case. */
static void choose_nodes(oracle_random *random, recipe *r, sweep_case *out)
{
    if (r->unequal) {
        oracle_random_nodes(random, r->world, r->node);
        r->nodes = (tsr_nodes){0, r->world, r->node};
    }
    out->nodes = r->nodes;
    out->profile = r->nodes.ranks_per_node > 0 || r->nodes.count > 0 ? &quick_inside : NULL;
}

static bool make_random(void *arg, int64_t number, sweep_case *out)
{
    recipe *r = arg;
    const uint64_t seed = test_seed() * UINT64_C(1000000007) + (uint64_t)number + (uint64_t)r->world * 1000003;
    oracle_random random = {.state = seed};
    random_layouts(&random, r, out);
    if (!r->two_meshes && oracle_random_below(&random, 2) == 0)
        take_over_some(&random, out);
    out->seed = seed;
    out->mode = oracle_random_below(&random, 2) ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = !r->two_meshes && oracle_random_below(&random, 3) == 0 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = oracle_random_below(&random, 2) == 0;
    choose_execution(&random, out);
    add_others(&random, r, out);
    choose_nodes(&random, r, out);
    out->objective = r->objective;
    if (r->two_meshes && out->more == 0 && oracle_random_below(&random, 3) == 0) {
        out->way = WAY_DTENSORS;
        out->cap = CAP_NONE;
    }
    if (out->profile || r->objective != TSR_OBJECTIVE_BYTES)
        out->way = WAY_PLAN;
    return true;
}

static const char *const engine_names[] = {"", ", messages", ", lent"};

static void sweep_random(recipe r, double share)
{
    move_sweep sweep = {.world = r.world,
                        .make = make_random,
                        .arg = &r,
                        .count = INT64_MAX,
                        .engine = r.engine,
                        .deadline = test_now() + test_seconds(15) * share};
    assert_int_equal(sweep_run(&sweep), 0);
    fprintf(stderr, "%d ranks, %s%s: %lld cases\n", r.world, r.two_meshes ? "two meshes" : "one mesh",
            engine_names[r.engine], (long long)sweep.ran);
}

static void random_layouts_on_one_mesh(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 2, .mesh_ndim = 3, .elements = 600}, 0.1);
    sweep_random((recipe){.world = 4, .mesh_ndim = 4, .elements = 800}, 0.2);
    sweep_random((recipe){.world = 8, .mesh_ndim = 5, .elements = 800}, 0.2);
    sweep_random((recipe){.world = 12, .mesh_ndim = 5, .elements = 1000}, 0.1);
}

static void random_layouts_between_two_meshes(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 3, .mesh_ndim = 2, .two_meshes = true, .elements = 600}, 0.1);
    sweep_random((recipe){.world = 8, .mesh_ndim = 4, .two_meshes = true, .elements = 800}, 0.2);
    sweep_random((recipe){.world = 12, .mesh_ndim = 4, .two_meshes = true, .elements = 1000}, 0.1);
}

static void random_layouts_over_an_engine_that_only_has_messages(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 5, .mesh_ndim = 4, .engine = ENGINE_MESSAGES, .elements = 800}, 0.1);
    sweep_random((recipe){.world = 7, .mesh_ndim = 3, .two_meshes = true, .engine = ENGINE_MESSAGES, .elements = 800},
                 0.1);
}

static void random_batches(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 4, .mesh_ndim = 3, .batch = 3, .elements = 500}, 0.05);
    sweep_random((recipe){.world = 7, .mesh_ndim = 3, .batch = SWEEP_TENSORS, .two_meshes = true, .elements = 500},
                 0.05);
    sweep_random((recipe){.world = 5, .mesh_ndim = 3, .batch = 4, .engine = ENGINE_MESSAGES, .elements = 500}, 0.05);
    sweep_random(
        (recipe){.world = 6, .mesh_ndim = 3, .batch = 4, .two_meshes = true, .engine = ENGINE_LENT, .elements = 500},
        0.05);
}

static void random_layouts_over_an_engine_that_is_lent(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 6, .mesh_ndim = 4, .two_meshes = true, .engine = ENGINE_LENT, .elements = 800},
                 0.05);
}

static void random_layouts_over_nodes(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 6, .mesh_ndim = 3, .elements = 800, .nodes.ranks_per_node = 2}, 0.05);
    sweep_random((recipe){.world = 8, .mesh_ndim = 4, .elements = 800, .nodes.ranks_per_node = 4}, 0.05);
    sweep_random((recipe){.world = 9, .mesh_ndim = 3, .two_meshes = true, .elements = 800, .nodes.ranks_per_node = 3},
                 0.05);
    sweep_random((recipe){.world = 7,
                          .mesh_ndim = 3,
                          .two_meshes = true,
                          .engine = ENGINE_MESSAGES,
                          .elements = 800,
                          .nodes.ranks_per_node = 2},
                 0.05);
}

static void random_layouts_over_nodes_of_unequal_size(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 8, .mesh_ndim = 4, .elements = 800, .unequal = true}, 0.05);
    sweep_random((recipe){.world = 9, .mesh_ndim = 3, .two_meshes = true, .elements = 800, .unequal = true}, 0.05);
    sweep_random(
        (recipe){.world = 6, .mesh_ndim = 3, .batch = 3, .engine = ENGINE_MESSAGES, .elements = 500, .unequal = true},
        0.05);
}

static void random_layouts_for_time(void **state)
{
    (void)state;
    sweep_random((recipe){.world = 8, .mesh_ndim = 4, .elements = 800, .objective = TSR_OBJECTIVE_TIME}, 0.05);
    sweep_random(
        (recipe){.world = 6, .mesh_ndim = 3, .two_meshes = true, .elements = 800, .objective = TSR_OBJECTIVE_TIME},
        0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts_on_one_mesh),
        cmocka_unit_test(random_layouts_between_two_meshes),
        cmocka_unit_test(random_layouts_over_an_engine_that_only_has_messages),
        cmocka_unit_test(random_layouts_over_an_engine_that_is_lent),
        cmocka_unit_test(random_batches),
        cmocka_unit_test(random_layouts_over_nodes),
        cmocka_unit_test(random_layouts_over_nodes_of_unequal_size),
        cmocka_unit_test(random_layouts_for_time),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
