/* tsr_redistribute(): what a result has of its own, whatever becomes of what the call was given. */
#include "ranks.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* The length of lists in a placement; lists longer than a few hundred numbers do not fit on the
 * stack of a call. */
enum { ELEMENTS = 600 };

typedef struct cut_case {
    const char *name;
    bool sizes; /* else blocks */
    size_t count;
    int64_t numbers[4]; /* the list if count <= 4; else all its numbers are 1 */
} cut_case;

static const cut_case cut_cases[] = {
    {"two sizes", true, 2, {150, 450}},
    {"a size of 0", true, 2, {0, 600}},
    {"blocks", false, 4, {100, 50, 449, 1}},
    {"as many blocks as elements", false, ELEMENTS, {0}},
};

static tsr_placement write_cut(const cut_case *c, int64_t numbers[ELEMENTS])
{
    for (size_t i = 0; i < c->count; i++)
        numbers[i] = c->count <= 4 ? c->numbers[i] : 1;
    tsr_placement cut = tsr_shard(0);
    if (c->sizes) {
        cut.sizes = numbers;
        cut.size_count = c->count;
    } else {
        cut.blocks = numbers;
        cut.block_count = c->count;
    }
    return cut;
}

static tsr_status make_numbered(const tsr_mesh *mesh, tsr_dtensor **out)
{
    const int64_t shape[] = {ELEMENTS};
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, "R", 1, shape, TSR_I32, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    int32_t *values = tsr_dtensor_to_local(*out).data;
    for (int32_t i = 0; i < ELEMENTS; i++)
        values[i] = i;
    return TSR_OK;
}

/* Compares the result's layout with the list, after the caller's numbers were overwritten. */
static tsr_status check_layout(const tsr_dtensor *y, const cut_case *c)
{
    int64_t numbers[ELEMENTS];
    const tsr_placement cut = write_cut(c, numbers);
    tsr_layout *wanted = NULL;
    TSR_TRY(tsr_layout_with(tsr_dtensor_layout(y), &cut, &wanted));
    CHECK(tsr_layout_equal(tsr_dtensor_layout(y), wanted));
    tsr_layout_destroy(wanted);
    return TSR_OK;
}

/* Moves to a layout with a list and back; the way back reads the list from the result's layout. */
static tsr_status keep_numbers(tsr_comm *comm, void *arg)
{
    const cut_case *const c = arg;
    int64_t numbers[ELEMENTS];
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_numbered(mesh, &x));
    for (int i = 0; i < 2; i++) {
        const tsr_placement cut = write_cut(c, numbers);
        TSR_TRY(tsr_redistribute(x, &cut, &y));
        memset(numbers, 0xff, sizeof numbers);
        TSR_TRY(check_layout(y, c));
        TSR_TRY(tsr_full_tensor(y, &z));
        CHECK(memcmp(tsr_dtensor_to_local(z).data, tsr_dtensor_to_local(x).data, ELEMENTS * sizeof(int32_t)) == 0);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(z);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_result_keeps_the_numbers_of_its_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        test_case("%s", cut_cases[i].name);
        run_ranks(2, keep_numbers, (void *)&cut_cases[i]);
    }
}

static tsr_status refuse_numbers(tsr_comm *comm, void *arg)
{
    cut_case wrong = *(const cut_case *)arg;
    int64_t numbers[ELEMENTS];
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_numbered(mesh, &x));
    const tsr_placement cut = write_cut(&wrong, numbers);
    numbers[wrong.count - 1]++;
    CHECK_ERROR(tsr_redistribute(x, &cut, &y), TSR_ERROR_ARGUMENT, "601");
    CHECK(!y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void numbers_that_do_not_sum_up_are_refused_however_many_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        test_case("%s, one too many", cut_cases[i].name);
        run_ranks(2, refuse_numbers, (void *)&cut_cases[i]);
    }
}

/* The result alone keeps mesh, layout and context, after the caller has destroyed its own
 * references. */
