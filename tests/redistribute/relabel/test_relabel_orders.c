/* The order found is the best of all orders, which are tried one by one, and plans move the bytes
 * that it promises. */
#include "layouts.h"
#include "oracle_random.h"
#include "relabelled.h"
#include "support.h"

#include <tessera/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The best of the orders tried. */
typedef struct record {
    int64_t kept, moved; /* the fewest that one moves which keeps that much */
} record;

static void note(record *best, const oracle_layout *src, const oracle_layout *dst, const oracle_layout *tried,
                 const int64_t *table)
{
    const record r = {kept_by(src, tried, dst, table), count_moved(&dst->mesh, &tried->mesh)};
    if (r.kept > best->kept || (r.kept == best->kept && r.moved < best->moved))
        *best = r;
}

/* Tries all orders of dst's ranks from place `from` on, in `tried`. */
static void try_orders(record *best, const oracle_layout *src, const oracle_layout *dst, const int64_t *table,
                       oracle_layout *tried, int64_t from)
{
    const int64_t n = oracle_mesh_count(&dst->mesh);
    if (from == n) {
        note(best, src, dst, tried, table);
        return;
    }
    int64_t *ranks = tried->mesh.ranks;
    for (int64_t i = from; i < n; i++) {
        const int64_t here = ranks[from], there = ranks[i];
        ranks[from] = there;
        ranks[i] = here;
        try_orders(best, src, dst, table, tried, from + 1);
        ranks[from] = here;
        ranks[i] = there;
    }
}

/* The number of ranks that move if dst's mesh becomes equal to the source's, and what that keeps;
 * kept is -1 if the meshes cannot be equal. */
static record by_source_order(const oracle_layout *src, const oracle_layout *dst, const int64_t *table)
{
    oracle_layout same = *dst;
    oracle_move move;
    memcpy(same.mesh.ranks, src->mesh.ranks, sizeof same.mesh.ranks);
    oracle_move_make(src, &same, &move);
    bool possible = move.same_mesh && oracle_mesh_count(&src->mesh) == oracle_mesh_count(&dst->mesh);
    for (int64_t i = 0; possible && i < oracle_mesh_count(&dst->mesh); i++)
        possible = oracle_mesh_position(&src->mesh, dst->mesh.ranks[i]) >= 0;
    if (!possible)
        return (record){-1, 0};
    return (record){kept_by(src, &same, dst, table), count_moved(&dst->mesh, &same.mesh)};
}

static void check_best(const oracle_layout *src, const oracle_layout *dst)
{
    int64_t *table = shared_table(src, dst);
    oracle_layout tried = *dst;
    record best = {-1, 0};
    try_orders(&best, src, dst, table, &tried, 0);
    const record same = by_source_order(src, dst, table);
    if (best.moved > 0 && same.kept == best.kept)
        best = same;
    const tsr_relabel_report report = check_relabel(src, dst, table);
    if (report.bytes_kept != best.kept || report.moved_ranks != best.moved || report.method != TSR_ASSIGNMENT_EXACT)
        fail_msg("%lld bytes kept and %lld ranks moved; by the best order %lld and %lld\ncase: %s",
                 (long long)report.bytes_kept, (long long)report.moved_ranks, (long long)best.kept,
                 (long long)best.moved, test_case_text());
    free(table);
}

static const struct {
    int ndim;
    int64_t shape[3], ranks[6];
} meshes[] = {
    {1, {2}, {0, 1}},          {1, {3}, {2, 0, 1}},       {1, {4}, {0, 1, 2, 3}},    {1, {4}, {2, 3, 1, 0}},
    {2, {2, 2}, {0, 1, 2, 3}}, {2, {2, 2}, {3, 1, 0, 2}}, {2, {2, 2}, {4, 5, 0, 1}}, {3, {2, 1, 2}, {1, 0, 2, 3}},
    {1, {5}, {0, 4, 1, 3, 2}}, {2, {1, 3}, {0, 1, 2}},
};

enum { MESHES = sizeof meshes / sizeof *meshes, KINDS = 6 };

static tsr_placement placement_of(int kind)
{
    const tsr_placement all[KINDS] = {tsr_replicate(),      tsr_shard(0),         tsr_shard(1),
                                      tsr_partial(TSR_SUM), tsr_partial(TSR_AVG), tsr_shard(0)};
    tsr_placement p = all[kind];
    p.balanced = kind == KINDS - 1;
    return p;
}

static int64_t combinations(size_t mesh)
{
    int64_t count = 1;
    for (int i = 0; i < meshes[mesh].ndim; i++)
        count *= KINDS;
    return count;
}

