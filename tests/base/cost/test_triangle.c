/*
 * No layout in between makes a move quicker: the seconds that plans tell obey the triangle
 * inequality. That is why the planner does not search such layouts.
 */
#include <tessera/explain.h>

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_LAYOUTS 32
#define TEXT_BYTES   48

typedef struct place {
    const char *mesh;
    int ndim;          /* of the mesh */
    const char *nodes; /* one digit a rank; NULL: not known */
} place;

typedef struct tensor {
    int ndim;
    int64_t shape[2];
} tensor;

/* The layouts of one tensor on one mesh that are compared. */
typedef struct layouts {
    int count;
    char text[MOST_LAYOUTS][TEXT_BYTES];
    tsr_layout *at[MOST_LAYOUTS];
    double seconds[MOST_LAYOUTS][MOST_LAYOUTS];
} layouts;

/* Latencies in seconds and bandwidths in bytes a second. Links between nodes are: as usual; like
 * those inside, without latency; far faster; far slower; nothing but latency. */
static const tsr_cost_profile profiles[] = {
    {{5e-7, 1.6e10}, {5e-6, 1.25e10}}, {{0, 1}, {0, 1}},       {{1e-6, 1e9}, {1e-6, 1e12}},
    {{1e-6, 1e9}, {1e-3, 1e6}},        {{1, 1e30}, {1, 1e30}},
};

#define PROFILES (int)(sizeof profiles / sizeof *profiles)

/* Replaces each layout by as many as there are placements, with one of them appended. */
static void extend(layouts *all, const char *const *placements, int ndim)
{
    char before[MOST_LAYOUTS][TEXT_BYTES];
    const int count = all->count;
    memcpy(before, all->text, sizeof before);
    all->count = 0;
    for (int i = 0; i < count; i++) {
        for (const char *const *p = placements; *p; p++) {
            assert_true(all->count < MOST_LAYOUTS);
            snprintf(all->text[all->count++], TEXT_BYTES, "%.36s%s%s", before[i], ndim > 0 ? "," : "", *p);
        }
    }
}

static void add_layout(layouts *all, const char *text)
{
    assert_true(all->count < MOST_LAYOUTS);
    snprintf(all->text[all->count++], TEXT_BYTES, "%s", text);
}

/* Every combination of the placements, and the cuts of one dim in the other order. */
static void list_layouts(layouts *all, const place *at, const tensor *x, const char *const *placements)
{
    tsr_mesh *mesh = NULL;
    all->count = 1;
    all->text[0][0] = '\0';
    for (int d = 0; d < at->ndim; d++)
        extend(all, placements, d);
    if (at->ndim == 2)
        add_layout(all, "S(0)[1],S(0)[0]");
    if (at->ndim == 2 && x->ndim == 2)
        add_layout(all, "S(1)[1],S(1)[0]");
    assert_int_equal(tsr_mesh_parse(NULL, NULL, at->mesh, &mesh), TSR_OK);
    for (int i = 0; i < all->count; i++)
        if (tsr_layout_parse(mesh, all->text[i], x->ndim, x->shape, TSR_F32, &all->at[i]) != TSR_OK)
            fail_msg("%s", tsr_status_message());
    tsr_mesh_destroy(mesh);
}

static void free_layouts(layouts *all)
{
    for (int i = 0; i < all->count; i++)
        tsr_layout_destroy(all->at[i]);
}

static double seconds_of(const tsr_layout *from, const tsr_layout *to, const char *nodes,
                         const tsr_cost_profile *profile)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan_survey survey;
    tsr_plan *plan = NULL;
    int64_t node[8];
    for (size_t r = 0; nodes && nodes[r]; r++)
        node[r] = nodes[r] - '0';
    options.nodes = nodes ? (tsr_nodes){0, (int64_t)strlen(nodes), node} : (tsr_nodes){0};
    options.profile = profile;
    if (tsr_plan_create(from, to, &options, &plan) != TSR_OK || tsr_plan_survey_of(plan, &survey) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_plan_destroy(plan);
    return survey.seconds;
}

static void find_seconds(layouts *all, const char *nodes, const tsr_cost_profile *profile)
{
    for (int i = 0; i < all->count; i++)
        for (int j = 0; j < all->count; j++)
            all->seconds[i][j] = seconds_of(all->at[i], all->at[j], nodes, profile);
}

/* True if some mesh dim is Partial in `to` and not in `from`. Then terms are made, and a way by
 * another layout would make other terms. */
static bool makes_partial(const char *from, const char *to)
{
    for (;;) {
        if (*to == 'P' && *from != 'P')
            return true;
        from = strchr(from, ',');
        to = strchr(to, ',');
        if (!from || !to)
            return false;
        from++;
        to++;
    }
}

/*
 * Each of the seconds is a sum of two terms of one sign that were rounded once or twice, so misses
 * by less than 4 * 2^-53 of itself, and so does, with one rounding more, the sum of two of them.
 * Bytes are whole numbers below 2^53.
 */
#define ROUNDED (1 + 9 * DBL_EPSILON / 2)

