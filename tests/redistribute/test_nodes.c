/* What crosses between nodes in plans without Partial, compared with sets of elements that the
 * oracle lists. Where ranks of a node share copies, an element crosses into a node once if some
 * rank there wants it and none has it, else not at all. Where every rank fetches its copy, it
 * crosses once for each rank that wants it. No rank receives a byte more than it lacks. Nodes have
 * any sizes, with their ranks one after the other or mixed. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 12, ELEMENTS = 1024, DRAWS = 3000 };

/* Sharing within a node costs nothing, or more than anything else. */
static const tsr_cost_profile round_is_free = {{0.0, 1e15}, {1e-3, 1e3}}, round_is_dear = {{1e6, 1e15}, {1e6, 1e3}};

typedef struct draw {
    oracle_layout src, dst;
    oracle_numbers numbers;
    int64_t node[RANKS];
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
    memset(d, 0, sizeof *d);
    d->src.dtype = TSR_I16;
    oracle_random_shape(&random, 3, ELEMENTS, &d->src);
    d->src.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, RANKS), RANKS);
    d->dst = d->src;
    if (oracle_random_below(&random, 2))
        d->dst.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, RANKS), RANKS);
    oracle_random_placements(&random, &d->src, &d->numbers);
    oracle_random_placements(&random, &d->dst, &d->numbers);
    const int64_t each = oracle_random_below(&random, 3) == 0 ? 2 + oracle_random_below(&random, 4) : 0;
    for (int r = 0; r < RANKS && each > 0; r++)
        d->node[r] = r / each;
    if (each == 0)
        oracle_random_nodes(&random, RANKS, d->node);
    for (int r = 0; r < RANKS; r++) {
        oracle_mark(&d->src, r, d->has[r]);
        oracle_mark(&d->dst, r, d->wants[r]);
    }
    return !has_partial(&d->src) && !has_partial(&d->dst);
}

typedef struct crossing {
    const int64_t *node;
    int64_t rank, inside, between; /* bytes */
} crossing;

static tsr_status add(const tsr_plan_transfer *transfer, void *user)
{
    crossing *c = user;
    *(c->node[transfer->peer] == c->node[c->rank] ? &c->inside : &c->between) += transfer->bytes;
    return TSR_OK;
}

/* The bytes that one rank's plan receives from ranks of its node and from others. */
static crossing received(const tsr_layout *src, const tsr_layout *dst, const int64_t *node, int64_t ranks, int64_t rank,
                         const tsr_cost_profile *profile)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    options.nodes = (tsr_nodes){0, ranks, node};
    options.profile = profile;
    tsr_plan *plan;
    crossing c = {.node = node, .rank = rank};
    expect_ok(tsr_plan_create(src, dst, &options, &plan));
    expect_ok(tsr_plan_visit_receives(plan, add, &c));
    tsr_plan_destroy(plan);
    return c;
}

/* The bytes that the ranks in the node of `like` receive from other nodes; and whether each rank
 * receives just what it lacks. */
static int64_t received_between(const draw *d, const tsr_layout *src, const tsr_layout *dst,
                                const tsr_cost_profile *profile, int64_t like)
{
    int64_t between = 0;
    for (int64_t r = 0; r < RANKS; r++) {
        if (d->node[r] != d->node[like])
            continue;
        const crossing c = received(src, dst, d->node, RANKS, r, profile);
        int64_t lacks = 0;
        for (int e = 0; e < ELEMENTS; e++)
            lacks += d->wants[r][e] && !d->has[r][e];
        if (c.inside + c.between != 2 * lacks)
            fail_msg("rank %lld receives %lld bytes, but lacks %lld: %s", (long long)r,
                     (long long)(c.inside + c.between), (long long)(2 * lacks), test_case_text());
        between += c.between;
    }
    return between;
}

/* The elements that some rank in the node of `like` wants and none has, counted once, or once for
 * each rank that wants them. */
