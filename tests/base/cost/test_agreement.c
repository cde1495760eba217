/* Every rank plans by itself, so all must plan by the same options. A rank with other options is
 * named in the error. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Rank 1's options; the others have the defaults. */
static tsr_status prepare(tsr_comm *comm, const tsr_mesh *mesh, const tsr_plan_options *odd)
{
    const int64_t shape[] = {8, 8};
    tsr_layout *from = NULL, *to = NULL;
    tsr_plan *plan = NULL;
    tsr_status status = tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, "S(1)", 2, shape, TSR_F32, &to);
    if (status == TSR_OK)
        status = tsr_plan_create(from, to, tsr_comm_rank(comm) == 1 ? odd : NULL, &plan);
    if (status == TSR_OK)
        status = tsr_plan_prepare(plan, comm);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    return status;
}

static tsr_status run_rank(tsr_comm *comm, void *odd)
{
    tsr_mesh *mesh;
    tsr_status status = tsr_mesh_parse(comm, NULL, "3", &mesh);
    if (status != TSR_OK)
        return status;
    status = prepare(comm, mesh, odd);
    tsr_mesh_destroy(mesh);
    return status;
}

static void assert_told_apart(tsr_plan_options odd, const char *says)
{
    char wanted[256];
    assert_int_equal(tsr_threads_run(3, run_rank, &odd, NULL), TSR_ERROR_ARGUMENT);
    snprintf(wanted, sizeof wanted,
             "direct, but rank 1 calls redistribute f32 8x8 S(0) on mesh 3 -> f32 8x8 S(1) on mesh 3, direct, %s",
             says);
    if (!strstr(tsr_status_message(), wanted))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), wanted);
}

static void a_rank_with_another_profile_is_named_with_its_profile(void **state)
{
    (void)state;
    const tsr_cost_profile profile = {{1e-6, 1e10}, {1e-5, 1e9}};
    tsr_plan_options odd = TSR_PLAN_OPTIONS_INIT;
    odd.profile = &profile;
    assert_told_apart(odd, "links inside=1e-6,1e10 between=1e-5,1e9");
}

static void a_rank_with_other_tables_is_named_with_their_fingerprint(void **state)
{
    (void)state;
    tsr_profile *profile;
    tsr_plan_options odd = TSR_PLAN_OPTIONS_INIT;
    assert_int_equal(tsr_profile_parse("inside=5e-7,1.6e10 copy@64=1024:1e9", &profile), TSR_OK);
    odd.measured = profile;
    assert_told_apart(odd, "links inside=5e-7,1.6e10 between=5e-6,1.25e10 with tables (fingerprint ");
    tsr_profile_destroy(profile);
}

static void a_rank_with_another_option_is_named_with_it(void **state)
{
    (void)state;
    tsr_plan_options odd = TSR_PLAN_OPTIONS_INIT;
    odd.objective = TSR_OBJECTIVE_TIME;
    assert_told_apart(odd, "in least time");
    odd = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    odd.max_workspace = 4096;
    assert_told_apart(odd, "in 4096 bytes of workspace");
    odd = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    odd.nodes.ranks_per_node = 2;
    assert_told_apart(odd, "2 ranks a node");
    odd = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    odd.reduction = TSR_REDUCTION_ANY_ORDER;
    assert_told_apart(odd, "reduced in any order");
}

static void a_plan_refuses_a_profile_that_is_not_as_it_must_be(void **state)
{
    (void)state;
    const int64_t shape[] = {8};
    const tsr_cost_profile profile = {{1, 1}, {1, 0}};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_plan *plan = NULL;
    options.profile = &profile;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 1, shape, TSR_F32, &layout), TSR_OK);
    assert_int_equal(tsr_plan_create(layout, layout, &options, &plan), TSR_ERROR_ARGUMENT);
    assert_null(plan);
    assert_non_null(strstr(tsr_status_message(), "options.profile: between.bandwidth is 0"));
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_with_another_profile_is_named_with_its_profile),
        cmocka_unit_test(a_rank_with_other_tables_is_named_with_their_fingerprint),
        cmocka_unit_test(a_rank_with_another_option_is_named_with_it),
        cmocka_unit_test(a_plan_refuses_a_profile_that_is_not_as_it_must_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
