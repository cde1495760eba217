/* Messages in rounds: their number, which ranks that need few and ranks that need many agree on,
 * stays within the allowed workspace. */
#include "layouts.h"
#include "ranks.h"
#include "redistribute/schedule/plan.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RANKS = 4, ROWS = 64, COLUMNS = 100, CAP = 1100 };

static tsr_status plan_with(tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst, size_t cap, tsr_plan **plan)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.max_workspace = cap;
    TSR_TRY(tsr_plan_create(src, dst, &options, plan));
    return tsr_plan_prepare(*plan, comm);
}

/* Nearly all rows go from rank 0 to rank 3. These two ranks need many rounds; the others, which
 * give one row, need one. */
static tsr_status move_much_and_little(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    const bool much = rank == 0 || rank == RANKS - 1;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    int64_t local[2], offset[2];
    TSR_TRY(layout_over(comm, "4", "64x100", "S(0;sizes=61,1,1,1)", TSR_I32, &src));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(src), "S(0;sizes=1,1,1,61)", 2, tsr_layout_shape(src), TSR_I32, &dst));
    TSR_TRY(plan_with(comm, src, dst, CAP, &plan));
    CHECK(much ? plan->rounds > 50 : plan->rounds == 1);
    CHECK(plan->found->agreed_rounds > 50);
    CHECK(tsr_plan_workspace_bytes(plan) <= CAP);

    int32_t *have = malloc(ROWS * COLUMNS * sizeof *have), *want = malloc(ROWS * COLUMNS * sizeof *want);
    unsigned char *workspace = aligned_alloc(64, CAP / 64 * 64 + 128);
    CHECK(have && want && workspace);
    memset(workspace, 0x5c, CAP / 64 * 64 + 128);
    TSR_TRY(tsr_layout_local(src, NULL, local, offset));
    for (int32_t i = 0; i < local[0] * COLUMNS; i++)
        have[i] = (int32_t)offset[0] * COLUMNS + i;
    const tsr_tensor in = tsr_tensor_contiguous(have, TSR_I32, 2, local);
    TSR_TRY(tsr_layout_local(dst, NULL, local, offset));
    const tsr_tensor out = tsr_tensor_contiguous(want, TSR_I32, 2, local);
    TSR_TRY(tsr_plan_execute(plan, comm, &in, &out, workspace, tsr_plan_workspace_bytes(plan), NULL));
    for (int32_t i = 0; i < local[0] * COLUMNS; i++)
        CHECK(want[i] == (int32_t)offset[0] * COLUMNS + i);
    for (size_t i = tsr_plan_workspace_bytes(plan); i < CAP / 64 * 64 + 128; i++)
        CHECK(workspace[i] == 0x5c);
    free(workspace);
    free(want);
    free(have);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static void ranks_with_little_go_as_many_rounds_as_those_with_most(void **state)
{
    (void)state;
    test_case("64 rows, 61 of them from rank 0 to rank 3");
    run_ranks(RANKS, move_much_and_little, NULL);
}

static tsr_plan *plan_for(const char *mesh, const char *shape, const char *from, const char *to, size_t cap,
                          tsr_status wanted, const char *part)
{
    tsr_layout *src = layout_of(mesh, shape, from), *dst = layout_of(mesh, shape, to);
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *plan = NULL;
    options.mode = TSR_MODE_MESSAGE;
    options.rank = 0;
    options.max_workspace = cap;
    test_case("--mesh %s --shape %s --from %s --to %s, cap %zu", mesh, shape, from, to, cap);
    if (wanted == TSR_OK)
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
    else
        expect_error(tsr_plan_create(src, dst, &options, &plan), wanted, part);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return plan;
}

/* Each of two ranks sends a quarter and receives a quarter. */
static void without_a_cap_a_round_is_of_about_half_a_mebibyte(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        int64_t rounds;
    } rows[] = {{"64x64", 1},     {"512x512", 1},    {"1024x512", 2},
                {"1024x1024", 4}, {"4096x4096", 64}, {"32768x32768", 4096}};
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_plan *plan = plan_for("2", rows[i].shape, "S(0)", "S(1)", 0, TSR_OK, NULL);
        assert_int_equal(plan->rounds, rows[i].rounds);
        assert_true(tsr_plan_workspace_bytes(plan) <= ((size_t)1 << 20));
        tsr_plan_destroy(plan);
    }
}

/* Small messages to many peers are not cut, so that rounds do not multiply them. */
static void without_a_cap_no_message_gets_small_for_the_sake_of_rounds(void **state)
{
    (void)state;
    tsr_plan *plan = plan_for("1024", "1048576x16", "S(0)", "S(0;interleave=1024)", 0, TSR_OK, NULL);
    assert_int_equal(plan->out[0].messages, 1023);
    assert_int_equal(plan->rounds, 1);
    tsr_plan_destroy(plan);
}

/* One element of 4 bytes to and from each of three peers: six messages on lines of their own,
 * twice. */
