/* Meshes too large to try all orders: the result has the properties that are known of it, and the
 * work stays within bounds. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <tessera/relabel.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* A u8 matrix over an abstract mesh of `ranks`, or, for NULL, of 0, 1, .. */
static tsr_layout *layout_on(int ndim, const int64_t *mesh_shape, const int64_t *ranks, const tsr_placement *placements,
                             int64_t rows, int64_t columns)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    expect_ok(tsr_mesh_create_abstract(NULL, ndim, mesh_shape, NULL, ranks, &mesh));
    expect_ok(tsr_layout_create(mesh, placements, 2, (const int64_t[]){rows, columns}, TSR_U8, &layout));
    tsr_mesh_destroy(mesh);
    return layout;
}

/* The same matrix on a 1-d mesh of n ranks. */
static tsr_layout *layout_along(int64_t n, const int64_t *ranks, const tsr_placement *placement, int64_t rows,
                                int64_t columns)
{
    return layout_on(1, &n, ranks, placement, rows, columns);
}

static int64_t *shuffled(int64_t n)
{
    oracle_random random = {test_seed() + (uint64_t)n};
    int64_t *ranks = malloc((size_t)n * sizeof *ranks);
    for (int64_t i = 0; i < n; i++)
        ranks[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = oracle_random_below(&random, i + 1), held = ranks[i];
        ranks[i] = ranks[j];
        ranks[j] = held;
    }
    return ranks;
}

/* Draws n sizes from 0 to `most`, and writes their sum to `total`. */
static int64_t *random_sizes(oracle_random *random, int64_t n, int64_t most, int64_t *total)
{
    int64_t *sizes = malloc((size_t)n * sizeof *sizes);
    *total = 0;
    for (int64_t i = 0; i < n; i++)
        *total += sizes[i] = oracle_random_below(random, most + 1);
    return sizes;
}

static tsr_placement cut_by(const int64_t *sizes, int64_t n)
{
    tsr_placement p = tsr_shard(0);
    p.sizes = sizes;
    p.size_count = (size_t)n;
    return p;
}

static tsr_relabel_report relabel(const tsr_layout *src, const tsr_layout *dst)
{
    tsr_layout *made = NULL;
    tsr_relabel_report report;
    const double begin = test_now();
    expect_ok(tsr_layout_relabel(src, dst, &made, &report));
    print_message("%s: %s, %lld bytes kept, %lld as given, %lld by greedy, %.3f s\n", test_case_text(),
                  report.method == TSR_ASSIGNMENT_EXACT ? "exact" : "greedy", (long long)report.bytes_kept,
                  (long long)report.bytes_kept_given, (long long)report.bytes_kept_greedy, test_now() - begin);
    tsr_layout_destroy(made);
    return report;
}

static void a_shuffled_mesh_is_sorted_back_so_that_nothing_moves(void **state)
{
    (void)state;
    const int64_t counts[] = {512, 513, 4096, 1 << 16};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t n = counts[i];
        const tsr_placement rows = tsr_shard(0);
        int64_t *ranks = shuffled(n);
        tsr_layout *src = layout_along(n, NULL, &rows, 3 * n, 5), *dst = layout_along(n, ranks, &rows, 3 * n, 5);
        test_case("S(0) on %lld -> S(0) on the same ranks, shuffled", (long long)n);
        const tsr_relabel_report report = relabel(src, dst);
        assert_int_equal(report.method, n <= TSR_ASSIGNMENT_EXACT_RANKS ? TSR_ASSIGNMENT_EXACT : TSR_ASSIGNMENT_GREEDY);
        assert_int_equal(report.bytes_kept, 15 * n);
        assert_int_equal(report.bytes_kept_greedy, 15 * n);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        free(ranks);
    }
}

/* The source's order does not come into it where the destination has one rank more, so this is the
 * assignment's own doing. */
