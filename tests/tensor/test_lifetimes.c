/* Meshes and dtensors outlive their communicator: they can be read and destroyed in any order, and
 * calls that communicate say that the communicator was destroyed. */
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/comm.h>
#include <tessera/values.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3, ROWS = 5, COLUMNS = 4 };

/* What a rank leaves behind. */
typedef struct remains {
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x, *y, *over;
    tsr_plan *plan;
    void *memory;
    size_t bytes;
} remains;

static float value_of(const tsr_dtensor *x, int64_t at)
{
    return ((const float *)tsr_dtensor_to_local(x).data)[at];
}

static tsr_status make(tsr_comm *comm, remains *r)
{
    static float values[ROWS * COLUMNS];
    const int64_t shape[] = {ROWS, COLUMNS};
    const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    r->comm = comm;
    TSR_TRY(mesh_over(comm, "3", &r->mesh));
    TSR_TRY(tsr_distribute_tensor(&global, r->mesh, &rows, NULL, &r->x));
    TSR_TRY(tsr_redistribute(r->x, &columns, &r->y));
    TSR_TRY(tsr_layout_parse(r->mesh, "R", 2, shape, TSR_F32, &r->layout));
    TSR_TRY(tsr_plan_create(tsr_dtensor_layout(r->x), r->layout, NULL, &r->plan));
    TSR_TRY(tsr_plan_prepare(r->plan, comm));
    r->bytes = sizeof values;
    TSR_TRY(tsr_comm_alloc(comm, r->bytes, &r->memory));
    const tsr_tensor local = tsr_tensor_contiguous(r->memory, TSR_F32, 2, shape);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ((float *)r->memory)[i] = (float)i;
    return tsr_dtensor_from_local(&local, r->layout, NULL, &r->over);
}

static tsr_status refuse_all(remains *r)
{
    static const char gone[] = "was destroyed";
    const tsr_placement replicate = tsr_replicate();
    const int64_t shape[] = {ROWS, COLUMNS};
    const tsr_from_local_options checked = {sizeof checked, 1};
    const tsr_tensor local = tsr_dtensor_to_local(r->over),
                     global = tsr_tensor_contiguous(local.data, TSR_F32, 2, shape);
    tsr_comm *const comm = tsr_mesh_comm(r->mesh);
    tsr_comm *half = NULL;
    tsr_dtensor *made = NULL;
    void *memory = NULL;
    tsr_mesh *split = NULL;
    double sum = -1;
    CHECK(comm == r->comm && tsr_comm_size(comm) == RANKS && strcmp(tsr_comm_engine(comm), "threads") == 0);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_comm_split(comm, 0, 0, &half), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_comm_alloc(comm, 64, &memory), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_comm_exchange(comm, NULL, 0, NULL, 0, tsr_device_host(), NULL), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_redistribute(r->x, &replicate, &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_redistribute_into(r->x, r->y, NULL), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_redistribute_in_place(r->x, &replicate, NULL), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_redistribute_in_place(r->over, &replicate, NULL), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_full_tensor(r->x, &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_distribute_tensor(&global, r->mesh, &replicate, NULL, &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_create(r->layout, tsr_device_host(), &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_from_local(&local, r->layout, &checked, &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_like(r->x, &made), TSR_ERROR_STATE, "tsr_dtensor_like: the communicator");
    CHECK_ERROR(tsr_dtensor_like_as(r->x, TSR_F64, &made), TSR_ERROR_STATE, "tsr_dtensor_like_as: the communicator");
    CHECK_ERROR(tsr_dtensor_rows(r->x, 0, 1, &made), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_sum(r->x, &sum), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_norm(r->x, &sum), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_dtensor_write(r->x, "/tmp/unwritten", 0), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_mesh_split(r->mesh, NULL, &split), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_mesh_all_reduce_f64(r->mesh, NULL, &sum, TSR_SUM), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_plan_prepare(r->plan, comm), TSR_ERROR_STATE, gone);
    CHECK_ERROR(tsr_plan_execute(r->plan, comm, NULL, NULL, NULL, 0, NULL), TSR_ERROR_STATE, gone);
    tsr_comm_abort(comm);
    CHECK(!half && !made && !memory && !split && sum == -1);
    return TSR_OK;
}

/* Geometry needs no communicator, and local memory is still valid. */
static tsr_status read_all(const remains *r)
{
    int64_t coordinate[1], local[2];
    int inside;
    tsr_plan *plan = NULL;
    TSR_TRY(tsr_mesh_coordinate(r->mesh, coordinate, &inside));
    CHECK(inside && coordinate[0] == tsr_comm_rank(r->comm));
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(r->x), NULL, local, NULL));
    TSR_TRY(tsr_plan_create(tsr_dtensor_layout(r->x), r->layout, NULL, &plan));
    tsr_plan_destroy(plan);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(value_of(r->over, i) == (float)i);
    return TSR_OK;
}

static void destroy_all(remains *r, bool backwards)
{
    tsr_dtensor *const tensors[] = {r->x, r->over, r->y};
    if (!backwards)
        tsr_mesh_destroy(r->mesh);
    tsr_comm_free(r->comm, r->memory, r->bytes);
    for (int i = 0; i < 3; i++)
        tsr_dtensor_destroy(tensors[backwards ? 2 - i : i]);
    tsr_plan_destroy(r->plan);
    tsr_layout_destroy(r->layout);
    if (backwards)
        tsr_mesh_destroy(r->mesh);
}

static tsr_status outlive(tsr_comm *comm, void *arg)
{
    const bool backwards = *(const bool *)arg;
    tsr_comm *own = NULL;
    remains r = {0};
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &own));
    TSR_TRY(make(own, &r));
    tsr_comm_destroy(own);
    TSR_TRY(refuse_all(&r));
    TSR_TRY(read_all(&r));
    destroy_all(&r, backwards);
    return tsr_comm_barrier(comm);
}