static oracle_layout layout_number(size_t mesh, int64_t number)
{
    oracle_layout layout = {.ndim = 2, .shape = {5, 3}, .dtype = TSR_F32};
    layout.mesh.ndim = meshes[mesh].ndim;
    memcpy(layout.mesh.shape, meshes[mesh].shape, sizeof meshes[mesh].shape);
    memcpy(layout.mesh.ranks, meshes[mesh].ranks, sizeof meshes[mesh].ranks);
    for (int i = 0; i < layout.mesh.ndim; i++, number /= KINDS)
        layout.placements[i] = placement_of((int)(number % KINDS));
    return layout;
}

/* A 3-d mesh has many combinations, so every eleventh is tried. */
static int64_t stride_of(size_t mesh)
{
    return meshes[mesh].ndim > 2 ? 11 : 1;
}

static void every_small_pair_of_layouts_gets_its_best_order(void **state)
{
    (void)state;
    for (size_t a = 0; a < MESHES; a++)
        for (size_t b = 0; b < MESHES; b++)
            for (int64_t i = 0; i < combinations(a); i += stride_of(a))
                for (int64_t j = 0; j < combinations(b); j += stride_of(b)) {
                    const oracle_layout src = layout_number(a, i), dst = layout_number(b, j);
                    check_best(&src, &dst);
                }
}

typedef struct pair {
    oracle_layout src, dst;
    oracle_numbers numbers;
} pair;

static void draw(oracle_random *random, int64_t most, int64_t world, pair *out)
{
    *out = (pair){0};
    out->src.mesh = oracle_random_mesh(random, 3, world, world);
    out->dst.mesh = oracle_random_mesh(random, 3, most, world);
    out->src.dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 3, 400, &out->src);
    out->dst.dtype = out->src.dtype;
    out->dst.ndim = out->src.ndim;
    memcpy(out->dst.shape, out->src.shape, sizeof out->src.shape);
    oracle_random_placements(random, &out->src, &out->numbers);
    oracle_random_placements(random, &out->dst, &out->numbers);
}

static void random_layouts_on_up_to_seven_ranks_get_their_best_order(void **state)
{
    (void)state;
    const double end = test_now() + test_seconds(4);
    for (int64_t number = 0; number < 3000 && test_now() < end; number++) {
        oracle_random random = {test_seed() * UINT64_C(1000003) + (uint64_t)number};
        pair p;
        draw(&random, 7, 8, &p);
        check_best(&p.src, &p.dst);
    }
}

/* best[set]: the most that the first rows can share with the columns of a set, if each row has one
 * column. The library uses another method. */
static int64_t best_by_subsets(const int64_t *table, int64_t n)
{
    int64_t *best = calloc((size_t)1 << n, sizeof *best);
    for (size_t set = 1; set < (size_t)1 << n; set++) {
        const int64_t row = __builtin_popcountll(set) - 1;
        for (int64_t column = 0; column < n; column++) {
            const size_t bit = (size_t)1 << column;
            if (set & bit && best[set - bit] + table[row * n + column] > best[set])
                best[set] = best[set - bit] + table[row * n + column];
        }
    }
    const int64_t most = best[((size_t)1 << n) - 1];
    free(best);
    return most;
}

static bool has_partial(const oracle_layout *layout)
{
    for (int i = 0; i < layout->mesh.ndim; i++)
        if (layout->placements[i].kind == TSR_PARTIAL)
            return true;
    return false;
}

/* Without Partial. */
static int64_t received_by_all(const tsr_layout *src, const tsr_layout *dst)
{
    int64_t received = 0;
    for (int64_t rank = 0; rank < ORACLE_MAX_RANKS; rank++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        tsr_plan *plan = NULL;
        options.rank = rank;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        received += tsr_plan_bytes_received(plan);
        tsr_plan_destroy(plan);
    }
    return received;
}

static int64_t bytes_of_all_shards(const oracle_layout *layout)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < oracle_mesh_count(&layout->mesh); i++) {
        oracle_shard shard;
        oracle_shard_create(layout, layout->mesh.ranks[i], &shard);
        bytes += shard.count * (int64_t)oracle_bytes(layout->dtype);
        oracle_shard_destroy(&shard);
    }
    return bytes;
}