static int64_t lacked(const draw *d, int64_t like, bool once)
{
    int64_t count = 0;
    for (int e = 0; e < ELEMENTS; e++) {
        int64_t wanted = 0;
        bool had = false;
        for (int64_t r = 0; r < RANKS; r++) {
            wanted += d->node[r] == d->node[like] && d->wants[r][e];
            had = had || (d->node[r] == d->node[like] && d->has[r][e]);
        }
        count += had ? 0 : once ? wanted > 0 : wanted;
    }
    return count;
}

/* Of each destination piece, one for all ranks that own it in a node, what nobody there has: ranks
 * that own different, overlapping pieces are no mates, and only copies of one piece are handed
 * round. */
static int64_t lacked_by_piece(const draw *d, int64_t like)
{
    int64_t count = 0;
    for (int64_t r = 0; r < RANKS; r++) {
        bool first = d->node[r] == d->node[like];
        for (int64_t other = 0; other < r; other++)
            first = first &&
                    (d->node[other] != d->node[r] || memcmp(d->wants[other], d->wants[r], sizeof d->wants[r]) != 0);
        for (int e = 0; first && e < ELEMENTS; e++) {
            bool had = !d->wants[r][e];
            for (int64_t mate = 0; mate < RANKS && !had; mate++)
                had = d->node[mate] == d->node[like] && d->has[mate][e];
            count += !had;
        }
    }
    return count;
}

static void judge(const draw *d, const tsr_layout *src, const tsr_layout *dst, int64_t like)
{
    const int64_t shared = received_between(d, src, dst, &round_is_free, like), once = 2 * lacked_by_piece(d, like);
    const int64_t fetched = received_between(d, src, dst, &round_is_dear, like), each = 2 * lacked(d, like, false);
    if (fetched != each)
        fail_msg("%lld bytes cross into the node of rank %lld instead of %lld: %s", (long long)fetched, (long long)like,
                 (long long)each, test_case_text());
    if (shared != once)
        fail_msg("%lld bytes cross into the node of rank %lld instead of %lld: %s", (long long)shared, (long long)like,
                 (long long)once, test_case_text());
}