static void check_triangles(const layouts *all, const place *at, const tensor *x, const tsr_cost_profile *profile)
{
    char links[128];
    for (int i = 0; i < all->count; i++) {
        for (int j = 0; j < all->count; j++) {
            for (int k = 0; k < all->count; k++) {
                if (makes_partial(all->text[i], all->text[j]) || makes_partial(all->text[j], all->text[k]))
                    continue;
                const double direct = all->seconds[i][k], around = all->seconds[i][j] + all->seconds[j][k];
                if (direct <= around * ROUNDED)
                    continue;
                tsr_cost_print(profile, links, sizeof links);
                fail_msg("mesh %s, nodes %s, %lldx%lld, %s: %s -> %s takes %.17g, through %s %.17g + %.17g", at->mesh,
                         at->nodes ? at->nodes : "unknown", (long long)x->shape[0],
                         (long long)(x->ndim > 1 ? x->shape[1] : 1), links, all->text[i], all->text[k], direct,
                         all->text[j], all->seconds[i][j], all->seconds[j][k]);
            }
        }
    }
}

static void check_layouts(const place *at, const tensor *x, const char *const *placements)
{
    static layouts all;
    list_layouts(&all, at, x, placements);
    for (int p = 0; p < PROFILES; p++) {
        find_seconds(&all, at->nodes, &profiles[p]);
        check_triangles(&all, at, x, &profiles[p]);
    }
    free_layouts(&all);
}

static const char *const whole_or_cut[2][5] = {{"R", "S(0)", "S(0;interleave=2)", NULL},
                                               {"R", "S(0)", "S(1)", "S(0;balanced)", NULL}};

static void without_partial_a_move_is_no_slower_than_two_whatever_links_cost(void **state)
{
    (void)state;
    static const place places[] = {
        {"4", 1, NULL},   {"4", 1, "0011"},     {"4@[2,0,3,1]", 1, "0011"}, {"2x2", 2, NULL},     {"2x2", 2, "0011"},
        {"2x3", 2, NULL}, {"2x3", 2, "001122"}, {"2x3", 2, "000111"},       {"3x2", 2, "001122"}, {"4", 1, "0111"},
        {"4", 1, "0101"}, {"2x3", 2, "011222"}, {"3x2", 2, "010110"}};
    static const tensor tensors[] = {{1, {12}}, {1, {7}}, {1, {1200000}}, {2, {8, 12}}, {2, {7, 5}}, {2, {64000, 64}}};
    const size_t step = getenv("TSR_TEST_THIN") ? 3 : 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = i % step; j < sizeof tensors / sizeof *tensors; j += step)
            check_layouts(&places[i], &tensors[j], whole_or_cut[tensors[j].ndim - 1]);
}

/* A reduction costs m - 1 sums a byte, so the rank that reduces most counts. Where everything
 * divides, also by cache lines, all ranks reduce equally much. */
static void with_partial_that_holds_on_one_node_where_shapes_divide(void **state)
{
    (void)state;
    static const place places[] = {{"4", 1, NULL}, {"2x2", 2, NULL}, {"2x3", 2, NULL}};
    static const tensor tensors[] = {{1, {16 * 144}}, {2, {144, 16 * 144}}};
    static const char *const placements[2][5] = {{"R", "S(0)", "P", NULL}, {"R", "S(0)", "S(1)", "P", NULL}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof tensors / sizeof *tensors; j++)
            check_layouts(&places[i], &tensors[j], placements[tensors[j].ndim - 1]);
}

static void assert_seconds(const char *from, const char *to, const char *nodes, tsr_cost_profile profile, double wanted)
{
    static layouts all;
    const place at = {"4", 1, nodes};
    const tensor x = {2, {64, 64}};
    const char *const both[] = {from, to, NULL};
    list_layouts(&all, &at, &x, both);
    const double found = seconds_of(all.at[0], all.at[1], nodes, &profile);
    free_layouts(&all);
    if (found != wanted)
        fail_msg("%s -> %s on nodes %s takes %.17g instead of %.17g", from, to, nodes ? nodes : "unknown", found,
                 wanted);
}

/* The plans are of 4 ranks and 16 KiB. Costs of links are powers of two, so that equality is
 * exact. */
static void seconds_are_those_of_the_busiest_rank_and_node(void **state)
{
    (void)state;
    const tsr_cost_profile quick = {{0.25, 4096}, {0.5, 2048}}, slow = {{16, 4096}, {32, 2048}};
    assert_seconds("S(0)", "S(0)", "0011", quick, 0);
    assert_seconds("S(0)", "R", NULL, quick, 0.25 + 3);
    assert_seconds("P", "R", NULL, quick, 2 * 0.25 + 6);
    /* A node lacks 8 KiB: once into it, and a second step in which its two ranks give each other
     * half. */
    assert_seconds("S(0)", "R", "0011", quick, 0.5 + 4);
    /* The second step's latency costs more than 8 KiB twice. */
    assert_seconds("S(0)", "R", "0011", slow, 32 + 8);
    /* Three quarters of a shard of 4 KiB into each rank, half of it into each node, twice. */
    assert_seconds("S(0)", "S(1)", "0011", quick, 0.5 + 2);
    assert_seconds("S(0)", "S(1)", NULL, quick, 0.25 + 0.75);
    /* The node of one rank lacks 12 KiB, that of three 4 KiB, which it takes once. */
    assert_seconds("S(0)", "R", "0111", quick, 0.5 + 6);
    /* Without sharing, 12 KiB into each. */
    assert_seconds("S(0)", "R", "0111", slow, 32 + 6);
    /* Half of a shard of 4 KiB into each rank from the other node, whichever two share one. */
    assert_seconds("S(0)", "S(1)", "0101", quick, 0.5 + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_are_those_of_the_busiest_rank_and_node),
        cmocka_unit_test(without_partial_a_move_is_no_slower_than_two_whatever_links_cost),
        cmocka_unit_test(with_partial_that_holds_on_one_node_where_shapes_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