static void calls_after_a_communicators_end_are_refused_and_destroying_is_fine(void **state)
{
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        bool order = backwards != 0;
        test_case("the mesh destroyed %s", order ? "last" : "first");
        run_ranks(RANKS, outlive, &order);
    }
}

/* Leaves the objects of a rank to a thread that destroys them later, as a garbage collector
 * does. */
static tsr_status leave_behind(tsr_comm *comm, void *arg)
{
    return make(comm, &((remains *)arg)[tsr_comm_rank(comm)]);
}

static void *collect(void *arg)
{
    destroy_all(arg, true);
    return NULL;
}

static void another_thread_destroys_what_ranks_left_when_all_have_returned(void **state)
{
    (void)state;
    remains left[RANKS] = {0};
    pthread_t collectors[RANKS];
    test_case("3 ranks, 3 collectors");
    run_ranks(RANKS, leave_behind, left);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(read_all(&left[r]), TSR_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&collectors[r], NULL, collect, &left[r]), 0);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_join(collectors[r], NULL), 0);
}

/* A reference keeps a destroyed communicator readable, as that of a mesh does. */
static tsr_status hold(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *own = NULL;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &own));
    CHECK(tsr_comm_retain(own) == own && !tsr_comm_retain(NULL));
    tsr_comm_destroy(own);
    CHECK(tsr_comm_rank(own) == tsr_comm_rank(comm) && tsr_comm_node_of(own, 0) == -1);
    CHECK_ERROR(tsr_comm_barrier(own), TSR_ERROR_STATE, "was destroyed");
    tsr_comm_release(own);
    tsr_comm_release(NULL);
    return TSR_OK;
}

static void a_retained_handle_says_that_it_was_destroyed(void **state)
{
    (void)state;
    test_case("retained, destroyed, released");
    run_ranks(RANKS, hold, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_after_a_communicators_end_are_refused_and_destroying_is_fine),
        cmocka_unit_test(another_thread_destroys_what_ranks_left_when_all_have_returned),
        cmocka_unit_test(a_retained_handle_says_that_it_was_destroyed),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
