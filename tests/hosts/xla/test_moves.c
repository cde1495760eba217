/* Redistributions and collectives as custom calls, beside dense results. */
#include "support.h"

#include <tessera/saved.h>
#include <tessera/xla.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4 };

#define TO_AT(r, i) ((float)((r)*100 + (i)))

/* Element i of rank r's operand is 100 r + i. */
static void fill(float *data, int64_t count)
{
    for (int64_t r = 0; r < RANKS; r++)
        for (int64_t i = 0; i < count; i++)
            data[r * count + i] = TO_AT(r, i);
}

static void run(const char *target, const char *attributes, support_array in, support_array out)
{
    const support_call call = {target, attributes, 1, 1, {in, out}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
}

static void all_reduce_sums_over_all_ranks(void **state)
{
    float in[RANKS * 6], out[RANKS * 6];
    (void)state;
    fill(in, 6);
    run("tsr_xla_all_reduce", "mesh = \"tp=4\"", (support_array){"f32", 2, {2, 3}, in},
        (support_array){"f32", 2, {2, 3}, out});
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 6; i++)
            assert_true(out[r * 6 + i] == (float)(600 + 4 * i));
}

static void all_reduce_adds_in_rank_order(void **state)
{
    float in[RANKS] = {1e8F, 1.F, -1e8F, 0.5F}, out[RANKS];
    (void)state;
    run("tsr_xla_all_reduce", "mesh = \"4\"", (support_array){"f32", 1, {1}, in}, (support_array){"f32", 1, {1}, out});
    const float sum = ((in[0] + in[1]) + in[2]) + in[3];
    for (int r = 0; r < RANKS; r++)
        assert_true(out[r] == sum);
}

static void all_reduce_along_one_dim_has_other_ops(void **state)
{
    int32_t in[RANKS * 2], out[RANKS * 2];
    (void)state;
    for (int i = 0; i < RANKS * 2; i++)
        in[i] = (i * 5) % 7;
    static const char *const ops[] = {"sum", "min", "max", "prod"};
    for (int op = 0; op < 4; op++)
        for (int dim = 0; dim < 2; dim++) {
            char attributes[128];
            snprintf(attributes, sizeof attributes, "mesh = \"dp=2,tp=2\", dims = \"%s\", op = \"%s\"",
                     dim ? "tp" : "dp", ops[op]);
            run("tsr_xla_all_reduce", attributes, (support_array){"i32", 1, {2}, in},
                (support_array){"i32", 1, {2}, out});
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < 2; i++) {
                    const int32_t a = in[r * 2 + i], b = in[(r ^ (dim ? 1 : 2)) * 2 + i];
                    const int32_t wanted = op == 0   ? a + b
                                           : op == 1 ? (a < b ? a : b)
                                           : op == 2 ? (a > b ? a : b)
                                                     : a * b;
                    assert_int_equal(out[r * 2 + i], wanted);
                }
        }
}

static void all_gather_along_any_axis(void **state)
{
    float in[RANKS * 6], out[RANKS * 24];
    (void)state;
    fill(in, 6);
    run("tsr_xla_all_gather", "mesh = \"tp=4\"", (support_array){"f32", 2, {2, 3}, in},
        (support_array){"f32", 2, {8, 3}, out});
    for (int r = 0; r < RANKS; r++)
        assert_memory_equal(out + r * 24, in, sizeof in);
    run("tsr_xla_all_gather", "mesh = \"tp=4\", axis = 1 : i64", (support_array){"f32", 2, {2, 3}, in},
        (support_array){"f32", 2, {2, 12}, out});
    for (int r = 0; r < RANKS; r++)
        for (int row = 0; row < 2; row++)
            for (int c = 0; c < 12; c++)
                assert_true(out[r * 24 + row * 12 + c] == TO_AT(c / 3, row * 3 + c % 3));
}