static tsr_status outlive(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_numbered(mesh, &x));
    tsr_mesh_destroy(mesh);
    const tsr_placement cut = tsr_shard(0);
    TSR_TRY(tsr_redistribute(x, &cut, &y));
    tsr_dtensor_destroy(x);
    const tsr_tensor local = tsr_dtensor_to_local(y);
    for (int32_t i = 0; i < ELEMENTS / 2; i++)
        CHECK(((const int32_t *)local.data)[i] == i + tsr_comm_rank(comm) * ELEMENTS / 2);
    CHECK(tsr_mesh_count(tsr_layout_mesh(tsr_dtensor_layout(y))) == 2);
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

static void a_result_outlives_what_it_was_made_from(void **state)
{
    (void)state;
    test_case("a result alone");
    run_ranks(2, outlive, NULL);
}

/* The tensor is 6 MiB of i32. A rank's part has several pages of 2 MiB, or one and some small
 * pages. */
enum { ROWS = 1536, COLUMNS = 1024, AGAIN = 4 };

typedef struct large_move {
    const char *from, *to;
    int64_t factor; /* each element is this times its number: 2 where two ranks hold equal terms */
} large_move;

static const large_move large_moves[] = {
    {"S(0)", "S(1)", 1}, {"S(0)", "R", 1}, {"P", "S(0)", 2}, {"P", "R", 2}, {"S(1)", "P", 1}};

static tsr_status make_large(const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, placements, 2, shape, TSR_I32, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    const tsr_tensor local = tsr_dtensor_to_local(*out);
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    const int64_t first_row = strcmp(placements, "S(0)") == 0 ? rank * (ROWS / 2) : 0;
    const int64_t first_column = strcmp(placements, "S(1)") == 0 ? rank * (COLUMNS / 2) : 0;
    for (int64_t i = 0; i < local.shape[0]; i++)
        for (int64_t j = 0; j < local.shape[1]; j++)
            ((int32_t *)local.data)[i * local.shape[1] + j] = (int32_t)((first_row + i) * COLUMNS + first_column + j);
    return TSR_OK;
}

/* Gathers the whole tensor, which is a large result too, and checks it. */
static tsr_status check_large(const tsr_dtensor *y, int64_t factor)
{
    tsr_dtensor *whole = NULL;
    TSR_TRY(tsr_full_tensor(y, &whole));
    const int32_t *const values = tsr_dtensor_to_local(whole).data;
    for (int64_t i = 0; i < (int64_t)ROWS * COLUMNS; i++)
        CHECK(values[i] == factor * i);
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

static long count_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : -1;
}

/* Sanitizers have memory of their own, whose pages come and go. */
static bool faults_are_ours(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

/* The first result has new pages; each later one has the pages of the result before it. */
static tsr_status make_again(tsr_comm *comm, void *arg)
{
    const large_move *const move = arg;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_large(mesh, move->from, &x));
    for (int i = 0; i < AGAIN; i++) {
        tsr_dtensor_destroy(y);
        const long before = count_faults();
        TSR_TRY(tsr_redistribute_to(x, move->to, &y));
        const long faults = count_faults() - before;
        if (i >= 2 && faults > 4 && faults_are_ours())
            return tsr_status_set(TSR_ERROR_INTERNAL, "result %d cost %ld page faults", i + 1, faults);
        TSR_TRY(check_large(y, move->factor));
    }
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_large_result_after_another_costs_no_page_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large_moves / sizeof *large_moves; i++) {
        test_case("%s -> %s", large_moves[i].from, large_moves[i].to);
        run_ranks(2, make_again, (void *)&large_moves[i]);
    }
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_keeps_the_numbers_of_its_cuts),
        cmocka_unit_test(numbers_that_do_not_sum_up_are_refused_however_many_there_are),
        cmocka_unit_test(a_result_outlives_what_it_was_made_from),
        cmocka_unit_test(a_large_result_after_another_costs_no_page_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
