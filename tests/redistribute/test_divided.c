/* Interleaved cuts that deal out equal parts of equal blocks: few boxes however many blocks, and
 * the bytes of the oracle. */
#include "layouts.h"
#include "redistribute/schedule/plan.h"
#include "support.h"
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* The last kind reverses the order of all cuts of its dim, wherever it stands. */
enum { REVERSED = 8, KINDS = 9, SHAPES = 6 };

static const int64_t shapes[SHAPES][2] = {{12, 12}, {24, 6}, {16, 12}, {36, 4}, {48, 1}, {8, 18}};

static tsr_placement placement_of(int64_t digit)
{
    tsr_placement p[KINDS] = {tsr_replicate(), tsr_partial(TSR_SUM), tsr_shard(0), tsr_shard(1), tsr_shard(0),
                              tsr_shard(0),    tsr_shard(0),         tsr_shard(1), tsr_shard(0)};
    p[4].interleave = 2;
    p[5].interleave = 4;
    p[5].balanced = 1;
    p[6].interleave = 6;
    p[6].unit = 2;
    p[7].interleave = 3;
    p[REVERSED].interleave = 4;
    return p[digit];
}

static void place(oracle_layout *layout, int64_t *pair)
{
    bool reversed = false;
    for (int m = 0; m < layout->mesh.ndim; m++, *pair /= KINDS) {
        layout->placements[m] = placement_of(*pair % KINDS);
        reversed |= *pair % KINDS == REVERSED;
    }
    for (int m = 0; m < layout->mesh.ndim && reversed; m++)
        if (layout->placements[m].kind == TSR_SHARD && layout->placements[m].dim == 0)
            layout->placements[m].order = layout->mesh.ndim - 1 - m;
}

static bool make_pair(void *arg, int64_t number, sweep_case *out)
{
    const oracle_mesh *mesh = arg;
    const int64_t pairs = test_power(KINDS * KINDS, mesh->ndim);
    int64_t pair = number * 1009 % pairs;
    const int64_t shape = (number / pairs + number) % SHAPES, variant = number + number / pairs;
    oracle_layout layout = {.mesh = *mesh,
                            .ndim = 2,
                            .shape = {shapes[shape][0], shapes[shape][1]},
                            .dtype = variant % 2 ? TSR_I32 : TSR_BF16};
    out->src = out->dst = layout;
    place(&out->src, &pair);
    place(&out->dst, &pair);
    out->seed = (uint64_t)number + test_seed();
    out->mode = variant % 3 == 1 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = variant % 7 == 2 ? WAY_DTENSORS : WAY_PLAN;
    if (out->way == WAY_PLAN && variant % 9 == 4)
        out->dst.mesh = oracle_mesh_make(mesh->ndim, mesh->shape, 1);
    out->nodes.ranks_per_node = out->way == WAY_PLAN && variant % 11 > 7 ? 2 : 0;
    out->objective = variant % 13 > 9 ? TSR_OBJECTIVE_TIME : TSR_OBJECTIVE_BYTES;
    out->strided = variant % 5 > 2;
    out->halves = variant % 4 == 3;
    out->cap = out->way == WAY_DTENSORS || variant % 8 > 1 ? CAP_NONE : variant % 16 < 2 ? CAP_LEAST : CAP_SOME;
    return true;
}

static void sweep_mesh(int ndim, const int64_t *shape, int64_t whole, sweep_engine engine)
{
    const int64_t count = whole / test_step(4);
    const oracle_mesh mesh = oracle_mesh_make(ndim, shape, 0);
    move_sweep sweep = {.world = (int)oracle_mesh_count(&mesh) + 1,
                        .make = make_pair,
                        .arg = (void *)&mesh,
                        .count = count,
                        .engine = engine};
    assert_int_equal(sweep_run(&sweep), 0);
    assert_int_equal(sweep.ran, count);
}

static void moves_on_one_mesh_dim_have_the_bytes_of_the_oracle(void **state)
{
    (void)state;
    for (int64_t ranks = 1; ranks <= 4; ranks++)
        sweep_mesh(1, &ranks, INT64_C(2) * KINDS * KINDS * SHAPES, ranks == 3 ? ENGINE_MESSAGES : ENGINE_THREADS);
}

static void moves_on_two_mesh_dims_have_the_bytes_of_the_oracle(void **state)
{
    (void)state;
    const int64_t square[] = {2, 2}, oblong[] = {2, 3};
    sweep_mesh(2, square, 3000, ENGINE_THREADS);
    sweep_mesh(2, square, 2000, ENGINE_MESSAGES);
    sweep_mesh(2, oblong, 3000, ENGINE_THREADS);
    sweep_mesh(2, oblong, 1000, ENGINE_LENT);
}

static void moves_on_three_mesh_dims_have_the_bytes_of_the_oracle(void **state)
{
    (void)state;
    const int64_t cube[] = {2, 2, 2};
    sweep_mesh(3, cube, 2000, ENGINE_THREADS);
}

static void blocks_without_number_are_few_boxes(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *shape, *from, *to;
        size_t boxes;
    } rows[] = {
        {"2", "2000000000", "S(0;interleave=1000000000)", "R", 2},
        {"2", "2000000000", "R", "S(0;interleave=1000000000)", 1},
        {"2", "2000000000", "S(0;interleave=500000000)", "S(0)", 2},
        {"4", "4000000x8000000", "S(0;interleave=1000000)", "S(1;interleave=1000000)", 4},
        {"2x2", "4000000000", "S(0;interleave=1000000000),S(0)", "R,R", 4},
        {"2x2", "4000000000", "S(0),S(0;interleave=500000000)", "R,S(0;interleave=1000000000)", 2},
        {"2", "2000000000", "P", "S(0;interleave=1000000000)", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tsr_layout *src = layout_of(rows[i].mesh, rows[i].shape, rows[i].from),
                   *dst = layout_of(rows[i].mesh, rows[i].shape, rows[i].to);
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = 1;
        tsr_plan *plan = NULL;
        test_case("--mesh %s --shape %s --from %s --to %s", rows[i].mesh, rows[i].shape, rows[i].from, rows[i].to);
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        const tsr_item *item = &plan->items[0];
        size_t boxes = 0;
        for (size_t m = 0; m < item->moves.count; m++)
            boxes += item->moves.at[m].box_count;
        for (size_t r = 0; r < item->reduction_count; r++)
            boxes += item->reductions[r].box_count;
        if (boxes != rows[i].boxes)
            fail_msg("%zu boxes, not %zu: %s", boxes, rows[i].boxes, test_case_text());
        tsr_plan_destroy(plan);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_without_number_are_few_boxes),
        cmocka_unit_test(moves_on_one_mesh_dim_have_the_bytes_of_the_oracle),
        cmocka_unit_test(moves_on_two_mesh_dims_have_the_bytes_of_the_oracle),
        cmocka_unit_test(moves_on_three_mesh_dims_have_the_bytes_of_the_oracle),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
