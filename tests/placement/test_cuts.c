/* What every rank owns: the engine against the oracle, against PyTorch, and against tables of known
 * answers. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void name_case(const oracle_layout *layout, uint64_t seed)
{
    char mesh[512], shape[128], placements[2048];
    test_case("tessera layout --mesh %s --shape %s --dtype %s --placements \"%s\" (seed %llu)",
              oracle_print_mesh(&layout->mesh, mesh, sizeof mesh),
              oracle_print_shape(layout->ndim, layout->shape, shape, sizeof(shape)), oracle_dtype_name(layout->dtype),
              oracle_print_placements(layout->placements, layout->mesh.ndim, placements, sizeof placements),
              (unsigned long long)seed);
}

/* The oracle's list of indices as intervals, one at a time: begins where an index does not follow
 * its predecessor. */
static size_t expect_intervals(const tsr_interval *intervals, size_t count, const int64_t *owned, int64_t owned_count)
{
    size_t at = 0;
    for (int64_t i = 0; i < owned_count; i++) {
        const bool begins = i == 0 || owned[i] != owned[i - 1] + 1;
        at += begins && i > 0;
        if (at >= count || (begins ? intervals[at].begin : owned[i]) != owned[i])
            fail_msg("interval %zu is not where index %lld begins: %s", at, (long long)owned[i], test_case_text());
        const bool ends = i + 1 == owned_count || owned[i + 1] != owned[i] + 1;
        if (ends && intervals[at].end != owned[i] + 1)
            fail_msg("interval %zu ends at %lld, not %lld: %s", at, (long long)intervals[at].end,
                     (long long)owned[i] + 1, test_case_text());
    }
    return owned_count > 0 ? at + 1 : 0;
}

static void expect_dim(const tsr_layout *layout, const oracle_layout *model, const int64_t *coordinate, int dim,
                       int64_t shape, int64_t offset)
{
    int64_t owned[4096];
    tsr_interval intervals[4096];
    size_t count = 0, short_count = 0;
    const int64_t owned_count = oracle_owned(model, coordinate, dim, owned);
    if (shape != owned_count || offset != (owned_count > 0 ? owned[0] : model->shape[dim]))
        fail_msg("dim %d: %lld@%lld, not %lld@..: %s", dim, (long long)shape, (long long)offset, (long long)owned_count,
                 test_case_text());
    expect_ok(tsr_layout_intervals(layout, coordinate, dim, intervals, 4096, &count));
    if (count != expect_intervals(intervals, count, owned, owned_count))
        fail_msg("dim %d has %zu intervals: %s", dim, count, test_case_text());
    /* The full number comes back whatever the room, and nothing is written past it. */
    tsr_interval few[2] = {{-7, -7}, {-7, -7}};
    expect_ok(tsr_layout_intervals(layout, coordinate, dim, few, 1, &short_count));
    assert_int_equal(short_count, count);
    assert_int_equal(few[1].begin, -7);
}

static void expect_layout(const oracle_layout *model)
{
    tsr_layout *layout = abstract_layout(model);
    for (int64_t p = 0; p < oracle_mesh_count(&model->mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&model->mesh, p, coordinate);
        expect_ok(tsr_layout_local(layout, coordinate, shape, offset));
        size_t bytes = 0, elements = 1;
        for (int d = 0; d < model->ndim; d++) {
            expect_dim(layout, model, coordinate, d, shape[d], offset[d]);
            elements *= (size_t)shape[d];
        }
        expect_ok(tsr_layout_local_bytes(layout, coordinate, &bytes));
        assert_int_equal(bytes, elements * oracle_bytes(model->dtype));
    }
    tsr_layout_destroy(layout);
}

