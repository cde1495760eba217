/* The reports of plans are true, for every pair of placement lists on small meshes and for random
 * pairs, in every way to move. */
#include "support.h"
#include "told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Bytes and latencies weigh alike. */
static const tsr_cost_profile plain = {{1e-6, 1e8}, {1e-5, 1e7}};
/* Another step is cheap, so ranks of a node share whatever they can. Links of the ranks are the
 * slow ones, so their steps decide the time. */
static const tsr_cost_profile cheap_steps = {{1e-6, 1e1}, {1e-6, 1e3}};

/* Where ranks lie on nodes, then for each of the exhaustive cases in another way: in twos, one and
 * others, mixed. */
static void set_nodes(told_case *c, int64_t kind)
{
    c->nodes = true;
    for (int64_t r = 0; r < c->world; r++)
        c->node[r] = kind % 3 == 0 ? r / 2 : kind % 3 == 1 ? r > 0 : r % 2;
}

static void set_way(told_case *c, int64_t way)
{
    c->mode = way % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    c->objective = way / 2 % 2 ? TSR_OBJECTIVE_TIME : TSR_OBJECTIVE_BYTES;
    if (way / 4 % 2)
        set_nodes(c, way / 16);
    c->profile = way / 8 % 2 ? cheap_steps : plain;
}

enum { WAYS = 16 };

static tsr_placement placement_of(int64_t digit)
{
    const tsr_placement placements[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(TSR_SUM)};
    return placements[digit % 4];
}

/* Every pair of lists over {R, S(0), S(1), P}, the way to move going round with the pair and the
 * shape. */
static void check_pairs(int ndim, const int64_t *mesh_shape, int64_t height, int64_t width, int64_t step)
{
    int64_t pairs = 1;
    for (int m = 0; m < ndim; m++)
        pairs *= 16;
    for (int64_t pair = 0; pair < pairs; pair += step) {
        const oracle_layout layout = {
            .mesh = oracle_mesh_make(ndim, mesh_shape, 0), .ndim = 2, .shape = {height, width}, .dtype = TSR_I16};
        told_case c = {.src = layout, .dst = layout, .world = oracle_mesh_count(&layout.mesh)};
        for (int64_t m = 0, rest = pair; m < ndim; m++, rest /= 16) {
            c.src.placements[m] = placement_of(rest % 4);
            c.dst.placements[m] = placement_of(rest / 4);
        }
        set_way(&c, pair + height + pair / 16);
        told_check(&c);
    }
}

static const int64_t lengths[][2] = {{0, 3}, {1, 1}, {5, 3}, {8, 4}, {7, 13}};

enum { SHAPES = sizeof lengths / sizeof lengths[0] };

static void every_pair_of_lists_on_one_mesh_dim(void **state)
{
    (void)state;
    for (int64_t size = 1; size <= 5; size++)
        for (int i = 0; i < SHAPES; i++)
            check_pairs(1, &size, lengths[i][0], lengths[i][1], 1);
}

static void every_pair_of_lists_on_two_mesh_dims(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        check_pairs(2, (const int64_t[]){2, 2}, lengths[i][0], lengths[i][1], 1);
        check_pairs(2, (const int64_t[]){2, 3}, lengths[i][0], lengths[i][1], 1);
        check_pairs(2, (const int64_t[]){3, 2}, lengths[i][0], lengths[i][1], 1);
    }
}

static void pairs_of_lists_on_three_mesh_dims(void **state)
{
    (void)state;
    /* Every 7th of the 4096 pairs: 7 and 16 share no factor, so that every digit comes up. */
    check_pairs(3, (const int64_t[]){2, 2, 2}, 8, 5, 7);
}

/* R, P, plain cuts, and interleaved ones, most of which deal out equal parts of equal blocks:
 * planned on divided dims, told on the given.
 */
static tsr_placement interleaved_of(int64_t digit)
{
    tsr_placement placements[] = {tsr_replicate(), tsr_partial(TSR_SUM), tsr_shard(0), tsr_shard(1),
                                  tsr_shard(0),    tsr_shard(0),         tsr_shard(1)};
    placements[4].interleave = 2;
    placements[5].interleave = 6;
    placements[5].balanced = 1;
    placements[6].interleave = 4;
    return placements[digit % 7];
}