static void all_gather_along_one_dim_of_two(void **state)
{
    float in[RANKS * 2], out[RANKS * 4];
    (void)state;
    fill(in, 2);
    run("tsr_xla_all_gather", "mesh = \"dp=2,tp=2\", dims = \"dp\"", (support_array){"f32", 1, {2}, in},
        (support_array){"f32", 1, {4}, out});
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 4; i++)
            assert_true(out[r * 4 + i] == TO_AT(r % 2 + 2 * (i / 2), i % 2));
}

static void reduce_scatter_gives_parts(void **state)
{
    float in[RANKS * 16], out[RANKS * 4];
    (void)state;
    fill(in, 16);
    run("tsr_xla_reduce_scatter", "mesh = \"tp=4\", axis = 1 : i64", (support_array){"f32", 2, {2, 8}, in},
        (support_array){"f32", 2, {2, 2}, out});
    for (int r = 0; r < RANKS; r++)
        for (int row = 0; row < 2; row++)
            for (int c = 0; c < 2; c++)
                assert_true(out[r * 4 + row * 2 + c] == (float)(600 + 4 * (row * 8 + r * 2 + c)));
}

static void all_to_all_splits_and_joins(void **state)
{
    float in[RANKS * 8], out[RANKS * 8];
    (void)state;
    fill(in, 8);
    run("tsr_xla_all_to_all", "mesh = \"tp=4\", split_axis = 0 : i64, concat_axis = 1 : i64",
        (support_array){"f32", 2, {4, 2}, in}, (support_array){"f32", 2, {1, 8}, out});
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 8; i++)
            assert_true(out[r * 8 + i] == TO_AT(i / 2, r * 2 + i % 2));
    run("tsr_xla_all_to_all", "mesh = \"tp=4\", split_axis = 1 : i32", (support_array){"f32", 2, {2, 4}, in},
        (support_array){"f32", 2, {8, 1}, out});
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 8; i++)
            assert_true(out[r * 8 + i] == TO_AT(i / 2, (i % 2) * 4 + r));
    run("tsr_xla_all_to_all", "mesh = \"tp=4\"", (support_array){"f32", 1, {8}, in},
        (support_array){"f32", 1, {8}, out});
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 8; i++)
            assert_true(out[r * 8 + i] == TO_AT(i / 2, r * 2 + i % 2));
}

static void redistribute_from_rows_to_columns(void **state)
{
    float in[RANKS * 16], out[RANKS * 16];
    (void)state;
    fill(in, 16);
    run("tsr_xla_redistribute", "mesh = \"2x2\", from = \"S(0),S(0)\", to = \"S(1),S(1)\"",
        (support_array){"f32", 2, {2, 8}, in}, (support_array){"f32", 2, {8, 2}, out});
    for (int r = 0; r < RANKS; r++)
        for (int row = 0; row < 8; row++)
            for (int c = 0; c < 2; c++)
                assert_true(out[r * 16 + row * 2 + c] == TO_AT(row / 2, (row % 2) * 8 + r * 2 + c));
}

static void redistribute_uneven_parts_with_padding(void **state)
{
    /* Six rows over four ranks: 2, 2, 2 and none; six columns over them alike. */
    float in[RANKS * 12], out[RANKS * 12];
    (void)state;
    fill(in, 12);
    run("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\", to = \"S(1)\", shape = array<i64: 6, 6>",
        (support_array){"f32", 2, {2, 6}, in}, (support_array){"f32", 2, {6, 2}, out});
    for (int r = 0; r < RANKS; r++)
        for (int row = 0; row < 6; row++)
            for (int c = 0; c < 2; c++) {
                const float wanted = r < 3 ? TO_AT(row / 2, (row % 2) * 6 + r * 2 + c) : 0;
                assert_true(out[r * 12 + row * 2 + c] == wanted);
            }
}

