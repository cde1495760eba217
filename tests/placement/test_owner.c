/* Owners of global elements: the engine against a search of all shards of the oracle. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3000 };

static void name_case(const oracle_layout *layout, uint64_t seed)
{
    char mesh[512], shape[128], placements[2048];
    test_case("tessera layout --mesh %s --shape %s --placements \"%s\" (seed %llu)",
              oracle_print_mesh(&layout->mesh, mesh, sizeof mesh),
              oracle_print_shape(layout->ndim, layout->shape, shape, sizeof(shape)),
              oracle_print_placements(layout->placements, layout->mesh.ndim, placements, sizeof placements),
              (unsigned long long)seed);
}

static oracle_layout draw(oracle_random *random, oracle_numbers *numbers)
{
    oracle_layout layout = {.dtype = oracle_random_dtype(random)};
    layout.mesh = oracle_random_mesh(random, 5, 24, 24);
    oracle_random_shape(random, 5, MOST, &layout);
    oracle_random_placements(random, &layout, numbers);
    return layout;
}

static bool cuts(const oracle_layout *model, int mesh_dim, int dim)
{
    return model->placements[mesh_dim].kind == TSR_SHARD && model->placements[mesh_dim].dim == dim;
}

/* Writes the part and local position of each position of `dim`, from what each coordinate owns. */
static void search_parts(const oracle_layout *model, int dim, int64_t *parts, int64_t *locals)
{
    for (int64_t p = 0; p < oracle_mesh_count(&model->mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS], owned[MOST], part = 0;
        oracle_mesh_coordinate(&model->mesh, p, coordinate);
        for (int m = 0; m < model->mesh.ndim; m++)
            part = cuts(model, m, dim) ? part * model->mesh.shape[m] + coordinate[m] : part;
        const int64_t count = oracle_owned(model, coordinate, dim, owned);
        for (int64_t i = 0; i < count; i++) {
            parts[owned[i]] = part;
            locals[owned[i]] = i;
        }
    }
}

/* Asks for all positions, in an order that `random` mixes or, for NULL, that ascends. */
static void expect_parts(const tsr_layout *layout, const oracle_layout *model, int dim, oracle_random *random)
{
    int64_t parts[MOST], locals[MOST], positions[MOST], got_parts[MOST], got_locals[MOST];
    const int64_t count = model->shape[dim];
    search_parts(model, dim, parts, locals);
    for (int64_t i = 0; i < count; i++)
        positions[i] = random ? oracle_random_below(random, count) : i;
    expect_ok(tsr_layout_owners(layout, dim, (size_t)count, positions, got_parts, got_locals));
    for (int64_t i = 0; i < count; i++)
        if (got_parts[i] != parts[positions[i]] || got_locals[i] != locals[positions[i]])
            fail_msg("position %lld of dim %d: %lld of part %lld, not %lld of part %lld: %s", (long long)positions[i],
                     dim, (long long)got_locals[i], (long long)got_parts[i], (long long)locals[positions[i]],
                     (long long)parts[positions[i]], test_case_text());
}

static void positions_have_the_owners_that_a_search_finds(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    for (uint64_t n = 0; n < 2000; n++) {
        oracle_random random = {.state = seed * 1000003 + n};
        oracle_numbers numbers = {.count = 0};
        const oracle_layout model = draw(&random, &numbers);
        name_case(&model, seed);
        tsr_layout *layout = abstract_layout(&model);
        for (int dim = 0; dim < model.ndim; dim++) {
            expect_parts(layout, &model, dim, NULL);
            expect_parts(layout, &model, dim, &random);
        }
        tsr_layout_destroy(layout);
    }
}

/* The local index of a global one in a list of what a rank owns; -1: it is not there. */
static int64_t place_in(const int64_t *owned, int64_t count, int64_t index)
{
    for (int64_t i = 0; i < count; i++)
        if (owned[i] == index)
            return i;
    return -1;
}

static bool holds(const oracle_layout *model, const int64_t *coordinate, const int64_t *index, int64_t *local)
{
    int64_t owned[MOST];
    bool all = true;
    for (int dim = 0; dim < model->ndim; dim++) {
        local[dim] = place_in(owned, oracle_owned(model, coordinate, dim, owned), index[dim]);
        all = all && local[dim] >= 0;
    }
    return all;
}

static void expect_owner(const tsr_layout *layout, const oracle_layout *model, const int64_t *index)
{
    tsr_owner owner;
    int64_t holders = 0;
    expect_ok(tsr_layout_owner(layout, index, &owner));
    for (int64_t p = 0; p < oracle_mesh_count(&model->mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS], local[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&model->mesh, p, coordinate);
        if (!holds(model, coordinate, index, local))
            continue;
        if (holders++ > 0)
            continue;
        if (owner.rank != model->mesh.ranks[p] ||
            memcmp(owner.coordinate, coordinate, (size_t)model->mesh.ndim * sizeof *coordinate) != 0 ||
            memcmp(owner.local, local, (size_t)model->ndim * sizeof *local) != 0)
            fail_msg("the first owner is rank %lld, not %lld: %s", (long long)model->mesh.ranks[p],
                     (long long)owner.rank, test_case_text());
    }
    assert_int_equal(owner.holders, holders);
}

