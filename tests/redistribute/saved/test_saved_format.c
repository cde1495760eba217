/* The format cannot change unnoticed: one plan's bytes are kept, field by field, in
 * golden/saved_plan.hex. */
#include "layouts.h"
#include "saved_support.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Pairs of hexadecimal digits; a comment goes from # to the end of the line. */
static saved_bytes golden_bytes(void)
{
    FILE *file = fopen(GOLDEN_DIR "/saved_plan.hex", "r");
    assert_non_null(file);
    saved_bytes bytes = {malloc(4096), 0};
    char line[256];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = '\0';
        unsigned byte;
        int used = 0;
        for (const char *at = line; sscanf(at, " %2x%n", &byte, &used) == 1; at += used) {
            assert_true(bytes.size < 4096);
            bytes.at[bytes.size++] = (unsigned char)byte;
        }
    }
    fclose(file);
    return bytes;
}

/* Two moves that have everything: names, nodes, listed and numbered ranks, every modifier, an
 * order, Partial; no option at its default. */
static tsr_plan *golden_plan(void)
{
    const saved_move moves[] = {
        {"a=2,b=3", NULL, "6x4", "S(0;sizes=2,4),P(max)", "R,S(1;balanced;unit=2)", TSR_F32, {4, 0, NULL}},
        {"4@[3,0,1,5]", "2x2@2", "8", "S(0;blocks=2,6)", "S(0;interleave=2)[1],S(0)[0]", TSR_U8}};
    const tsr_cost_profile profile = {{1e-6, 1e10}, {2.5e-6, 5e9}};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.objective = TSR_OBJECTIVE_TIME;
    options.max_workspace = 4096;
    options.nodes = (tsr_nodes){0, 6, (const int64_t[]){0, 0, 1, 1, 1, 9}};
    options.no_split = 1;
    options.reduction = TSR_REDUCTION_ANY_ORDER;
    options.profile = &profile;
    tsr_plan *a = plan_of(&moves[0], NULL), *b = plan_of(&moves[1], NULL), *plan = NULL;
    const tsr_layout *const src[] = {tsr_plan_source(a), tsr_plan_source(b)};
    const tsr_layout *const dst[] = {tsr_plan_destination(a), tsr_plan_destination(b)};
    expect_ok(tsr_plan_create_batch(2, src, dst, &options, &plan));
    tsr_plan_destroy(a);
    tsr_plan_destroy(b);
    return plan;
}

static void print_bytes(const saved_bytes *bytes)
{
    fprintf(stderr, "the library writes:");
    for (size_t i = 0; i < bytes->size; i++)
        fprintf(stderr, "%s%02x", i % 8 == 0 ? "\n" : " ", bytes->at[i]);
    fprintf(stderr, "\n");
}

static void the_golden_plan_is_saved_as_the_golden_bytes(void **state)
{
    (void)state;
    saved_bytes golden = golden_bytes();
    tsr_plan *plan = golden_plan();
    saved_bytes bytes = bytes_of(plan);
    test_case("golden/saved_plan.hex");
    if (bytes.size != golden.size || memcmp(bytes.at, golden.at, golden.size) != 0)
        print_bytes(&bytes);
    expect_bytes(plan, &golden);
    bytes_free(&bytes);
    bytes_free(&golden);
    tsr_plan_destroy(plan);
}

static void the_golden_bytes_are_loaded_as_the_golden_plan(void **state)
{
    (void)state;
    saved_bytes golden = golden_bytes();
    tsr_plan *plan = golden_plan(), *loaded = NULL;
    test_case("golden/saved_plan.hex");
    for (int64_t rank = TSR_RANK_NONE; rank < 7; rank++) {
        expect_ok(tsr_plan_load(NULL, golden.at, golden.size, rank, &loaded));
        for (size_t i = 0; i < 2; i++) {
            const tsr_layout *src, *dst, *loaded_src, *loaded_dst;
            expect_ok(tsr_plan_layouts(plan, i, &src, &dst));
            expect_ok(tsr_plan_layouts(loaded, i, &loaded_src, &loaded_dst));
            assert_true(tsr_layout_equal(src, loaded_src));
            assert_true(tsr_layout_equal(dst, loaded_dst));
        }
        tsr_plan_destroy(loaded);
    }
    bytes_free(&golden);
    tsr_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_plan_is_saved_as_the_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_loaded_as_the_golden_plan),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