static const char *print_nodes(const int64_t *node, int64_t ranks, char *text, size_t capacity)
{
    size_t length = 0;
    for (int64_t r = 0; r < ranks && length < capacity; r++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", r ? "," : "", (long long)node[r]);
    return text;
}

/* Of its node. */
static bool is_lowest(const int64_t *node, int64_t rank)
{
    int64_t r = 0;
    while (node[r] != node[rank])
        r++;
    return r == rank;
}

static void a_node_takes_what_it_lacks_once(void **state)
{
    (void)state;
    static draw d;
    char text[3][256], mesh[2][256], nodes[12 * RANKS];
    for (uint64_t i = 0, made = 0; made < DRAWS; i++) {
        if (!make(&d, test_seed() * UINT64_C(1000000007) + i))
            continue;
        made++;
        test_case("--mesh %s --to-mesh %s --shape %s --from %s --to %s --nodes [%s]",
                  oracle_print_mesh(&d.src.mesh, mesh[0], sizeof mesh[0]),
                  oracle_print_mesh(&d.dst.mesh, mesh[1], sizeof mesh[1]),
                  oracle_print_shape(d.src.ndim, d.src.shape, text[2], sizeof text[2]),
                  oracle_print_placements(d.src.placements, d.src.mesh.ndim, text[0], sizeof text[0]),
                  oracle_print_placements(d.dst.placements, d.dst.mesh.ndim, text[1], sizeof text[1]),
                  print_nodes(d.node, RANKS, nodes, sizeof nodes));
        tsr_layout *src = abstract_layout(&d.src), *dst = abstract_layout(&d.dst);
        for (int64_t r = 0; r < RANKS; r++)
            if (is_lowest(d.node, r))
                judge(&d, src, dst, r);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

static const int64_t fours[] = {0, 0, 0, 0, 1, 1, 1, 1};

static int64_t between_of(const char *mesh, const char *from, const char *to, const tsr_cost_profile *profile,
                          int64_t *most)
{
    tsr_layout *src = layout_of(mesh, "64x64", from), *dst = layout_of(mesh, "64x64", to);
    int64_t all = 0;
    *most = 0;
    for (int64_t r = 0; r < 8; r++) {
        const crossing c = received(src, dst, fours, 8, r, profile);
        *most = c.between > *most ? c.between : *most;
        all += c.between;
    }
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return all;
}

/* Two nodes of four ranks. The ranks of a node share the work: each fetches a fourth of what the
 * node lacks. */
static void replicas_over_a_network_cross_once(void **state)
{
    (void)state;
    static const char *const moves[][3] = {
        {"8", "S(0)", "R"}, {"2x4", "S(0),R", "R,R"}, {"2x4", "S(0),S(0)", "R,R"}, {"2x4", "S(1),S(0)", "R,R"}};
    for (size_t i = 0; i < sizeof(moves) / sizeof moves[0]; i++) {
        int64_t most;
        test_case("%s: %s to %s", moves[i][0], moves[i][1], moves[i][2]);
        assert_int_equal(between_of(moves[i][0], moves[i][1], moves[i][2], &round_is_free, &most), 2 * 64 * 64 / 2 * 4);
        assert_int_equal(most, 64 * 64 / 2 / 4 * 4);
        assert_int_equal(between_of(moves[i][0], moves[i][1], moves[i][2], &round_is_dear, &most), 8 * 64 * 64 / 2 * 4);
    }
}

/* Each of eight homes reduces an eighth, of which four terms come from the other node. Then each
 * node takes the other's four eighths once, or once for each of its ranks. */
static void results_cross_once(void **state)
{
    (void)state;
    const int64_t tensor = 64 * 64 * 4, terms = 8 * tensor / 8 * 4;
    int64_t most;
    assert_int_equal(between_of("8", "P", "R", &round_is_free, &most), terms + 2 * tensor / 2);
    assert_int_equal(between_of("8", "P", "R", &round_is_dear, &most), terms + 8 * tensor / 2);
    assert_int_equal(between_of("2x4", "P,P", "R,R", &round_is_free, &most), terms + 2 * tensor / 2);
}

/* Partitions of ranks into nodes, which have ranks one after the other or mixed. */
static const struct {
    const char *mesh;
    int64_t ranks, node[15];
} partitions[] = {
    {"15", 15, {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"6", 6, {0, 1, 1, 2, 2, 2}},
    {"6", 6, {0, 0, 0, 0, 0, 1}},
    {"8", 8, {0, 0, 0, 1, 1, 1, 2, 2}},
    {"5", 5, {0, 1, 2, 3, 3}},
    {"6@[5,3,1,0,2,4]", 6, {0, 0, 1, 1, 1, 1}},
    {"8", 8, {0, 1, 2, 0, 1, 2, 0, 1}},
    {"7", 7, {4, 4, 9, 4, 9, 4, 9}},
    /* There are so many pieces that they are dealt out whole. */
    {"8", 8, {0, 1, 2, 3, 0, 1, 2, 3}},
    {"15", 15, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}},
    {"15", 15, {0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3}},
};

enum { PARTITIONS = sizeof partitions / sizeof partitions[0] };

static int64_t size_of(size_t partition, int64_t like)
{
    int64_t size = 0;
    for (int64_t r = 0; r < partitions[partition].ranks; r++)
        size += partitions[partition].node[r] == partitions[partition].node[like];
    return size;
}

/* 840 rows, which 5, 6, 7, 8 and 15 ranks divide, and columns that the ranks of any node divide by
 * whole cache lines: whatever a node lacks crosses into it once, in equal shares, one for each of
 * its ranks. */
static void unequal_nodes_share_what_they_lack_equally(void **state)
{
    (void)state;
    enum { ROWS = 840, COLUMNS = 13440, BYTES = 4 };
    for (size_t i = 0; i < PARTITIONS; i++) {
        const int64_t *node = partitions[i].node, ranks = partitions[i].ranks;
        char nodes[256];
        test_case("--mesh %s --shape 840x13440 --from S(0) --to R --nodes [%s]", partitions[i].mesh,
                  print_nodes(node, ranks, nodes, sizeof nodes));
        tsr_layout *src = layout_of(partitions[i].mesh, "840x13440", "S(0)"),
                   *dst = layout_of(partitions[i].mesh, "840x13440", "R");
        for (int64_t r = 0; r < ranks; r++) {
            const int64_t size = size_of(i, r), lacked_there = (ranks - size) * (ROWS / ranks) * COLUMNS * BYTES;
            const crossing shared = received(src, dst, node, ranks, r, &round_is_free);
            const crossing fetched = received(src, dst, node, ranks, r, &round_is_dear);
            assert_int_equal(shared.between, lacked_there / size);
            assert_int_equal(shared.inside + shared.between, (ranks - 1) * (ROWS / ranks) * COLUMNS * BYTES);
            assert_int_equal(fetched.between, lacked_there);
        }
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

/* Every rank takes the terms of its part from all others; and each node the parts of others,
 * reduced, once: no rank of it more than one part more than another. */
static void results_cross_once_into_unequal_nodes(void **state)
{
    (void)state;
    enum { TENSOR = 840 * 13440 * 4 };
    for (size_t i = 0; i < PARTITIONS; i++) {
        const int64_t *node = partitions[i].node, ranks = partitions[i].ranks, part = TENSOR / ranks;
        char nodes[256];
        test_case("--mesh %s --shape 840x13440 --from P --to R --nodes [%s]", partitions[i].mesh,
                  print_nodes(node, ranks, nodes, sizeof nodes));
        tsr_layout *src = layout_of(partitions[i].mesh, "840x13440", "P"),
                   *dst = layout_of(partitions[i].mesh, "840x13440", "R");
        int64_t between = 0, wanted = 0;
        for (int64_t r = 0; r < ranks; r++) {
            const int64_t others = ranks - size_of(i, r);
            const int64_t own = received(src, dst, node, ranks, r, &round_is_free).between,
                          parts = (own - others * part) / part;
            between += own;
            assert_true(parts == others / size_of(i, r) ||
                        parts == others / size_of(i, r) + (others % size_of(i, r) > 0));
            wanted += others * part * (is_lowest(node, r) ? 2 : 1);
        }
        assert_int_equal(between, wanted);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

/* Ranks 1, 2, 3 and 5 of 64 share a node, and the others have one each; of ranks 1 to 6 the middle
 * ones share nodes of two: whoever looks at the ends alone, or here and there, finds nobody to
 * share with. */
static void ranks_that_share_a_node_are_found_among_many_that_do_not(void **state)
{
    (void)state;
    int64_t node[64];
    for (int64_t r = 0; r < 64; r++)
        node[r] = r == 1 || r == 2 || r == 3 || r == 5 ? 100 : r;
    tsr_layout *src = layout_of("64", "64x64", "S(0)"), *dst = layout_of("64", "64x64", "R");
    assert_int_equal(received(src, dst, node, 64, 5, &round_is_free).between, 60 / 4 * 64 * 4);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    src = layout_of("6@1", "840x64", "S(0)");
    dst = layout_of("6@1", "840x64", "R");
    assert_int_equal(received(src, dst, (const int64_t[]){0, 0, 1, 1, 2, 2, 3}, 7, 2, &round_is_free).between,
                     4 * 140 / 2 * 64 * 4);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

/* The first half of the ranks shares a node, the second but for one another one: a piece has an
 * owner in each. */
static void that_nobody_has_mates_is_found_without_asking_everybody_for_everybody(void **state)
{
    enum { HALF = 1 << 19 };
    (void)state;
    int64_t *const node = malloc(2 * HALF * sizeof *node);
    assert_non_null(node);
    for (int64_t r = 0; r < 2 * HALF; r++)
        node[r] = r < HALF ? 0 : r < 2 * HALF - 1 ? 1 : 2;
    tsr_layout *src = layout_of("2x524288", "524288x524288", "R,S(0)"),
               *dst = layout_of("2x524288", "524288x524288", "R,S(1)");
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *plan;
    options.rank = TSR_RANK_NONE;
    options.nodes = (tsr_nodes){0, 2 * HALF, node};
    options.profile = &round_is_free;
    expect_ok(tsr_plan_create(src, dst, &options, &plan));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    free(node);
}

static tsr_status add_if_far(const tsr_plan_transfer *transfer, void *user)
{
    *(int64_t *)user += transfer->peer >= 1 << 30 ? transfer->bytes : 0;
    return TSR_OK;
}

/* Two ranks of the first 2^30, and two of the next, list or no list: each takes one of the two
 * pieces that its node lacks. */
static void ranks_are_found_in_nodes_that_have_numbers_for_many_more(void **state)
{
    static const char *const meshes[] = {"4@[0,1,1073741824,1073741825]", "4@[0,536870912,1073741824,1610612736]"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tsr_layout *src = layout_of(meshes[i], "64x64", "S(0)"), *dst = layout_of(meshes[i], "64x64", "R");
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        tsr_plan *plan;
        int64_t far = 0;
        options.rank = 0;
        options.nodes.ranks_per_node = 1 << 30;
        options.profile = &round_is_free;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        expect_ok(tsr_plan_visit_receives(plan, add_if_far, &far));
        assert_int_equal(far, 64 * 64 / 4 * 4);
        tsr_plan_destroy(plan);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

static void a_list_in_the_form_of_equal_nodes_plans_as_these_do(void **state)
{
    (void)state;
    tsr_layout *src = layout_of("8", "64x64", "S(0)"), *dst = layout_of("8", "64x64", "R");
    for (int64_t each = 1; each <= 8; each++) {
        int64_t node[8];
        tsr_plan *plan[2];
        char text[2][1024];
        for (int64_t r = 0; r < 8; r++)
            node[r] = 100 - r / each;
        const tsr_nodes nodes[] = {{each, 0, NULL}, {0, 8, node}};
        for (int i = 0; i < 2; i++) {
            tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
            size_t length;
            options.rank = 3;
            options.nodes = nodes[i];
            options.profile = &round_is_free;
            expect_ok(tsr_plan_create(src, dst, &options, &plan[i]));
            expect_ok(tsr_plan_describe(plan[i], text[i], sizeof text[i], &length));
            tsr_plan_destroy(plan[i]);
        }
        assert_string_equal(text[0], text[1]);
    }
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

static void expect_refused(const tsr_layout *src, const tsr_layout *dst, tsr_nodes nodes, const char *words)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *plan = NULL;
    options.nodes = nodes;
    expect_error(tsr_plan_create(src, dst, &options, &plan), TSR_ERROR_ARGUMENT, words);
    assert_null(plan);
}

static void nodes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    tsr_layout *src = layout_of("4", "8", "S(0)"), *dst = layout_of("4@2", "8", "S(0)");
    expect_refused(src, dst, (tsr_nodes){-2, 0, NULL}, "tsr_plan_options.nodes.ranks_per_node is -2");
    expect_refused(src, dst, (tsr_nodes){0, -1, NULL}, "tsr_plan_options.nodes.count is -1");
    expect_refused(src, dst, (tsr_nodes){0, 4, NULL}, "tsr_plan_options.nodes.node is NULL, but count is 4");
    expect_refused(src, dst, (tsr_nodes){2, 6, fours}, "2 ranks a node and a list of 6 ranks");
    expect_refused(src, dst, (tsr_nodes){0, 5, (const int64_t[]){0, 0, 0, 1, 1}},
                   "tsr_plan_options.nodes, or those that the first mesh knows, are listed for ranks 0 to 4, but a "
                   "mesh has rank 5");
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_takes_what_it_lacks_once),
        cmocka_unit_test(replicas_over_a_network_cross_once),
        cmocka_unit_test(results_cross_once),
        cmocka_unit_test(unequal_nodes_share_what_they_lack_equally),
        cmocka_unit_test(results_cross_once_into_unequal_nodes),
        cmocka_unit_test(ranks_that_share_a_node_are_found_among_many_that_do_not),
        cmocka_unit_test(that_nobody_has_mates_is_found_without_asking_everybody_for_everybody),
        cmocka_unit_test(ranks_are_found_in_nodes_that_have_numbers_for_many_more),
        cmocka_unit_test(a_list_in_the_form_of_equal_nodes_plans_as_these_do),
        cmocka_unit_test(nodes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