static void elements_have_the_first_of_the_owners_that_a_search_finds(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    for (uint64_t n = 0; n < 2000; n++) {
        oracle_random random = {.state = seed * 1000003 + n};
        oracle_numbers numbers = {.count = 0};
        const oracle_layout model = draw(&random, &numbers);
        name_case(&model, seed);
        tsr_layout *layout = abstract_layout(&model);
        for (int sample = 0; sample < 4 && oracle_count(&model) > 0; sample++) {
            int64_t index[TSR_MAX_DIMS];
            for (int dim = 0; dim < model.ndim; dim++)
                index[dim] = oracle_random_below(&random, model.shape[dim]);
            expect_owner(layout, &model, index);
        }
        tsr_layout_destroy(layout);
    }
}

static void a_scalar_lies_at_coordinate_0_and_all_ranks_hold_it(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("2x3", "scalar", "R,P");
    tsr_owner owner;
    expect_ok(tsr_layout_owner(layout, NULL, &owner));
    assert_int_equal(owner.rank, 0);
    assert_int_equal(owner.holders, 6);
    tsr_layout_destroy(layout);
}

/* DGL's partition book: sizes per part, nodes in any order, results over the question. */
static void one_of_the_results_may_be_where_the_positions_were(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("4", "10", "S(0;sizes=4,0,5,1)");
    int64_t nodes[] = {9, 0, 4, 3, 8}, parts[5];
    expect_ok(tsr_layout_owners(layout, 0, 5, nodes, parts, nodes));
    const int64_t want_parts[] = {3, 0, 2, 0, 2}, want_locals[] = {0, 0, 0, 3, 4};
    assert_memory_equal(parts, want_parts, sizeof parts);
    assert_memory_equal(nodes, want_locals, sizeof nodes);
    expect_ok(tsr_layout_owners(layout, 0, 0, NULL, NULL, NULL));
    tsr_layout_destroy(layout);
}

static void what_is_out_of_range_is_refused_and_nothing_is_written(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("2", "4x4", "S(0)");
    tsr_owner owner = {.rank = -7};
    int64_t parts[] = {-7, -7}, locals[] = {-7, -7};
    expect_error(tsr_layout_owner(NULL, (int64_t[]){0, 0}, &owner), TSR_ERROR_ARGUMENT, "layout is NULL");
    expect_error(tsr_layout_owner(layout, NULL, &owner), TSR_ERROR_ARGUMENT, "index is NULL");
    expect_error(tsr_layout_owner(layout, (int64_t[]){0, 0}, NULL), TSR_ERROR_ARGUMENT, "owner is NULL");
    expect_error(tsr_layout_owner(layout, (int64_t[]){0, 4}, &owner), TSR_ERROR_ARGUMENT, "index 4 of dim 1");
    expect_error(tsr_layout_owner(layout, (int64_t[]){-1, 0}, &owner), TSR_ERROR_ARGUMENT, "index -1 of dim 0");
    const int64_t positions[] = {3, 4};
    expect_error(tsr_layout_owners(layout, 0, 2, positions, parts, locals), TSR_ERROR_ARGUMENT, "position 1 is 4");
    expect_error(tsr_layout_owners(layout, 2, 2, positions, parts, locals), TSR_ERROR_ARGUMENT, "dim 2");
    expect_error(tsr_layout_owners(layout, 0, 2, NULL, parts, locals), TSR_ERROR_ARGUMENT, "positions is NULL");
    expect_error(tsr_layout_owners(NULL, 0, 2, positions, parts, locals), TSR_ERROR_ARGUMENT, "layout is NULL");
    assert_int_equal(owner.rank, -7);
    assert_int_equal(parts[0], -7);
    assert_int_equal(locals[0], -7);
    tsr_layout_destroy(layout);
}

typedef struct question {
    tsr_layout *layout;
} question;

static tsr_status ask_blocks(void *arg)
{
    const question *q = arg;
    int64_t position = 11, part = -1, local = -1;
    const tsr_status status = tsr_layout_owners(q->layout, 0, 1, &position, &part, &local);
    assert_int_equal(part, status == TSR_OK ? 1 : -1);
    assert_int_equal(local, status == TSR_OK ? 5 : -1);
    return status;
}

static void without_memory_for_listed_blocks_nothing_is_written(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    question q = {layout_in(context, "2", "12", "S(0;blocks=8,2,2)")};
    assert_true(fail_each_allocation(&memory, ask_blocks, &q) > 0);
    tsr_layout_destroy(q.layout);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_have_the_owners_that_a_search_finds),
        cmocka_unit_test(elements_have_the_first_of_the_owners_that_a_search_finds),
        cmocka_unit_test(a_scalar_lies_at_coordinate_0_and_all_ranks_hold_it),
        cmocka_unit_test(one_of_the_results_may_be_where_the_positions_were),
        cmocka_unit_test(what_is_out_of_range_is_refused_and_nothing_is_written),
        cmocka_unit_test(without_memory_for_listed_blocks_nothing_is_written),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
