/**
 * What crosses between nodes, of plans without Partial, held against sets of elements that the oracle lists.
 *
 * Where copies are handed round, an element crosses into a node once if some rank there wants it and none has it, and not at all otherwise;
 * where everybody fetches a copy, once for each rank that wants it there. Nobody receives a byte more than it lacks either way.
 */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <tessera/tessera.h>

#include <cmocka.h>

enum { RANKS = 12, ELEMENTS = 1024, DRAWS = 3000 };

/** Handing round costs nothing, or more than anything. */
static const tsr_cost_profile round_is_free = {{0.0, 1e15}, {1e-3, 1e3}}, round_is_dear = {{1e6, 1e15}, {1e6, 1e3}};

typedef struct draw {
    oracle_layout src, dst;
    oracle_numbers numbers;
    int64_t ranks_per_node;
    bool has[RANKS][ELEMENTS], wants[RANKS][ELEMENTS];
} draw;

static bool has_partial(const oracle_layout *layout)
{
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].kind == TSR_PARTIAL)
            return true;
    return false;
}

static bool make(draw *d, uint64_t seed)
{
    oracle_random random = {.state = seed};
    memset(d, 0, sizeof(*d));
    d->src.dtype = TSR_I16;
    oracle_random_shape(&random, 3, ELEMENTS, &d->src);
    d->src.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, RANKS), RANKS);
    d->dst = d->src;
    if (oracle_random_below(&random, 2))
        d->dst.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, RANKS), RANKS);
    oracle_random_placements(&random, &d->src, &d->numbers);
    oracle_random_placements(&random, &d->dst, &d->numbers);
    d->ranks_per_node = 2 + oracle_random_below(&random, 4);
    for (int r = 0; r < RANKS; r++) {
        oracle_mark(&d->src, r, d->has[r]);
        oracle_mark(&d->dst, r, d->wants[r]);
    }
    return !has_partial(&d->src) && !has_partial(&d->dst);
}

typedef struct crossing {
    int64_t rank, ranks_per_node, inside, between; /* bytes */
} crossing;

static tsr_status add(const tsr_plan_transfer *transfer, void *user)
{
    crossing *c = user;
    *(transfer->peer / c->ranks_per_node == c->rank / c->ranks_per_node ? &c->inside : &c->between) += transfer->bytes;
    return TSR_OK;
}

/** What the plans of a node's ranks receive from outside, and whether each receives just what it lacks. */
static int64_t received_between(const draw *d, const tsr_layout *src, const tsr_layout *dst, const tsr_cost_profile *profile, int64_t node)
{
    int64_t between = 0;
    for (int64_t r = node * d->ranks_per_node; r < (node + 1) * d->ranks_per_node && r < RANKS; r++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = r;
        options.ranks_per_node = d->ranks_per_node;
        options.profile = profile;
        tsr_plan *plan;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        crossing c = {.rank = r, .ranks_per_node = d->ranks_per_node};
        expect_ok(tsr_plan_visit_receives(plan, add, &c));
        tsr_plan_destroy(plan);
        int64_t lacks = 0;
        for (int e = 0; e < ELEMENTS; e++)
            lacks += d->wants[r][e] && !d->has[r][e];
        if (c.inside + c.between != 2 * lacks)
            fail_msg("rank %lld receives %lld bytes, but lacks %lld: %s", (long long)r, (long long)(c.inside + c.between),
                     (long long)(2 * lacks), test_case_text());
        between += c.between;
    }
    return between;
}

/** Elements that some rank of the node wants and none has, counted once, or once for each that wants it. */
static int64_t lacked(const draw *d, int64_t node, bool once)
{
    int64_t count = 0;
    for (int e = 0; e < ELEMENTS; e++) {
        int64_t wanted = 0;
        bool had = false;
        for (int64_t r = node * d->ranks_per_node; r < (node + 1) * d->ranks_per_node && r < RANKS; r++) {
            wanted += d->wants[r][e];
            had = had || d->has[r][e];
        }
        count += had ? 0 : once ? wanted > 0 : wanted;
    }
    return count;
}