static void redistribute_all_dtypes_it_is_given(void **state)
{
    static const char *const types[] = {"f64", "bf16", "ui8", "i1", "i32"};
    unsigned char in[RANKS * 64], out[RANKS * 256];
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const support_array source = {types[t], 1, {8}, in};
        const support_array result = {types[t], 1, {32}, out};
        const size_t bytes = support_bytes(&source) * RANKS;
        for (size_t i = 0; i < bytes; i++)
            in[i] = (unsigned char)(strcmp(types[t], "i1") == 0 ? i % 3 == 0 : i * 7);
        run("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\", to = \"R\"", source, result);
        for (size_t r = 0; r < RANKS; r++)
            assert_memory_equal(out + r * bytes, in, bytes);
    }
}

/* A plan of two moves, saved. Returns its bytes as the entries of an array: the caller frees it. */
static char *save_plan(void)
{
    const int64_t shape[] = {8, 2}, sizes[] = {4};
    tsr_mesh *mesh;
    tsr_layout *rows, *whole, *terms;
    tsr_plan *plan;
    assert_int_equal(tsr_mesh_create_abstract(NULL, 1, sizes, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &rows), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &whole), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "P", 2, shape, TSR_F32, &terms), TSR_OK);
    const tsr_layout *const from[] = {rows, terms}, *const to[] = {whole, rows};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = TSR_RANK_NONE;
    assert_int_equal(tsr_plan_create_batch(2, from, to, &options, &plan), TSR_OK);
    unsigned char bytes[4096];
    size_t count;
    assert_int_equal(tsr_plan_save(plan, bytes, sizeof bytes, &count), TSR_OK);
    char *const text = malloc(count * 6);
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        at += (size_t)sprintf(text + at, "%s%d", i ? ", " : "", (signed char)bytes[i]);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(rows);
    tsr_layout_destroy(whole);
    tsr_layout_destroy(terms);
    tsr_mesh_destroy(mesh);
    return text;
}