static void up_to_thirteen_ranks_get_the_optimum_and_plans_receive_all_but_what_is_kept(void **state)
{
    (void)state;
    const double end = test_now() + test_seconds(4);
    for (int64_t number = 0; number < 400 && test_now() < end; number++) {
        oracle_random random = {test_seed() * UINT64_C(7919) + (uint64_t)number};
        pair p;
        draw(&random, 13, 16, &p);
        if (has_partial(&p.src) || has_partial(&p.dst))
            continue;
        int64_t *table = shared_table(&p.src, &p.dst);
        const int64_t best =
            best_by_subsets(table, oracle_mesh_count(&p.dst.mesh)) * (int64_t)oracle_bytes(p.src.dtype);
        const tsr_relabel_report report = check_relabel(&p.src, &p.dst, table);
        free(table);
        tsr_layout *src = abstract_layout(&p.src), *dst = abstract_layout(&p.dst), *made = NULL;
        expect_ok(tsr_layout_relabel(src, dst, &made, NULL));
        const int64_t received = received_by_all(src, made), wanted = bytes_of_all_shards(&p.dst);
        if (report.bytes_kept != best || received != wanted - best)
            fail_msg("kept %lld, at best %lld; received %lld of %lld\ncase: %s", (long long)report.bytes_kept,
                     (long long)best, (long long)received, (long long)wanted, test_case_text());
        tsr_layout_destroy(made);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
}

/* Relabels a layout that is given as text, and returns the new mesh as text. */
static tsr_relabel_report relabel_text(const char *from_mesh, const char *from, const char *to_mesh, const char *to,
                                       const char *shape, char *mesh, size_t capacity)
{
    tsr_layout *src = layout_of(from_mesh, shape, from), *dst = layout_of(to_mesh, shape, to), *made = NULL;
    tsr_relabel_report report;
    test_case("%s %s on %s -> %s on %s", shape, from, from_mesh, to, to_mesh);
    expect_ok(tsr_layout_relabel(src, dst, &made, &report));
    tsr_mesh_print(tsr_layout_mesh(made), mesh, capacity);
    tsr_layout_destroy(made);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return report;
}

static const struct {
    const char *from_mesh, *from, *to_mesh, *to, *shape, *mesh;
    int64_t given, kept, moved;
} classics[] = {
    /* A rotated mesh is turned back, and nothing moves; so is a shuffled one. */
    {"4", "S(0)", "4@[1,2,3,0]", "S(0)", "8x2", "4", 0, 64, 4},
    {"8", "S(0)", "8@[5,2,7,0,1,3,6,4]", "S(0)", "16", "8", 8, 64, 7},
    /* Rows and columns of a mesh are one order away from each other. */
    {"2x2", "S(0),S(1)", "2x2", "S(1),S(0)", "4x4", "2x2@[0,2,1,3]", 32, 64, 2},
    {"dp=2,tp=2", "S(0)[1],S(0)[0]", "a=2,b=2", "S(0),S(0)", "8", "a=2,b=2@[0,2,1,3]", 16, 32, 2},
    /* Where every order keeps the same amount, the given order is returned. */
    {"4", "S(0)", "4@[1,2,3,0]", "S(1)", "4x4", "4@[1,2,3,0]", 16, 16, 0},
    {"4", "S(0)", "4@[1,2,3,0]", "R", "4x4", "4@[1,2,3,0]", 64, 64, 0},
    {"4", "R", "4@[1,2,3,0]", "S(0)", "4x4", "4@[1,2,3,0]", 64, 64, 0},
    /* Larger and smaller meshes: old ranks get the coordinates of which they have most, other ranks
     * the rest. */
    {"2", "S(0)", "4@[2,3,0,1]", "S(0)", "8", "4@[0,3,2,1]", 8, 16, 2},
    {"4", "S(0)", "2@[2,0]", "S(0)", "8", "2@[0,2]", 0, 16, 2},
    {"2", "S(0)", "2@4", "S(0)", "8", "2@4", 0, 0, 0},
    /* Terms that stay Partial need the source's order. The value of a new Partial goes to the rank
     * that has it. */
    {"2", "P", "2@[1,0]", "P", "4", "2", 16, 32, 2},
    {"2", "S(0)", "2@[1,0]", "P", "4", "2", 8, 16, 2},
    {"2@[1,0]", "P(max)", "2", "P(max)", "4", "2@[1,0]", 16, 32, 2},
    {"2x1", "S(0),R", "2@[1,0]", "S(0)", "4", "2", 0, 16, 2},
    {"2", "S(0)", "3@[1,2,0]", "P", "4", "3@[1,2,0]", 8, 8, 0},
    {"2", "S(0)", "3@[2,1,0]", "P", "4", "3@[1,2,0]", 0, 8, 2},
    /* An empty tensor. */
    {"4", "S(0)", "4@[1,2,3,0]", "S(0)", "0x3", "4@[1,2,3,0]", 0, 0, 0},
    {"2", "R", "2@[1,0]", "R", "scalar", "2@[1,0]", 8, 8, 0},
};

static void classic_orders_come_out_as_they_must(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof classics / sizeof *classics; i++) {
        char mesh[128];
        const tsr_relabel_report report = relabel_text(classics[i].from_mesh, classics[i].from, classics[i].to_mesh,
                                                       classics[i].to, classics[i].shape, mesh, sizeof mesh);
        if (report.bytes_kept_given != classics[i].given || report.bytes_kept != classics[i].kept ||
            report.moved_ranks != classics[i].moved || strcmp(mesh, classics[i].mesh) != 0)
            fail_msg("case %s: given keeps %lld, %s keeps %lld, %lld moved", test_case_text(),
                     (long long)report.bytes_kept_given, mesh, (long long)report.bytes_kept,
                     (long long)report.moved_ranks);
    }
}