static void random_nested_layouts_own_what_the_oracle_lists(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    for (uint64_t n = 0; n < 6000; n++) {
        oracle_random random = {.state = seed * 1000003 + n};
        oracle_numbers numbers = {.count = 0};
        oracle_layout layout = {.dtype = oracle_random_dtype(&random)};
        layout.mesh = oracle_random_mesh(&random, 5, 24, 24);
        oracle_random_shape(&random, 5, 3000, &layout);
        oracle_random_placements(&random, &layout, &numbers);
        name_case(&layout, seed);
        expect_layout(&layout);
    }
}

static void every_small_length_over_every_small_mesh(void **state)
{
    (void)state;
    for (int64_t length = 0; length <= 20; length++) {
        for (int64_t ranks = 1; ranks <= 8; ranks++) {
            for (int flavour = 0; flavour < 24; flavour++) {
                oracle_layout layout = {
                    .mesh = oracle_mesh_make(1, &ranks, 0), .ndim = 1, .shape = {length}, .dtype = TSR_U8};
                layout.placements[0] = tsr_shard(0);
                layout.placements[0].balanced = flavour & 1;
                layout.placements[0].interleave = flavour / 2 % 4;
                layout.placements[0].unit = flavour / 8;
                name_case(&layout, 0);
                expect_layout(&layout);
            }
        }
    }
}

/* The numbers of a JSON line from `at` to the bracket that matches the first; how many. */
static int scan_numbers(const char **at, int64_t *out, int capacity)
{
    int depth = 0, count = 0;
    for (const char *c = strchr(*at, '['); c && *c != '\0';) {
        if (isdigit((unsigned char)*c)) {
            char *end;
            assert_true(count < capacity);
            out[count++] = strtoll(c, &end, 10);
            c = end;
            continue;
        }
        depth += (*c == '[') - (*c == ']');
        *at = ++c;
        if (depth == 0)
            return count;
    }
    fail_msg("not a line of PyTorch's layouts: %s", *at);
    return 0;
}

/* One line: mesh, shape, placements, then local shape and offset of each rank. */
static void expect_golden(const char *line)
{
    int64_t mesh_shape[8], shape[8], numbers[512];
    const char *at = line;
    char text[256];
    test_case("%s", line);
    const int mesh_ndim = scan_numbers(&at, mesh_shape, 8), ndim = scan_numbers(&at, shape, 8);
    at = strstr(at, "\"placements\": \"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"placements\": \"%255[^\"]\"", text), 1);
    at = strstr(at, "\"ranks\"");
    const int number_count = scan_numbers(&at, numbers, 512);

    oracle_layout model = {.mesh = oracle_mesh_make(mesh_ndim, mesh_shape, 0), .ndim = ndim, .dtype = TSR_F32};
    memcpy(model.shape, shape, (size_t)ndim * sizeof *shape);
    int64_t placement_numbers[256];
    int count;
    expect_ok(tsr_placements_parse(text, model.placements, TSR_MAX_DIMS, &count, placement_numbers, 256, NULL));
    assert_int_equal(count, mesh_ndim);
    const int64_t ranks = oracle_mesh_count(&model.mesh);
    assert_int_equal(number_count, ranks * 2 * ndim);
    tsr_layout *layout = abstract_layout(&model);
    for (int64_t r = 0; r < ranks; r++) {
        int64_t coordinate[8], local[8], offset[8];
        oracle_mesh_coordinate(&model.mesh, r, coordinate);
        expect_ok(tsr_layout_local(layout, coordinate, local, offset));
        for (int d = 0; d < ndim; d++) {
            assert_int_equal(local[d], numbers[(2 * r) * ndim + d]);
            assert_int_equal(offset[d], numbers[(2 * r + 1) * ndim + d]);
        }
    }
    tsr_layout_destroy(layout);
    expect_layout(&model);
}

static void pytorch_computes_the_same_layouts(void **state)
{
    (void)state;
    FILE *file = fopen(GOLDEN_DIR "/pytorch_layouts.jsonl", "r");
    assert_non_null(file);
    char line[16384];
    int count = 0;
    for (; fgets(line, sizeof line, file) != NULL; count++)
        expect_golden(line);
    fclose(file);
    assert_int_equal(count, 400);
}

