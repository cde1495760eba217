/* tsr_bench_plan(): moves of every kind are found right, and wrong elements are found where an
 * execution spoils them. */
#include "ranks.h"
#include "support.h"

#include <tessera/bench.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RANKS = 4, SIDE = 12 };

typedef tsr_status execution(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                             void *workspace, size_t bytes, tsr_stream stream);

/* The rank whose results are spoilt; -1: none. And the executions so far. */
static atomic_int spoilt_rank = -1, executions;

/* In place of the library's, for the library under test too: flips a bit of the rank's last
 * element. */
tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                            void *workspace, size_t bytes, tsr_stream stream)
{
    execution *real;
    int64_t count;
    *(void **)&real = dlsym(RTLD_NEXT, "tsr_plan_execute");
    TSR_TRY(real(plan, comm, src, dst, workspace, bytes, stream));
    atomic_fetch_add(&executions, 1);
    if (tsr_comm_rank(comm) != atomic_load(&spoilt_rank))
        return TSR_OK;
    TSR_TRY(tsr_tensor_count(dst, &count));
    ((unsigned char *)dst->data)[count * (int64_t)tsr_dtype_bytes(dst->dtype) - 1] ^= 1;
    return TSR_OK;
}

typedef struct move {
    const char *mesh, *from, *to;
    tsr_dtype dtype;
} move;

static tsr_status make_plan(tsr_comm *comm, const move *m, tsr_mode mode, tsr_plan **out)
{
    const int64_t shape[] = {SIDE, SIDE + 1};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_mesh *mesh = NULL;
    tsr_layout *from = NULL, *to = NULL;
    options.mode = mode;
    tsr_status status = tsr_mesh_parse(comm, NULL, m->mesh, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, m->from, 2, shape, m->dtype, &from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, m->to, 2, shape, m->dtype, &to);
    if (status == TSR_OK)
        status = tsr_plan_create(from, to, &options, out);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_bench_options once(void)
{
    tsr_bench_options o = TSR_BENCH_OPTIONS_INIT;
    o.iterations = 1;
    o.warm_ups = 0;
    o.calls = 1;
    return o;
}

static size_t bytes_of(const tsr_layout *layout, int64_t rank)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    size_t bytes = 0;
    if (tsr_mesh_coordinate_of(tsr_layout_mesh(layout), rank, coordinate, &inside) == TSR_OK && inside)
        (void)tsr_layout_local_bytes(layout, coordinate, &bytes);
    return bytes;
}

static tsr_status measure_move(tsr_comm *comm, const move *m, tsr_mode mode, int64_t wrong)
{
    const tsr_bench_options options = once();
    tsr_plan *plan = NULL;
    tsr_bench_result r;
    int64_t bytes = 0;
    TSR_TRY(make_plan(comm, m, mode, &plan));
    for (int rank = 0; rank < RANKS; rank++)
        bytes += (int64_t)bytes_of(tsr_plan_destination(plan), rank);
    tsr_status status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &r);
    if (status == TSR_OK && (r.wrong != wrong || r.bytes != bytes || r.iterations != 1 || !r.peak_copy))
        status = tsr_status_set(TSR_ERROR_INTERNAL, "mesh %s, %s to %s, %s: %lld wrong, not %lld; %lld bytes", m->mesh,
                                m->from, m->to, tsr_dtype_name(m->dtype), (long long)r.wrong, (long long)wrong,
                                (long long)r.bytes);
    tsr_plan_destroy(plan);
    return status;
}

static const char *const layouts[] = {"R,R", "S(0),R", "S(1),S(1)", "S(1;balanced),S(0;unit=5)", "P(sum),S(0)"};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

/* Every pair of layouts, in every dtype that has sums. */
static tsr_status measure_pairs(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LAYOUTS * LAYOUTS; i++)
        for (int d = TSR_F64; d < TSR_DTYPE_END; d += 1 + (int)(i % 3)) {
            const bool sums = tsr_dtype_get((tsr_dtype)d)->reduce_ops & (1u << TSR_SUM);
            const move m = {"2x2", layouts[i / LAYOUTS], layouts[i % LAYOUTS], (tsr_dtype)d};
            if (sums || (i / LAYOUTS < LAYOUTS - 1 && i % LAYOUTS < LAYOUTS - 1))
                TSR_TRY(measure_move(comm, &m, i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, 0));
        }
    return TSR_OK;
}

static void results_of_all_dtypes_are_found_right(void **state)
{
    (void)state;
    test_case("pairs of layouts");
    run_ranks(RANKS, measure_pairs, NULL);
}