static void a_mesh_in_another_order_knows_its_nodes(void **state)
{
    (void)state;
    const int64_t shape[] = {4};
    tsr_layout *src = layout_of("4", "4", "S(0)"), *given = layout_of("4@[3,2,1,0]", "4", "S(0)"), *dst, *out;
    tsr_mesh *mesh;
    tsr_relabel_report report;
    expect_ok(tsr_mesh_with_nodes(tsr_layout_mesh(given), &(tsr_nodes){.ranks_per_node = 2}, &mesh));
    expect_ok(tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_F32, &dst));
    expect_ok(tsr_layout_relabel(src, dst, &out, &report));
    assert_int_equal(report.moved_ranks, 4);
    assert_int_equal(tsr_mesh_nodes(tsr_layout_mesh(out)).ranks_per_node, 2);
    tsr_layout_destroy(out);
    tsr_layout_destroy(dst);
    tsr_mesh_destroy(mesh);
    tsr_layout_destroy(given);
    tsr_layout_destroy(src);
}

/* Pieces of 9, 19 and 1: rank 0 has 9 and 10 elements of the first two, rank 1 has 9 and 1 of the
 * last two. Greedy begins with the 10, which leaves 1 to rank 1. */
static void exact_beats_greedy_where_the_heaviest_overlap_misleads(void **state)
{
    (void)state;
    char mesh[128];
    const tsr_relabel_report report =
        relabel_text("2", "S(0;sizes=19,10)", "3@[1,0,2]", "S(0;sizes=9,19,1)", "29", mesh, sizeof mesh);
    assert_int_equal(report.method, TSR_ASSIGNMENT_EXACT);
    assert_int_equal(report.bytes_kept_given, 10 * sizeof(float));
    assert_int_equal(report.bytes_kept_greedy, 11 * sizeof(float));
    assert_int_equal(report.bytes_kept, 18 * sizeof(float));
    assert_string_equal(mesh, "3");
}

static void what_does_not_fit_is_refused_by_a_sentence(void **state)
{
    (void)state;
    tsr_layout *a = layout_of("2", "4x4", "S(0)"), *b = layout_of("2", "4x5", "S(0)"),
               *huge = layout_of("2", "562949953421312", "R");
    tsr_layout *out = NULL;
    tsr_relabel_report report = {.moved_ranks = -1};
    expect_error(tsr_layout_relabel(NULL, a, &out, &report), TSR_ERROR_ARGUMENT, "src");
    expect_error(tsr_layout_relabel(a, NULL, &out, &report), TSR_ERROR_ARGUMENT, "dst");
    expect_error(tsr_layout_relabel(a, a, NULL, &report), TSR_ERROR_ARGUMENT, "out");
    expect_error(tsr_layout_relabel(a, b, &out, &report), TSR_ERROR_ARGUMENT, "4x5");
    expect_error(tsr_layout_relabel(huge, huge, &out, &report), TSR_ERROR_ARGUMENT, "2251799813685248");
    assert_null(out);
    assert_int_equal(report.moved_ranks, -1);
    tsr_layout_destroy(huge);
    tsr_layout_destroy(b);
    tsr_layout_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_pair_of_layouts_gets_its_best_order),
        cmocka_unit_test(random_layouts_on_up_to_seven_ranks_get_their_best_order),
        cmocka_unit_test(up_to_thirteen_ranks_get_the_optimum_and_plans_receive_all_but_what_is_kept),
        cmocka_unit_test(classic_orders_come_out_as_they_must),
        cmocka_unit_test(a_mesh_in_another_order_knows_its_nodes),
        cmocka_unit_test(exact_beats_greedy_where_the_heaviest_overlap_misleads),
        cmocka_unit_test(what_does_not_fit_is_refused_by_a_sentence),
    };
    test_watchdog(30);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