/* A row of known answers: "size@offset" of every rank along dim 0. */
typedef struct known {
    const char *mesh, *shape, *placements, *ranks;
} known;

static const known pytorch_answers[] = {
    {"4x2", "18", "S(0),S(0)", "3@0 2@3 3@5 2@8 3@10 2@13 2@15 1@17"},
    {"4x2", "13", "S(0),S(0)", "2@0 2@2 2@4 2@6 2@8 2@10 1@12 0@13"},
    {"4x2", "18", "S(0;interleave=2),S(0)", "3@0 3@9 3@3 3@12 3@6 3@15 0@18 0@18"},
    {"4x2", "39", "S(0;interleave=3),S(0;interleave=4)", "8@0 4@2 8@4 4@6 8@8 4@10 3@12 0@39"},
    {"4x2", "18", "S(0),S(0;interleave=2)", "3@0 2@2 3@5 2@7 3@10 2@12 2@15 1@16"},
    {"4x2x3", "39", "S(0),S(0;interleave=2),S(0)",
     "2@0 2@2 2@6 2@3 2@8 0@39 2@10 2@12 2@16 2@13 2@18 0@39 2@20 2@22 2@26 2@23 2@28 0@39 2@30 2@32 1@36 2@33 2@37 "
     "0@39"},
    {"4x2", "15", "S(0;interleave=2),S(0)", "2@0 2@8 2@2 2@10 2@4 2@12 2@6 1@14"},
    {"2x2x2", "16", "S(0;interleave=2),S(0),S(0)", "2@0 2@2 2@8 2@10 2@4 2@6 2@12 2@14"},
    {"4x2", "16x2", "S(0;interleave=2),S(0)", "2@0 2@8 2@2 2@10 2@4 2@12 2@6 2@14"},
    {"2x2x2", "8x2", "R,S(0;interleave=2),S(0)", "2@0 2@4 2@2 2@6 2@0 2@4 2@2 2@6"},
    {"4", "32x3", "S(0)", "8@0 8@8 8@16 8@24"},
    {"4", "31x3", "S(0)", "8@0 8@8 8@16 7@24"},
    {"2x2", "32x4", "S(0),R", "16@0 16@0 16@16 16@16"},
    {"2x2", "31x3", "S(0),S(1)", "16@0 16@0 15@16 15@16"},
    {"3", "32x3", "S(0)", "11@0 11@11 10@22"},
    {"2x1", "32x3", "S(0),S(1)", "16@0 16@16"},
    {"2x2", "10x5", "S(0),S(0)", "3@0 2@3 3@5 2@8"},
    {"2x2", "9x5", "S(0),S(0)", "3@0 2@3 2@5 2@7"},
    {"2x2", "3x5", "S(0),S(0)", "1@0 1@1 1@2 0@3"},
    {"2x2", "1x3", "S(0),S(0)", "1@0 0@1 0@1 0@1"},
    {"4", "2x8", "S(0)", "1@0 1@1 0@2 0@2"},
    {"2x4", "24x24", "S(0),R", "12@0 12@0 12@0 12@0 12@12 12@12 12@12 12@12"},
    {"2x4", "24x24", "R,S(0)", "6@0 6@6 6@12 6@18 6@0 6@6 6@12 6@18"},
    {"2x3", "4", "S(0),S(0)", "1@0 1@1 0@4 1@2 1@3 0@4"},
};

static const known design_answers[] = {
    {"4", "9", "S(0)", "3@0 3@3 3@6 0@9"},
    {"4", "9", "S(0;balanced)", "3@0 2@3 2@5 2@7"},
    {"2", "192", "S(0;unit=64)", "128@0 64@128"},
    {"4", "9", "S(0;sizes=0,4,0,5)", "0@9 4@0 0@9 5@4"},
    {"2", "12", "S(0;blocks=8,2,2)", "6@0 6@4"},
    {"2x3", "4", "S(0),S(0)", "1@0 1@1 0@4 1@2 1@3 0@4"},
    {"2x2", "8", "S(0)[1],S(0)[0]", "2@0 2@4 2@2 2@6"},
    {"3", "7", "S(0;balanced;unit=2)", "4@0 2@4 1@6"},
    {"2", "0", "S(0)", "0@0 0@0"},
};