/* Every reduction, also into and out of Partial, and a mesh that leaves ranks out. */
static tsr_status measure_reductions(tsr_comm *comm, void *arg)
{
    static const move moves[] = {
        {"2x2", "P(sum),P(sum)", "R,S(1)", TSR_BF16},
        {"2x2", "P(avg),P(sum)", "S(0),R", TSR_F8E4M3},
        {"2x2", "P(avg),P(avg)", "R,R", TSR_F8E5M2},
        {"2x2", "P(min),R", "S(0),R", TSR_F8E5M2},
        {"2x2", "P(max),P(max)", "R,R", TSR_BOOL},
        {"2x2", "P(min),P(min)", "S(1),R", TSR_BOOL},
        {"2x2", "P(prod),P(prod)", "R,S(0)", TSR_C128},
        {"2x2", "P(avg),R", "R,R", TSR_C64},
        {"2x2", "P(max),S(0)", "P(max),S(1)", TSR_I8},
        {"2x2", "P(sum),R", "P(avg),R", TSR_F16},
        {"2x2", "S(0),S(1)", "P(prod),P(prod)", TSR_U16},
        {"2x2", "S(0),S(0)", "P(sum),S(0)", TSR_F32},
        {"2x2", "R,R", "P(min),P(min)", TSR_I64},
        {"3", "P", "S(0)", TSR_F64},
        {"3", "S(0)", "P", TSR_F32},
        {"1", "R", "S(1)", TSR_U8},
        {"2x2@[3,1,2,0]", "P,S(0)", "S(1),P", TSR_F32},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        TSR_TRY(measure_move(comm, &moves[i], i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, 0));
    return TSR_OK;
}

static void results_of_all_reductions_are_found_right(void **state)
{
    (void)state;
    test_case("reductions");
    run_ranks(RANKS, measure_reductions, NULL);
}

static tsr_status measure_spoilt(tsr_comm *comm, void *arg)
{
    static const move moves[] = {
        {"4", "S(0)", "S(1)", TSR_F32}, {"4", "P", "R", TSR_BF16}, {"4", "R", "S(1)", TSR_BOOL}};
    (void)arg;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        TSR_TRY(measure_move(comm, &moves[i], TSR_MODE_DIRECT, 1));
    return TSR_OK;
}

static void a_spoilt_element_is_wrong(void **state)
{
    (void)state;
    test_case("spoilt");
    atomic_store(&spoilt_rank, 2);
    run_ranks(RANKS, measure_spoilt, NULL);
    atomic_store(&spoilt_rank, -1);
}

/* Tensors with gaps between rows, which stay as they are. */
static tsr_status measure_given(tsr_comm *comm, void *arg)
{
    enum { STRIDE = 2 * SIDE, GAP = 0x77 };
    static const move m = {"4", "S(0)", "S(1)", TSR_I16};
    static int16_t memory[RANKS][2][SIDE * STRIDE];
    int16_t(*const own)[SIDE * STRIDE] = memory[tsr_comm_rank(comm)];
    tsr_bench_options options = once();
    tsr_plan *plan = NULL;
    tsr_tensor x, y;
    tsr_bench_result r;
    (void)arg;
    memset(own, GAP, sizeof memory[0]);
    TSR_TRY(make_plan(comm, &m, TSR_MODE_DIRECT, &plan));
    TSR_TRY(shard_over(tsr_plan_source(plan), own[0], &x));
    TSR_TRY(shard_over(tsr_plan_destination(plan), own[1], &y));
    x.strides[0] = y.strides[0] = STRIDE;
    tsr_status status = tsr_bench_plan(plan, comm, &x, &y, &options, &r);
    if (status != TSR_OK)
        goto done;
    const int16_t gap = GAP << 8 | GAP;
    const int64_t columns = y.shape[1];
    if (r.wrong != 0 || own[0][SIDE + 1] != gap || own[1][columns] != gap || own[1][0] == gap)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%lld wrong, or gaps were written", (long long)r.wrong);
    /* Unchecked, sources are as their owner left them. */
    own[0][0] = 4711;
    options.no_check = 1;
    if (status == TSR_OK)
        status = tsr_bench_plan(plan, comm, &x, &y, &options, &r);
    if (status == TSR_OK && (own[0][0] != 4711 || r.wrong != -1))
        status = tsr_status_set(TSR_ERROR_INTERNAL, "the source was filled");
    /* On one rank alone, no tensor is there, or one of another shape. */
    if (status == TSR_OK)
        status = check_error(tsr_bench_plan(plan, comm, tsr_comm_rank(comm) == 1 ? &y : &x, &y, &options, &r),
                             tsr_comm_rank(comm) == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                             "src, tensor 0, is not of the shape and dtype of this rank's shard", __FILE__, __LINE__,
                             "another shape");
done:
    tsr_plan_destroy(plan);
    return status;
}

static void tensors_of_the_caller_are_used(void **state)
{
    (void)state;
    test_case("given tensors");
    run_ranks(RANKS, measure_given, NULL);
}

/* Sums in place grow from call to call; the checked call is one of its own. */
static tsr_status measure_in_place(tsr_comm *comm, void *arg)
{
    static const move m = {"4", "P", "R", TSR_I32};
    static int32_t memory[RANKS][SIDE * (SIDE + 1)];
    tsr_bench_options options = once();
    tsr_plan *plan = NULL;
    tsr_tensor x;
    tsr_bench_result r = {.wrong = -2};
    (void)arg;
    options.iterations = 3;
    TSR_TRY(make_plan(comm, &m, TSR_MODE_DIRECT, &plan));
    tsr_status status = shard_over(tsr_plan_source(plan), memory[tsr_comm_rank(comm)], &x);
    if (status == TSR_OK)
        status = tsr_bench_plan(plan, comm, &x, &x, &options, &r);
    tsr_plan_destroy(plan);
    TSR_TRY(status);
    CHECK(r.wrong == 0 && r.iterations == 3);
    return TSR_OK;
}

static void moves_in_place_are_checked_once_more(void **state)
{
    (void)state;
    test_case("in place");
    run_ranks(RANKS, measure_in_place, NULL);
}

static tsr_status measure_batch(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {SIDE, SIDE};
    static const char *const names[][2] = {{"S(0)", "S(1)"}, {"P", "S(1)"}, {"S(1)", "P"}};
    enum { COUNT = 3 };
    const tsr_bench_options options = once();
    tsr_mesh *mesh = NULL;
    tsr_layout *from[COUNT], *to[COUNT];
    tsr_plan *plan;
    tsr_bench_result r;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &mesh));
    for (int i = 0; i < COUNT; i++) {
        TSR_TRY(tsr_layout_parse(mesh, names[i][0], 2, shape, TSR_F32, &from[i]));
        TSR_TRY(tsr_layout_parse(mesh, names[i][1], 2, shape, TSR_F32, &to[i]));
    }
    TSR_TRY(tsr_plan_create_batch(COUNT, (const tsr_layout *const *)from, (const tsr_layout *const *)to, NULL, &plan));
    const tsr_status status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &r);
    tsr_plan_destroy(plan);
    for (int i = 0; i < COUNT; i++) {
        tsr_layout_destroy(from[i]);
        tsr_layout_destroy(to[i]);
    }
    tsr_mesh_destroy(mesh);
    TSR_TRY(status);
    CHECK(r.wrong == 0 && r.bytes == (1 + 1 + RANKS) * SIDE * SIDE * 4);
    return TSR_OK;
}

