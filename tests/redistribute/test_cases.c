/* Named cases: known bounds, the pairs of PyTorch's tests, and cases in which other systems had
 * bugs. */
#include "layouts.h"
#include "support.h"
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The most elements that any rank receives. */
typedef struct known_bound {
    const char *mesh, *shape, *from, *to;
    int64_t most;
} known_bound;

static const known_bound bounds[] = {
    {"8", "64x64", "S(0)", "S(1)", 448},
    {"4x2", "64x64", "S(0),S(1)", "S(1),S(0)", 512},
    {"4x2", "64x64", "S(0)[0],S(0)[1]", "S(0)[1],S(0)[0]", 512},
    {"4x2", "16x16x16", "S(2),S(0)", "S(1)[0],S(1)[1]", 448},
    {"4x2", "64x64", "S(0),R", "R,S(0)", 2048},
    {"4x2", "64x64", "S(0),R", "R,S(1)", 1536},
    {"8", "64x64", "S(0)", "R", 3584},
    {"4x2", "64x64", "S(0)[0],S(0)[1]", "S(0),S(1)", 256},
};

static int64_t received_by(const tsr_layout *src, const tsr_layout *dst, int64_t rank, tsr_mode mode, int64_t *sent)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    options.mode = mode;
    tsr_plan *plan = NULL;
    expect_ok(tsr_plan_create(src, dst, &options, &plan));
    const int64_t received = tsr_plan_bytes_received(plan);
    *sent += tsr_plan_bytes_sent(plan);
    tsr_plan_destroy(plan);
    return received;
}