static void judge(const draw *d, const tsr_layout *src, const tsr_layout *dst, int64_t node)
{
    const int64_t shared = received_between(d, src, dst, &round_is_free, node), once = 2 * lacked(d, node, true);
    const int64_t fetched = received_between(d, src, dst, &round_is_dear, node), each = 2 * lacked(d, node, false);
    if (fetched != each)
        fail_msg("%lld bytes cross into node %lld instead of %lld: %s", (long long)fetched, (long long)node, (long long)each,
                 test_case_text());
    /* Ranks that own different, overlapping pieces are no mates: only copies of one piece are handed round. */
    if (shared < once || shared > each)
        fail_msg("%lld bytes cross into node %lld, %lld would do: %s", (long long)shared, (long long)node, (long long)once,
                 test_case_text());
}

static void a_node_takes_what_it_lacks_once(void **state)
{
    (void)state;
    static draw d;
    char text[3][256], mesh[2][256];
    for (uint64_t i = 0, made = 0; made < DRAWS; i++) {
        if (!make(&d, test_seed() * UINT64_C(1000000007) + i))
            continue;
        made++;
        test_case("--mesh %s --to-mesh %s --shape %s --from %s --to %s --ranks-per-node %lld",
                  oracle_print_mesh(&d.src.mesh, mesh[0], sizeof(mesh[0])), oracle_print_mesh(&d.dst.mesh, mesh[1], sizeof(mesh[1])),
                  oracle_print_shape(d.src.ndim, d.src.shape, text[2], sizeof(text[2])),
                  oracle_print_placements(d.src.placements, d.src.mesh.ndim, text[0], sizeof(text[0])),
                  oracle_print_placements(d.dst.placements, d.dst.mesh.ndim, text[1], sizeof(text[1])), (long long)d.ranks_per_node);
        tsr_layout *src = abstract_layout(&d.src), *dst = abstract_layout(&d.dst);
        for (int64_t node = 0; node * d.ranks_per_node < RANKS; node++)
            judge(&d, src, dst, node);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

static int64_t between_of(const char *mesh, const char *from, const char *to, const tsr_cost_profile *profile, int64_t *most)
{
    tsr_layout *src = layout_of(mesh, "64x64", from), *dst = layout_of(mesh, "64x64", to);
    int64_t all = 0;
    *most = 0;
    for (int64_t r = 0; r < 8; r++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = r;
        options.ranks_per_node = 4;
        options.profile = profile;
        tsr_plan *plan;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        crossing c = {.rank = r, .ranks_per_node = 4};
        expect_ok(tsr_plan_visit_receives(plan, add, &c));
        *most = c.between > *most ? c.between : *most;
        all += c.between;
        tsr_plan_destroy(plan);
    }
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return all;
}

/** Two nodes of four. Their ranks share the work: each fetches a fourth of what the node lacks. */
static void replicas_over_a_network_cross_once(void **state)
{
    (void)state;
    static const char *const moves[][3] = {
        {"8", "S(0)", "R"}, {"2x4", "S(0),R", "R,R"}, {"2x4", "S(0),S(0)", "R,R"}, {"2x4", "S(1),S(0)", "R,R"}};
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        int64_t most;
        test_case("%s: %s to %s", moves[i][0], moves[i][1], moves[i][2]);
        assert_int_equal(between_of(moves[i][0], moves[i][1], moves[i][2], &round_is_free, &most), 2 * 64 * 64 / 2 * 4);
        assert_int_equal(most, 64 * 64 / 2 / 4 * 4);
        assert_int_equal(between_of(moves[i][0], moves[i][1], moves[i][2], &round_is_dear, &most), 8 * 64 * 64 / 2 * 4);
    }
}

/** Each of eight homes reduces an eighth, of which four terms come from the other node. Then each node takes the other's four eighths once,
 * or once for each of its ranks. */
static void results_cross_once(void **state)
{
    (void)state;
    const int64_t tensor = 64 * 64 * 4, terms = 8 * tensor / 8 * 4;
    int64_t most;
    assert_int_equal(between_of("8", "P", "R", &round_is_free, &most), terms + 2 * tensor / 2);
    assert_int_equal(between_of("8", "P", "R", &round_is_dear, &most), terms + 8 * tensor / 2);
    assert_int_equal(between_of("2x4", "P,P", "R,R", &round_is_free, &most), terms + 2 * tensor / 2);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_what_it_lacks_once),
        cmocka_unit_test(replicas_over_a_network_cross_once),
        cmocka_unit_test(results_cross_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