static void redistribute_by_a_saved_plan_of_two_moves(void **state)
{
    float rows[RANKS * 4], terms[RANKS * 16], whole[RANKS * 16], sums[RANKS * 4];
    (void)state;
    fill(rows, 4);
    fill(terms, 16);
    char *const plan = save_plan();
    char *const attributes = malloc(strlen(plan) + 64);
    sprintf(attributes, "plan = array<i8: %s>", plan);
    const support_call call = {
        "tsr_xla_redistribute",
        attributes,
        2,
        2,
        {{"f32", 2, {2, 2}, rows}, {"f32", 2, {8, 2}, terms}, {"f32", 2, {8, 2}, whole}, {"f32", 2, {2, 2}, sums}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    for (int r = 0; r < RANKS; r++) {
        assert_memory_equal(whole + r * 16, rows, sizeof rows);
        for (int i = 0; i < 4; i++)
            assert_true(sums[r * 4 + i] == (float)(600 + 4 * (r * 4 + i)));
    }
    free(attributes);
    free(plan);
}

static void refuse(const char *target, const char *attributes, support_array in, support_array out, const char *words)
{
    const support_call call = {target, attributes, 1, 1, {in, out}};
    support_refused(support_run(&call, 1, RANKS, NULL, NULL), words);
}

static void mistakes_in_texts_are_told_before_a_launch(void **state)
{
    static const char *const attributes[] = {"mesh = \"4\", op = \"mean\"", "mesh = \"4\", dims = \"dp\"",
                                             "mesh = \"4@\""};
    float in[RANKS * 8] = {0}, out[RANKS * 8];
    (void)state;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        const support_call call = {
            "tsr_xla_all_reduce", attributes[i], 1, 1, {{"f32", 1, {8}, in}, {"f32", 1, {8}, out}}};
        char *const text = support_text(&call, 1, RANKS);
        xla_program program;
        support_refused(xla_program_compile(support_host(), text, RANKS, NULL, &program), "tsr_xla_all_reduce: ");
        free(text);
    }
}

static void mistakes_are_told_in_a_sentence(void **state)
{
    float in[RANKS * 8] = {0}, out[RANKS * 8];
    const support_array a = {"f32", 1, {8}, in}, b = {"f32", 1, {8}, out}, c = {"f32", 1, {3}, in};
    (void)state;
    refuse("tsr_xla_all_reduce", "op = \"sum\"", a, b, "there is no attribute `mesh`");
    refuse("tsr_xla_all_reduce", "mesh = \"4\", axis = 0 : i64", a, b,
           "there is no attribute `axis`; there are channel");
    refuse("tsr_xla_all_reduce", "mesh = \"4\", op = \"mean\"", a, b, "`op` is \"mean\"; there are sum, avg");
    refuse("tsr_xla_all_reduce", "mesh = \"tp=4\", dims = \"dp\"", a, b, "dp");
    refuse("tsr_xla_all_reduce", "mesh = \"4\", timeout_ms = -1 : i64", a, b, "`timeout_ms` is -1");
    refuse("tsr_xla_all_reduce", "mesh = 4 : i64", a, b, "`mesh` is not a string");
    refuse("tsr_xla_all_reduce", "mesh = \"4\", devices = array<i64: 0, 1, 1, 2>", a, b,
           "`devices` has device 1 for ranks 1 and 2");
    refuse("tsr_xla_all_reduce", "mesh = \"4\", devices = array<i64: 0, 1>", a, b, "`devices` has 2 entries");
    refuse("tsr_xla_all_gather", "mesh = \"4\", axis = 1 : i64", a, b, "`axis` is 1, but the operand has 1 dims");
    refuse("tsr_xla_reduce_scatter", "mesh = \"4\"", c, b, "has length 3, which does not divide");
    refuse("tsr_xla_all_reduce", "mesh = \"4\"", a, (support_array){"f32", 1, {4}, out}, "result's shape");
    refuse("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\"", a, b, "there is no attribute `to`");
    refuse("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\", to = \"R,R\"", a, b, "`to` is \"R,R\"");
    refuse("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\", to = \"R\"", a, b,
           "result 0 is 8 on a device, but the longest part of its layout R is 32");
    refuse("tsr_xla_all_reduce", "mesh = \"1000000x1000\"", a, b, "1000000000 ranks; calls take at most 4096");
    refuse("tsr_xla_all_reduce", "mesh = \"4@10000\"", a, b, "the mesh has rank 10003; calls take ranks below 4096");
    refuse("tsr_xla_redistribute", "plan = \"no plan\"", a, b, "plan");
    refuse("tsr_xla_all_reduce", "mesh = \"2@2\"", a, b, "the mesh does not have rank 0: a collective takes");
    const support_array d = {"f8E4M3FNUZ", 1, {8}, in}, e = {"f8E4M3FNUZ", 1, {8}, out};
    refuse("tsr_xla_all_reduce", "mesh = \"4\"", d, e, "operand 0 is f8e4m3fnuz; calls take bool, integers");
    refuse("tsr_xla_redistribute", "mesh = \"4\", from = \"R\", to = \"R\"", a, e, "result 0 is f8e4m3fnuz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce_sums_over_all_ranks),
        cmocka_unit_test(all_reduce_adds_in_rank_order),
        cmocka_unit_test(all_reduce_along_one_dim_has_other_ops),
        cmocka_unit_test(all_gather_along_any_axis),
        cmocka_unit_test(all_gather_along_one_dim_of_two),
        cmocka_unit_test(reduce_scatter_gives_parts),
        cmocka_unit_test(all_to_all_splits_and_joins),
        cmocka_unit_test(redistribute_from_rows_to_columns),
        cmocka_unit_test(redistribute_uneven_parts_with_padding),
        cmocka_unit_test(redistribute_all_dtypes_it_is_given),
        cmocka_unit_test(redistribute_by_a_saved_plan_of_two_moves),
        cmocka_unit_test(mistakes_in_texts_are_told_before_a_launch),
        cmocka_unit_test(mistakes_are_told_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