static void a_rank_more_leaves_the_others_what_they_have(void **state)
{
    (void)state;
    const int64_t counts[] = {511, 512, 4095};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t n = counts[i];
        int64_t *ranks = shuffled(n + 1), total;
        oracle_random random = {test_seed()};
        int64_t *sizes = random_sizes(&random, n + 1, 20, &total);
        total -= sizes[n / 2];
        sizes[n / 2] = 0;
        int64_t *kept = malloc((size_t)n * sizeof *kept);
        for (int64_t j = 0, to = 0; j <= n; j++)
            if (j != n / 2)
                kept[to++] = sizes[j];
        const tsr_placement from = cut_by(kept, n), to = cut_by(sizes, n + 1);
        tsr_layout *src = layout_along(n, NULL, &from, total, 2), *dst = layout_along(n + 1, ranks, &to, total, 2);
        test_case("S(0) by sizes on %lld -> the same sizes and an empty one, shuffled", (long long)n);
        const tsr_relabel_report report = relabel(src, dst);
        assert_int_equal(report.bytes_kept, 2 * total);
        assert_int_equal(report.bytes_kept_greedy, 2 * total);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        free(kept);
        free(sizes);
        free(ranks);
    }
}

/* Pieces of random sizes: most meet two or three of the other side, and the heaviest is often not
 * the one to take. */
static void exact_runs_at_its_limit_and_greedy_keeps_at_least_half_of_it(void **state)
{
    (void)state;
    const int64_t n = TSR_ASSIGNMENT_EXACT_RANKS;
    for (int64_t number = 0; number < 3; number++) {
        oracle_random random = {test_seed() + (uint64_t)number};
        int64_t *ranks = shuffled(n), total, other;
        int64_t *from_sizes = random_sizes(&random, n, 100, &total), *to_sizes = random_sizes(&random, n, 100, &other);
        while (other != total)
            for (int64_t i = 0; i < n && other != total; i++) {
                const int64_t step = other < total ? 1 : to_sizes[i] > 0 ? -1 : 0;
                to_sizes[i] += step;
                other += step;
            }
        const tsr_placement from = cut_by(from_sizes, n), to = cut_by(to_sizes, n);
        tsr_layout *src = layout_along(n, NULL, &from, total, 1), *dst = layout_along(n, ranks, &to, total, 1);
        test_case("random sizes on %lld ranks, seed %llu + %lld", (long long)n, (unsigned long long)test_seed(),
                  (long long)number);
        const tsr_relabel_report report = relabel(src, dst);
        assert_int_equal(report.method, TSR_ASSIGNMENT_EXACT);
        assert_true(report.bytes_kept > report.bytes_kept_greedy);
        /* A greedy matching has at least half the weight of the heaviest one, because each edge
         * that it takes excludes at most two others that weigh no more. */
        assert_true(2 * report.bytes_kept_greedy >= report.bytes_kept);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        free(to_sizes);
        free(from_sizes);
        free(ranks);
    }
}

/* All n^2 overlaps are equal. Any order keeps as much, so the given order must stay, and the n^2
 * overlaps must not be listed. */
static void where_every_pair_overlaps_alike_the_given_order_stays(void **state)
{
    (void)state;
    const int64_t counts[] = {512, 4096, (1 << 16) / test_step(8)};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t n = counts[i];
        const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1);
        int64_t *ranks = shuffled(n);
        tsr_layout *src = layout_along(n, NULL, &rows, n, n), *dst = layout_along(n, ranks, &columns, n, n);
        test_case("S(0) -> S(1) on %lld ranks", (long long)n);
        const tsr_relabel_report report = relabel(src, dst);
        assert_int_equal(report.bytes_kept_given, n);
        assert_int_equal(report.bytes_kept, n);
        assert_int_equal(report.bytes_kept_greedy, n);
        assert_int_equal(report.moved_ranks, 0);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        free(ranks);
    }
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Rank i has rows a_i, position j wants columns b_j: a_i * b_j elements are shared, and by the
 * rearrangement inequality no order keeps more than that which pairs the largest with the largest.
 * All n^2 weights differ, which is hard on an assignment. */