static void check_interleaved(int ndim, const int64_t *mesh_shape, int64_t height, int64_t width, int64_t step)
{
    int64_t pairs = 1;
    for (int m = 0; m < ndim; m++)
        pairs *= 49;
    for (int64_t pair = 0; pair < pairs; pair += step) {
        const oracle_layout layout = {
            .mesh = oracle_mesh_make(ndim, mesh_shape, 0), .ndim = 2, .shape = {height, width}, .dtype = TSR_I16};
        told_case c = {.src = layout, .dst = layout, .world = oracle_mesh_count(&layout.mesh)};
        for (int64_t m = 0, rest = pair; m < ndim; m++, rest /= 49) {
            c.src.placements[m] = interleaved_of(rest % 7);
            c.dst.placements[m] = interleaved_of(rest / 7);
        }
        set_way(&c, pair + height + pair / 49);
        told_check(&c);
    }
}

static void pairs_of_interleaved_lists(void **state)
{
    (void)state;
    for (int64_t size = 2; size <= 4; size++) {
        check_interleaved(1, &size, 24, 8, 1);
        check_interleaved(1, &size, 36, 24, 1);
    }
    check_interleaved(2, (const int64_t[]){2, 2}, 24, 8, 2);
    check_interleaved(2, (const int64_t[]){2, 3}, 36, 12, 3);
    check_interleaved(2, (const int64_t[]){3, 2}, 12, 24, 5);
}

typedef struct recipe {
    int64_t world;
    int mesh_ndim;
    bool two_meshes;
    int64_t elements;
} recipe;

static void check_random(const recipe *r, int64_t number)
{
    oracle_random random = {.state =
                                test_seed() * UINT64_C(1000000007) + (uint64_t)number + (uint64_t)r->world * 1000003};
    told_case c = {.world = r->world};
    c.src.dtype = oracle_random_dtype(&random);
    oracle_random_shape(&random, 4, r->elements, &c.src);
    c.src.mesh = oracle_random_mesh(&random, r->mesh_ndim, 1 + oracle_random_below(&random, r->world), r->world);
    c.dst = c.src;
    if (r->two_meshes)
        c.dst.mesh = oracle_random_mesh(&random, r->mesh_ndim, 1 + oracle_random_below(&random, r->world), r->world);
    oracle_random_placements(&random, &c.src, &c.numbers);
    oracle_random_placements(&random, &c.dst, &c.numbers);
    set_way(&c, oracle_random_below(&random, WAYS));
    if (c.nodes)
        oracle_random_nodes(&random, c.world, c.node);
    told_check(&c);
}

/* Checks a few cases in any case, and then as many as the time allows. */
static void sweep(recipe r, double share)
{
    const double deadline = test_now() + test_seconds(4) * share;
    for (int64_t number = 0; number < 20 || test_now() < deadline; number++)
        check_random(&r, number);
}

static void random_pairs_on_one_mesh(void **state)
{
    (void)state;
    sweep((recipe){.world = 3, .mesh_ndim = 3, .elements = 200}, 1.0 / 12);
    sweep((recipe){.world = 8, .mesh_ndim = 4, .elements = 400}, 3.0 / 12);
    sweep((recipe){.world = 12, .mesh_ndim = 5, .elements = 400}, 2.0 / 12);
}

static void random_pairs_between_two_meshes(void **state)
{
    (void)state;
    sweep((recipe){.world = 4, .mesh_ndim = 2, .two_meshes = true, .elements = 200}, 1.0 / 12);
    sweep((recipe){.world = 9, .mesh_ndim = 4, .two_meshes = true, .elements = 400}, 3.0 / 12);
    sweep((recipe){.world = 12, .mesh_ndim = 4, .two_meshes = true, .elements = 400}, 2.0 / 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_lists_on_one_mesh_dim),
        cmocka_unit_test(every_pair_of_lists_on_two_mesh_dims),
        cmocka_unit_test(pairs_of_interleaved_lists),
        cmocka_unit_test(pairs_of_lists_on_three_mesh_dims),
        cmocka_unit_test(random_pairs_on_one_mesh),
        cmocka_unit_test(random_pairs_between_two_meshes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