static void batches_are_measured(void **state)
{
    (void)state;
    test_case("a batch");
    run_ranks(RANKS, measure_batch, NULL);
}

/* The plan is there on all ranks but one, and executed as often as the options say. */
static tsr_status count_executions(tsr_comm *comm, void *arg)
{
    static const move m = {"4", "S(0)", "R", TSR_F32};
    tsr_bench_options options = once();
    tsr_plan *plan = NULL;
    tsr_bench_result r;
    const bool first = tsr_comm_rank(comm) == 0;
    (void)arg;
    options.iterations = 4;
    options.calls = 5;
    options.warm_ups = 1;
    TSR_TRY(make_plan(comm, &m, TSR_MODE_DIRECT, &plan));
    atomic_store(&executions, 0);
    tsr_status status = tsr_comm_barrier(comm);
    if (status == TSR_OK)
        status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &r);
    if (status == TSR_OK && atomic_load(&executions) != RANKS * (1 + (4 + 1) * (5 + 1)))
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%d executions", atomic_load(&executions));
    if (status == TSR_OK)
        status = check_error(tsr_bench_plan(first ? NULL : plan, comm, NULL, NULL, &options, &r),
                             first ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, "plan", __FILE__, __LINE__, "no plan");
    tsr_plan_destroy(plan);
    TSR_TRY(status);
    CHECK(tsr_bench_plan(NULL, NULL, NULL, NULL, NULL, &r) == TSR_ERROR_ARGUMENT);
    return tsr_comm_barrier(comm);
}

static void plans_are_executed_as_often_as_asked(void **state)
{
    (void)state;
    test_case("executions");
    run_ranks(RANKS, count_executions, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_all_dtypes_are_found_right),
        cmocka_unit_test(results_of_all_reductions_are_found_right),
        cmocka_unit_test(a_spoilt_element_is_wrong),
        cmocka_unit_test(tensors_of_the_caller_are_used),
        cmocka_unit_test(moves_in_place_are_checked_once_more),
        cmocka_unit_test(batches_are_measured),
        cmocka_unit_test(plans_are_executed_as_often_as_asked),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