static void rows_of_all_sizes_meet_columns_of_all_sizes_largest_with_largest(void **state)
{
    (void)state;
    const int64_t n = TSR_ASSIGNMENT_EXACT_RANKS;
    oracle_random random = {test_seed()};
    int64_t rows, columns, best = 0;
    int64_t *a = random_sizes(&random, n, 1000, &rows), *b = random_sizes(&random, n, 1000, &columns),
            *ranks = shuffled(n);
    tsr_placement from = cut_by(a, n), to = cut_by(b, n);
    to.dim = 1;
    tsr_layout *src = layout_along(n, NULL, &from, rows, columns), *dst = layout_along(n, ranks, &to, rows, columns);
    test_case("S(0) by sizes -> S(1) by sizes on %lld ranks", (long long)n);
    const tsr_relabel_report report = relabel(src, dst);
    qsort(a, (size_t)n, sizeof *a, ascending);
    qsort(b, (size_t)n, sizeof *b, ascending);
    for (int64_t i = 0; i < n; i++)
        best += a[i] * b[i];
    assert_int_equal(report.bytes_kept, best);
    assert_int_equal(report.bytes_kept_greedy, best);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    free(ranks);
    free(b);
    free(a);
}

/* Rank (i, j) of 64x64 has rows 128 i to 128 i + 127 of column j, so that it shares 2 elements with
 * each of the 64 slabs of 2 rows in there, and none with the others. */
static void a_grid_becomes_slabs_held_by_the_ranks_that_have_a_part_of_them(void **state)
{
    (void)state;
    const int64_t grid[] = {64, 64};
    const tsr_placement blocks[] = {tsr_shard(0), tsr_shard(1)}, slabs = tsr_shard(0);
    int64_t *ranks = shuffled(4096);
    tsr_layout *src = layout_on(2, grid, NULL, blocks, 8192, 64), *dst = layout_along(4096, ranks, &slabs, 8192, 64);
    test_case("S(0),S(1) on 64x64 -> S(0) on 4096, shuffled");
    const tsr_relabel_report report = relabel(src, dst);
    assert_int_equal(report.bytes_kept, 4096 * 2);
    assert_int_equal(report.method, TSR_ASSIGNMENT_GREEDY);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    free(ranks);
}

/* On 2 x n, position (r, c) has rank 2 c + r, which holds piece c, but for two ranks that stand in
 * each other's places: whoever else has what it wants must stay. The source's mesh, n x 2, has
 * another shape and does not compete. */
static void ranks_that_have_what_they_want_stay(void **state)
{
    (void)state;
    const int64_t counts[] = {100, 500};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int64_t n = counts[i], from_shape[] = {n, 2}, to_shape[] = {2, n};
        const tsr_placement from[] = {tsr_shard(0), tsr_replicate()}, to[] = {tsr_replicate(), tsr_shard(0)};
        int64_t *ranks = malloc((size_t)(2 * n) * sizeof *ranks);
        for (int64_t r = 0; r < 2; r++)
            for (int64_t c = 0; c < n; c++)
                ranks[r * n + c] = 2 * c + r;
        const int64_t held = ranks[0];
        ranks[0] = ranks[n + 1];
        ranks[n + 1] = held;
        tsr_layout *src = layout_on(2, from_shape, NULL, from, 3 * n, 2),
                   *dst = layout_on(2, to_shape, ranks, to, 3 * n, 2);
        test_case("S(0),R on %lldx2 -> R,S(0) on 2x%lld, two ranks changed", (long long)n, (long long)n);
        const tsr_relabel_report report = relabel(src, dst);
        assert_int_equal(report.bytes_kept, 2 * n * 6);
        assert_int_equal(report.bytes_kept_given, (2 * n - 2) * 6);
        assert_int_equal(report.moved_ranks, 2);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        free(ranks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shuffled_mesh_is_sorted_back_so_that_nothing_moves),
        cmocka_unit_test(a_rank_more_leaves_the_others_what_they_have),
        cmocka_unit_test(exact_runs_at_its_limit_and_greedy_keeps_at_least_half_of_it),
        cmocka_unit_test(where_every_pair_overlaps_alike_the_given_order_stays),
        cmocka_unit_test(rows_of_all_sizes_meet_columns_of_all_sizes_largest_with_largest),
        cmocka_unit_test(ranks_that_have_what_they_want_stay),
        cmocka_unit_test(a_grid_becomes_slabs_held_by_the_ranks_that_have_a_part_of_them),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