static void expect_known(const known *row)
{
    tsr_layout *layout = layout_of(row->mesh, row->shape, row->placements);
    const tsr_mesh *mesh = tsr_layout_mesh(layout);
    char text[512] = "";
    for (int64_t r = 0; r < tsr_mesh_count(mesh); r++) {
        int64_t coordinate[8], shape[8], offset[8];
        int inside = 0;
        expect_ok(tsr_mesh_coordinate_of(mesh, r, coordinate, &inside));
        expect_ok(tsr_layout_local(layout, coordinate, shape, offset));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld@%lld", r > 0 ? " " : "", (long long)shape[0],
                 (long long)offset[0]);
    }
    if (strcmp(text, row->ranks) != 0)
        fail_msg("%s\n   is %s\n not %s", test_case_text(), text, row->ranks);
    tsr_layout_destroy(layout);
}

static void the_answers_of_pytorchs_own_tests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pytorch_answers / sizeof pytorch_answers[0]; i++)
        expect_known(&pytorch_answers[i]);
}

static void the_answers_of_the_design(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof design_answers / sizeof design_answers[0]; i++)
        expect_known(&design_answers[i]);
}

static void strided_shard_over_thirty_ranks(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("30x8", "4096", "S(0;interleave=8),S(0)");
    for (int64_t dp = 0; dp < 30; dp++) {
        for (int64_t tp = 0; tp < 8; tp++) {
            const int64_t coordinate[] = {dp, tp};
            int64_t shape, offset;
            expect_ok(tsr_layout_local(layout, coordinate, &shape, &offset));
            assert_int_equal(shape, dp < 28 ? 18 : dp == 28 ? 8 : 0);
            assert_int_equal(offset, dp < 29 ? tp * 512 + 18 * dp : 4096);
        }
    }
    tsr_layout_destroy(layout);
}

static void two_strided_dims_with_a_mesh_dim_of_one(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("1x2x2x2", "16x16", "S(0;interleave=2),S(1;interleave=2),S(0),S(1)");
    for (int64_t m = 0; m < 8; m++) {
        const int64_t coordinate[] = {0, m >> 2, m >> 1 & 1, m & 1};
        int64_t shape[2], offset[2];
        expect_ok(tsr_layout_local(layout, coordinate, shape, offset));
        assert_int_equal(shape[0], 8);
        assert_int_equal(shape[1], 4);
        assert_int_equal(offset[0], 8 * coordinate[2]);
        assert_int_equal(offset[1], 8 * coordinate[3] + 4 * coordinate[1]);
    }
    tsr_layout_destroy(layout);
}

static void a_million_ranks_cost_nothing(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("128x64x128", "1099511627776", "S(0),S(0;balanced),S(0)");
    const int64_t coordinate[] = {127, 63, 127};
    int64_t shape, offset;
    expect_ok(tsr_layout_local(layout, coordinate, &shape, &offset));
    assert_int_equal(shape, 1 << 20);
    assert_int_equal(offset, (INT64_C(1) << 40) - (1 << 20));
    tsr_layout_destroy(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answers_of_the_design),
        cmocka_unit_test(the_answers_of_pytorchs_own_tests),
        cmocka_unit_test(pytorch_computes_the_same_layouts),
        cmocka_unit_test(strided_shard_over_thirty_ranks),
        cmocka_unit_test(two_strided_dims_with_a_mesh_dim_of_one),
        cmocka_unit_test(every_small_length_over_every_small_mesh),
        cmocka_unit_test(random_nested_layouts_own_what_the_oracle_lists),
        cmocka_unit_test(a_million_ranks_cost_nothing),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
