/* Ranks with different BLAS libraries use one that all of them have, or get an error. */
#include "ops/agreement.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4 };

static const tsr_blas_table tables[] = {{.name = "openblas", .version = "1", .core = "SkylakeX"},
                                        {.name = "openblas", .version = "1", .core = "Haswell"},
                                        {.name = "openblas", .version = "2", .core = "Haswell"},
                                        {.name = "onednn", .version = "3", .core = "avx2"}};
static const tsr_blas_provider providers[] = {
    {.table = &tables[0]}, {.table = &tables[1]}, {.table = &tables[2]}, {.table = &tables[3]}};
enum { SKYLAKE, HASWELL, NEWER, ONEDNN };

/* What each rank has: indices of providers, ended by -1, and its kernels. */
typedef struct scene {
    int has[RANKS][4];
    const char *kernels[RANKS];
    int fails; /* rank, or -1 */
    tsr_status status[RANKS];
    char words[RANKS][512];
    tsr_choice choice[RANKS];
} scene;

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    scene *s = arg;
    const int rank = tsr_comm_rank(comm);
    tsr_choice *choice = &s->choice[rank];
    *choice = (tsr_choice){.kernels = s->kernels[rank]};
    while (s->has[rank][choice->count] >= 0) {
        choice->by[choice->count] = &providers[s->has[rank][choice->count]];
        choice->count++;
    }
    const tsr_status local = rank == s->fails ? tsr_status_set(TSR_ERROR_DEVICE, "out of luck") : TSR_OK;
    s->status[rank] = tsr_agree_on_provider(comm, local, choice);
    snprintf(s->words[rank], sizeof s->words[rank], "%s", s->status[rank] == TSR_OK ? "" : tsr_status_message());
    return tsr_comm_barrier(comm);
}

static void play(scene *s)
{
    if (tsr_threads_run(RANKS, run_rank, s, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

static void assert_all_have(const scene *s, const int *wanted)
{
    for (int rank = 0; rank < RANKS; rank++) {
        int count = 0;
        assert_string_equal(s->words[rank], "");
        for (; wanted[count] >= 0; count++)
            assert_ptr_equal(s->choice[rank].by[count], &providers[wanted[count]]);
        assert_int_equal(s->choice[rank].count, count);
    }
}

static void ranks_that_have_the_same_keep_it(void **state)
{
    (void)state;
    scene s = {.has = {{NEWER, SKYLAKE, -1}, {NEWER, SKYLAKE, -1}, {NEWER, SKYLAKE, -1}, {NEWER, SKYLAKE, -1}},
               .kernels = {"avx512", "avx512", "avx512", "avx512"},
               .fails = -1};
    play(&s);
    assert_all_have(&s, (const int[]){NEWER, SKYLAKE, -1});
    assert_string_equal(s.choice[3].kernels, "avx512");
}

static void ranks_take_the_best_that_all_have(void **state)
{
    (void)state;
    scene s = {
        .has = {{ONEDNN, NEWER, SKYLAKE, -1}, {NEWER, ONEDNN, SKYLAKE, -1}, {NEWER, HASWELL, -1}, {NEWER, ONEDNN, -1}},
        .kernels = {"avx512", "avx512", "avx2", "avx512"},
        .fails = -1};
    play(&s);
    assert_all_have(&s, (const int[]){NEWER, -1});
    for (int rank = 0; rank < RANKS; rank++)
        assert_string_equal(s.choice[rank].kernels, "avx2");
}

static void orders_that_measurements_made_become_one(void **state)
{
    (void)state;
    scene s = {.has = {{ONEDNN, NEWER, -1}, {NEWER, ONEDNN, -1}, {ONEDNN, NEWER, -1}, {NEWER, ONEDNN, -1}},
               .kernels = {"portable", "avx512", "avx2", "avx512"},
               .fails = -1};
    play(&s);
    assert_all_have(&s, (const int[]){ONEDNN, NEWER, -1});
    assert_string_equal(s.choice[1].kernels, "portable");
}

static void ranks_with_nothing_in_common_are_told_of_two(void **state)
{
    (void)state;
    scene s = {.has = {{SKYLAKE, -1}, {SKYLAKE, -1}, {HASWELL, -1}, {NEWER, -1}},
               .kernels = {"avx512", "avx512", "avx2", "avx512"},
               .fails = -1};
    play(&s);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(s.status[rank], TSR_ERROR_UNSUPPORTED);
        assert_non_null(strstr(
            s.words[rank], "rank 0 has openblas with kernels for SkylakeX (1), rank 2 has openblas with kernels for "
                           "Haswell (1); "));
        assert_string_equal(s.words[rank], s.words[0]);
    }
}

static void ranks_on_other_devices_go_with_everything(void **state)
{
    (void)state;
    scene s = {
        .has = {{-1}, {HASWELL, NEWER, -1}, {-1}, {NEWER, -1}}, .kernels = {NULL, "avx2", NULL, "avx2"}, .fails = -1};
    play(&s);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(s.status[rank], TSR_OK);
    assert_int_equal(s.choice[0].count, 0);
    assert_int_equal(s.choice[1].count, 1);
    assert_ptr_equal(s.choice[1].by[0], &providers[NEWER]);
}

static void the_failure_of_one_is_told_to_all(void **state)
{
    (void)state;
    scene s = {.has = {{SKYLAKE, -1}, {HASWELL, -1}, {-1}, {SKYLAKE, -1}},
               .kernels = {"avx512", "avx2", NULL, "avx512"},
               .fails = 2};
    play(&s);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(s.status[rank], rank == 2 ? TSR_ERROR_DEVICE : TSR_ERROR_PEER);
        assert_string_equal(s.words[rank], rank == 2 ? "out of luck" : "rank 2 failed: out of luck");
    }
}

static void versions_and_cores_tell_providers_apart(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            assert_true(tsr_provider_identity(&providers[i]) != tsr_provider_identity(&providers[k]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_have_the_same_keep_it),
        cmocka_unit_test(ranks_take_the_best_that_all_have),
        cmocka_unit_test(orders_that_measurements_made_become_one),
        cmocka_unit_test(ranks_with_nothing_in_common_are_told_of_two),
        cmocka_unit_test(ranks_on_other_devices_go_with_everything),
        cmocka_unit_test(the_failure_of_one_is_told_to_all),
        cmocka_unit_test(versions_and_cores_tell_providers_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