static void no_rank_receives_more_than_the_known_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof bounds / sizeof bounds[0]; i++) {
        const known_bound *row = &bounds[i / 2];
        tsr_layout *src = layout_of(row->mesh, row->shape, row->from), *dst = layout_of(row->mesh, row->shape, row->to);
        const int64_t ranks = tsr_mesh_count(tsr_layout_mesh(src));
        int64_t most = 0, received = 0, sent = 0;
        for (int64_t r = 0; r < ranks; r++) {
            const int64_t own = received_by(src, dst, r, i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, &sent);
            most = own > most ? own : most;
            received += own;
        }
        test_case("--mesh %s --shape %s --from %s --to %s", row->mesh, row->shape, row->from, row->to);
        if (most != 4 * row->most)
            fail_msg("%lld elements, not %lld: %s", (long long)(most / 4), (long long)row->most, test_case_text());
        assert_int_equal(sent, received);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

/* Executes a case in every mode, with contiguous and strided tensors, and compares with the
 * oracle. */
typedef struct named {
    const char *mesh, *shape, *from, *to;
    const char *to_mesh; /* NULL: the same mesh */
} named;

static const named on_one_mesh[] = {
    /* A fused gather of uneven nested shards corrupts rows elsewhere (pytorch#194457). */
    {"2x2", "5x3", "S(0),S(0)", "R,R", NULL},
    {"2x2x2", "8x8", "S(0),S(0),S(0)", "S(1),S(1),S(1)", NULL},
    {"2x2x2", "16x8", "P,P,S(0)", "S(0),S(0),S(0)", NULL},
    {"2x2", "8x8", "S(0),S(1)", "S(1),S(0)", NULL},
    {"4x2", "16x16x16", "S(2),S(0)", "S(1)[0],S(1)[1]", NULL},
    /* Empty shards. */
    {"8", "3", "S(0)", "R", NULL},
    {"8", "3x2", "P", "S(0)", NULL},
    {"2x4", "1x1", "S(0),S(1)", "S(1),S(0)", NULL},
    {"4", "0x5", "S(0)", "S(1)", NULL},
    {"4", "2x8", "S(0)", "R", NULL},
    {"4", "2x8", "S(0)", "S(1)", NULL},
    {"2x3", "4", "P,P", "S(0),S(0)", NULL},
    {"2x2", "scalar", "P,R", "R,P", NULL},
    /* PyTorch's tests: gathers, slices and reductions of uneven dims on 4 ranks. */
    {"4", "12x3", "S(0)", "R", NULL},
    {"4", "13x3", "S(0)", "R", NULL},
    {"4", "14x3", "S(0)", "R", NULL},
    {"4", "3x14", "S(1)", "R", NULL},
    {"4", "13x3", "R", "S(0)", NULL},
    {"4", "3x13", "P", "S(1)", NULL},
    {"4", "14x3", "P", "S(0)", NULL},
    {"4", "14x3", "P", "R", NULL},
    {"4", "12x3", "R", "P", NULL},
    {"4", "12x3", "R", "P(avg)", NULL},
    {"2x2", "8x3", "R,R", "P,P", NULL},
    {"2x2", "8x3", "P,S(0)", "P,S(1)", NULL},
    {"2x2", "8x3", "S(0),P", "R,P", NULL},
    {"2x2", "8x3", "S(0),R", "S(0),P", NULL},
    {"2x2", "8x3", "S(0),R", "R,P", NULL},
    {"2x2", "8x3", "S(0),S(1)", "R,P", NULL},
    {"2x2", "8x3", "S(0),P(prod)", "R,P(prod)", NULL},
    {"2x2", "8x3", "S(0),P(prod)", "R,P", NULL},
    {"2x2", "9x5", "S(0),S(0)", "R,R", NULL},
    {"2x2", "1x3", "S(0),S(1)", "R,R", NULL},
    {"4", "5x8", "S(0)", "S(1)", NULL},
    {"4", "5x5", "S(1)", "S(0)", NULL},
    {"2x2", "8x8x8", "S(0),S(2)", "S(1),S(0)", NULL},
    {"2x2", "8x8x8", "S(1),S(1)", "S(1),S(2)", NULL},
    {"2x2x2", "8x8x8", "S(0),S(1),S(2)", "S(2),S(1),S(0)", NULL},
    {"2x2x2", "8x8x8", "S(1),R,S(0)", "R,S(0),S(0)", NULL},
    {"2x2x2", "17x5", "S(0)[1],S(0)[0],S(0)[2]", "R,S(0),S(0)", NULL},
    {"4x1", "16x8", "R,S(1)", "R,S(0)", NULL},
    {"4x1", "16x8", "R,P", "R,R", NULL},
    {"4x2", "8x4", "S(0)[1],S(0)[0]", "S(0;interleave=2),S(0)", NULL},
    {"2x2x2", "31x13x11", "S(0;interleave=3),S(1;interleave=5),R", "S(1),R,S(0)", NULL},
    {"2x2x2", "8x8", "P,S(0),P", "R,R,R", NULL},
    {"2x2x2", "9x7", "P(avg),P(avg),P", "R,R,R", NULL},
    {"2x2x2", "9x7", "P(avg),P(avg),P", "S(0),P(avg),P", NULL},
    /* Terms are reduced once across replicas. */
    {"2x4", "6x5", "P,R", "R,R", NULL},
    {"2x4", "6x5", "P,R", "R,S(0)", NULL},
    {"2x3", "7x5", "P,S(1)", "S(0),R", NULL},
    /* Around the sizes up to which sources are copied aside (4 KiB), and two terms reduced by every
       owner (32 KiB). */
    {"2", "31x33", "P", "R", NULL},
    {"2", "32x33", "P", "R", NULL},
    {"3", "31x33", "P", "S(0)", NULL},
    {"2", "32x33", "S(0)", "R", NULL},
    {"2x2", "64x65", "P,R", "R,R", NULL},
    {"2x2", "64x65", "P(avg),S(0)", "R,S(0)", NULL},
    {"2x2", "64x65", "P(avg),P", "P,R", NULL},
    {"2", "64x129", "P", "R", NULL},
    /* The cuts do not come last, so the short way to Partial would give a wrong sum. */
    {"2x2", "6x5", "S(0),S(0)", "P,S(0)", NULL},
    {"2x2", "6x5", "S(0),S(0)", "S(0),P", NULL},
    {"2x2", "6x5", "S(0)[1],S(0)[0]", "P,S(0)", NULL},
    /* Fused projections. */
    {"2", "24x5", "S(0;blocks=16,4,4)", "S(0)", NULL},
    {"3", "24x5", "S(0;blocks=16,4,4;unit=2)", "R", NULL},
    {"4", "24x5", "S(0;interleave=3)", "S(0;interleave=2;unit=3)", NULL},
};

/* Grown, shrunk, apart, overlapping, permuted. */
static const named between_two_meshes[] = {
    {"6", "12x7", "S(0)", "S(0)", "8"},
    {"8", "12x7", "S(1)", "S(0)", "7"},
    {"4", "12x7", "S(0)", "S(1)", "4@4"},
    {"2x2", "12x7", "S(0),S(1)", "R,S(0)", "2x3@2"},
    {"4", "12x7", "S(0)", "S(0)", "4@[3,2,1,0]"},
    {"2x2", "12x7", "P,S(0)", "P,S(0)", "2x2@4"},
    {"2x2", "12x7", "P,R", "S(0)", "8"},
    {"8", "12x7", "R", "R", "3@[7,0,5]"},
    {"3@5", "12x7", "R", "R", "5"},
};

/* The cases of one table; each row has FLAVOURS of them. */
typedef struct named_table {
    const named *rows;
    int64_t count;
} named_table;

static const named_table one_mesh = {on_one_mesh, sizeof on_one_mesh / sizeof on_one_mesh[0]};
static const named_table two_meshes = {between_two_meshes, sizeof between_two_meshes / sizeof between_two_meshes[0]};

enum { FLAVOURS = 10 };

static oracle_mesh model_of_mesh(const char *text)
{
    tsr_mesh *mesh = NULL;
    expect_ok(tsr_mesh_parse(NULL, NULL, text, &mesh));
    oracle_mesh model = {.ndim = tsr_mesh_ndim(mesh)};
    for (int d = 0; d < model.ndim; d++)
        model.shape[d] = tsr_mesh_size(mesh, d);
    for (int64_t p = 0; p < tsr_mesh_count(mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&model, p, coordinate);
        expect_ok(tsr_mesh_rank_at(mesh, coordinate, &model.ranks[p]));
    }
    tsr_mesh_destroy(mesh);
    return model;
}

static void model_of_layout(const char *mesh, const char *placements, oracle_numbers *numbers, oracle_layout *out)
{
    int count = 0;
    out->mesh = model_of_mesh(mesh);
    expect_ok(tsr_placements_parse(placements, out->placements, TSR_MAX_DIMS, &count, numbers->at + numbers->count,
                                   ORACLE_NUMBERS - numbers->count, NULL));
    numbers->count += strlen(placements);
    assert_int_equal(count, out->mesh.ndim);
}

static bool make_named(void *arg, int64_t number, sweep_case *out)
{
    const named *row = &((const named_table *)arg)->rows[number / FLAVOURS];
    const int64_t flavour = number % FLAVOURS;
    out->src.ndim = shape_of(row->shape, out->src.shape);
    out->src.dtype = flavour < 5 ? TSR_F32 : strstr(row->from, "avg") || strstr(row->to, "avg") ? TSR_BF16 : TSR_C64;
    out->dst = out->src;
    model_of_layout(row->mesh, row->from, &out->numbers, &out->src);
    model_of_layout(row->to_mesh ? row->to_mesh : row->mesh, row->to, &out->numbers, &out->dst);
    out->seed = (uint64_t)number + test_seed();
    out->mode = flavour % 5 < 2 ? TSR_MODE_DIRECT : TSR_MODE_MESSAGE;
    out->way = flavour % 5 == 4 && !row->to_mesh ? WAY_DTENSORS : WAY_PLAN;
    out->strided = flavour % 2;
    out->halves = flavour % 3 == 1;
    out->cap = flavour == 3 ? CAP_LEAST : flavour == 7 ? CAP_SOME : CAP_NONE;
    out->no_split = flavour == 2 || flavour == 6;
    return true;
}

static void sweep_named(const named_table *table, int world, bool messages)
{
    move_sweep sweep = {.world = world,
                        .make = make_named,
                        .arg = (void *)(uintptr_t)table,
                        .count = table->count * FLAVOURS,
                        .engine = messages ? ENGINE_MESSAGES : ENGINE_THREADS};
    assert_int_equal(sweep_run(&sweep), 0);
}

static void named_pairs_on_one_mesh(void **state)
{
    (void)state;
    sweep_named(&one_mesh, 8, false);
}

static void named_pairs_between_two_meshes(void **state)
{
    (void)state;
    sweep_named(&two_meshes, 9, false);
}

static void named_pairs_over_an_engine_that_only_has_messages(void **state)
{
    (void)state;
    sweep_named(&one_mesh, 9, true);
    sweep_named(&two_meshes, 9, true);
}

/* PyTorch's sweep: mesh (4,2), 16x24, every {R,S0,S1,P}^2 to every {R,S0,S1}^2. */
static bool make_pytorch_sweep(void *arg, int64_t number, sweep_case *out)
{
    (void)arg;
    const tsr_placement all[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(TSR_SUM)};
    out->src = (oracle_layout){
        .mesh = oracle_mesh_make(2, (int64_t[]){4, 2}, 0), .ndim = 2, .shape = {16, 24}, .dtype = TSR_F32};
    out->dst = out->src;
    out->src.placements[0] = all[number % 4];
    out->src.placements[1] = all[number / 4 % 4];
    out->dst.placements[0] = all[number / 16 % 3];
    out->dst.placements[1] = all[number / 48];
    out->seed = (uint64_t)number;
    out->mode = number % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    return true;
}

static void pytorchs_sweep_on_four_by_two(void **state)
{
    (void)state;
    move_sweep sweep = {.world = 8, .make = make_pytorch_sweep, .count = 16 * 9};
    assert_int_equal(sweep_run(&sweep), 0);
}

static void a_plan_between_other_shapes_or_dtypes_is_refused(void **state)
{
    (void)state;
    tsr_layout *a = layout_of("2", "8x8", "S(0)"), *b = layout_of("2", "8x9", "S(0)");
    tsr_layout *c = NULL;
    tsr_plan *plan = NULL;
    const int64_t shape[] = {8, 8};
    expect_ok(tsr_layout_parse(tsr_layout_mesh(a), "R", 2, shape, TSR_F64, &c));
    expect_error(tsr_plan_create(a, b, NULL, &plan), TSR_ERROR_ARGUMENT, "8x9");
    expect_error(tsr_plan_create(a, c, NULL, &plan), TSR_ERROR_ARGUMENT, "f64");
    expect_error(tsr_plan_create(NULL, c, NULL, &plan), TSR_ERROR_ARGUMENT, "src");
    expect_error(tsr_plan_create(a, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "dst");
    expect_error(tsr_plan_create(a, a, NULL, NULL), TSR_ERROR_ARGUMENT, "out");
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = (tsr_mode)9;
    expect_error(tsr_plan_create(a, a, &options, &plan), TSR_ERROR_ARGUMENT, "mode");
    options = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    options.rank = -7;
    expect_error(tsr_plan_create(a, a, &options, &plan), TSR_ERROR_ARGUMENT, "-7");
    assert_null(plan);
    /* A plan between two abstract meshes is for no rank. */
    expect_ok(tsr_plan_create(a, a, NULL, &plan));
    assert_true(tsr_layout_equal(tsr_plan_source(plan), tsr_plan_destination(plan)));
    tsr_plan_destroy(tsr_plan_retain(plan));
    tsr_plan_destroy(plan);
    tsr_plan_destroy(NULL);
    tsr_layout_destroy(a);
    tsr_layout_destroy(b);
    tsr_layout_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_between_other_shapes_or_dtypes_is_refused),
        cmocka_unit_test(no_rank_receives_more_than_the_known_bound),
        cmocka_unit_test(named_pairs_on_one_mesh),
        cmocka_unit_test(named_pairs_between_two_meshes),
        cmocka_unit_test(named_pairs_over_an_engine_that_only_has_messages),
        cmocka_unit_test(pytorchs_sweep_on_four_by_two),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