static void a_cap_that_cannot_be_kept_is_refused_with_what_would_do(void **state)
{
    (void)state;
    tsr_plan *plan = plan_for("4", "64x64", "S(0)", "S(1)", 767, TSR_ERROR_ARGUMENT, "max_workspace is 767");
    assert_null(plan);
    plan = plan_for("4", "64x64", "S(0)", "S(1)", 767, TSR_ERROR_ARGUMENT, "rank 0 needs at least 768 bytes");
    assert_null(plan);
    plan = plan_for("4", "64x64", "S(0)", "S(1)", 768, TSR_OK, NULL);
    assert_int_equal(tsr_plan_workspace_bytes(plan), 768);
    /* 16 elements fill a line: 16 rounds of the 256 that each peer gets. */
    assert_int_equal(plan->rounds, 16);
    tsr_plan_destroy(plan);
    /* Nothing is moved, so no workspace is needed. */
    plan = plan_for("4", "64x64", "S(0)", "S(0)", 1, TSR_OK, NULL);
    assert_int_equal(tsr_plan_workspace_bytes(plan), 0);
    tsr_plan_destroy(plan);
}

/* Three messages each way of 256 elements of 4 bytes, in two halves, on lines of 64 bytes. */
static int64_t fewest_rounds(size_t cap)
{
    for (int64_t rounds = 2; rounds < 256; rounds++) {
        const size_t message = (size_t)((256 + rounds - 1) / rounds) * 4, line = (message + 63) / 64 * 64;
        if (2 * 6 * line <= cap)
            return rounds;
    }
    return 256;
}

static void a_cap_takes_the_fewest_rounds_that_keep_it(void **state)
{
    (void)state;
    const size_t two = 2 * 6 * 512;
    for (size_t cap = 768; cap < two; cap += 61) {
        tsr_plan *plan = plan_for("4", "64x64", "S(0)", "S(1)", cap, TSR_OK, NULL);
        if (plan->rounds != fewest_rounds(cap) || tsr_plan_workspace_bytes(plan) > cap)
            fail_msg("%lld rounds, not %lld, %zu bytes: %s", (long long)plan->rounds, (long long)fewest_rounds(cap),
                     tsr_plan_workspace_bytes(plan), test_case_text());
        tsr_plan_destroy(plan);
    }
    tsr_plan *plan = plan_for("4", "64x64", "S(0)", "S(1)", two, TSR_OK, NULL);
    assert_int_equal(plan->rounds, 1);
    tsr_plan_destroy(plan);
}

/* Small reductions in direct mode keep results in the workspace where source and destination are
 * one memory, unless that exceeds the bound. */
static void direct_moves_keep_a_cap_too(void **state)
{
    (void)state;
    tsr_layout *src = layout_of("2", "5x3", "P"), *dst = layout_of("2", "5x3", "R");
    size_t most = 0;
    for (size_t cap = 1; cap < 200; cap++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        tsr_plan *plan = NULL;
        options.rank = 0;
        options.max_workspace = cap;
        test_case("5x3 f32 P -> R on 2, direct, cap %zu", cap);
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        if (tsr_plan_workspace_bytes(plan) > cap)
            fail_msg("%zu bytes: %s", tsr_plan_workspace_bytes(plan), test_case_text());
        most = tsr_plan_workspace_bytes(plan) > most ? tsr_plan_workspace_bytes(plan) : most;
        tsr_plan_destroy(plan);
    }
    assert_int_equal(most, 64);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
}

/* Also on ranks whose shards are longer than rank 0's: of given sizes, or of blocks, which may get
 * fewer as the piece grows: four blocks of 13 in two parts give the first part 7, four of 12 give
 * it 8. */
static void direct_moves_keep_a_cap_on_every_rank(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *shape, *from, *to;
    } rows[] = {
        {"2x2", "64x16", "P,S(0;sizes=1,63)", "R,S(0;sizes=1,63)"},
        {"2x2", "64x16", "P,S(0;sizes=0,64)", "R,S(0;sizes=0,64)"},
        {"2x2x2", "25x16", "P,S(0),S(0;interleave=4)", "R,S(0),S(0;interleave=4)"},
        {"2x2x2", "25x16", "P,S(0;sizes=12,13),S(0;interleave=4)", "R,S(0;sizes=12,13),S(0;interleave=4)"},
        {"2x3x2", "41x16", "P,S(0;unit=7),S(0;interleave=3;unit=2)", "R,S(0;unit=7),S(0;interleave=3;unit=2)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_layout *src = layout_of(rows[i].mesh, rows[i].shape, rows[i].from),
                   *dst = layout_of(rows[i].mesh, rows[i].shape, rows[i].to);
        for (int64_t rank = 0; rank < tsr_mesh_count(tsr_layout_mesh(src)); rank++)
            for (size_t cap = 64; cap <= 64 * 64; cap += 64) {
                tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
                tsr_plan *plan = NULL;
                options.rank = rank;
                options.max_workspace = cap;
                test_case("--mesh %s --shape %s --from %s --to %s --rank %d, cap %zu", rows[i].mesh, rows[i].shape,
                          rows[i].from, rows[i].to, (int)rank, cap);
                expect_ok(tsr_plan_create(src, dst, &options, &plan));
                if (tsr_plan_workspace_bytes(plan) > cap)
                    fail_msg("%zu bytes: %s", tsr_plan_workspace_bytes(plan), test_case_text());
                tsr_plan_destroy(plan);
            }
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_little_go_as_many_rounds_as_those_with_most),
        cmocka_unit_test(without_a_cap_a_round_is_of_about_half_a_mebibyte),
        cmocka_unit_test(without_a_cap_no_message_gets_small_for_the_sake_of_rounds),
        cmocka_unit_test(a_cap_that_cannot_be_kept_is_refused_with_what_would_do),
        cmocka_unit_test(a_cap_takes_the_fewest_rounds_that_keep_it),
        cmocka_unit_test(direct_moves_keep_a_cap_too),
        cmocka_unit_test(direct_moves_keep_a_cap_on_every_rank),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
