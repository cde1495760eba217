/* A bad argument of one rank of a redistribution is told to its peers, whether they keep the plan
 * already or make it. Where the peers may not communicate, that rank alone gets the error. */
#include "ranks.h"
#include "support.h"

#include <tessera/sys/dtensor.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3, AT_FAULT = 1 };

static const tsr_placement by_columns = {.kind = TSR_SHARD, .dim = 1}, whole = {.kind = TSR_REPLICATE},
                           beyond = {.kind = TSR_SHARD, .dim = 7};

/* The tensors of all calls: x is sharded by rows and y by columns; z is replicated and has another
 * shape; w was Partial until it was changed in place. */
typedef struct fixture {
    tsr_dtensor *x, *y, *z, *w;
    const tsr_layout *gradient; /* of x, for which dy is y */
} fixture;

typedef tsr_status operation(const fixture *f, bool at_fault);

static tsr_status drop(tsr_status status, tsr_dtensor *out)
{
    tsr_dtensor_destroy(out);
    return status;
}

static tsr_status to_beyond(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute(f->x, at_fault ? &beyond : &by_columns, &out);
    return drop(status, out);
}

static tsr_status without_placements(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute(f->x, at_fault ? NULL : &whole, &out);
    return drop(status, out);
}

static tsr_status without_out(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute(f->x, &by_columns, at_fault ? NULL : &out);
    return drop(status, out);
}

static tsr_status to_bad_text(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute_to(f->x, at_fault ? "Q" : "S(1)", &out);
    return drop(status, out);
}

static tsr_status to_no_text(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute_to(f->x, at_fault ? NULL : "S(1)", &out);
    return drop(status, out);
}

static tsr_status to_without_out(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute_to(f->x, "S(1)", at_fault ? NULL : &out);
    return drop(status, out);
}

static tsr_status into_none(const fixture *f, bool at_fault)
{
    return tsr_redistribute_into(f->x, at_fault ? NULL : f->y, NULL);
}

static tsr_status into_another_shape(const fixture *f, bool at_fault)
{
    return tsr_redistribute_into(f->x, at_fault ? f->z : f->y, NULL);
}

static tsr_status batch(const fixture *f, bool at_fault)
{
    const tsr_dtensor *const x[] = {f->x};
    tsr_dtensor *const y[] = {at_fault ? NULL : f->y};
    return tsr_redistribute_batch(1, x, y, NULL);
}

static tsr_status in_place_without_placements(const fixture *f, bool at_fault)
{
    return tsr_redistribute_in_place(f->w, at_fault ? NULL : &whole, NULL);
}

static tsr_status back_without_layout(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_redistribute_backward(f->y, at_fault ? NULL : f->gradient, &out);
    return drop(status, out);
}

static tsr_status full_without_out(const fixture *f, bool at_fault)
{
    tsr_dtensor *out = NULL;
    const tsr_status status = tsr_full_tensor(f->x, at_fault ? NULL : &out);
    return drop(status, out);
}

/* The rank at fault has failed before the call. */
static tsr_status after_a_failure(const fixture *f, bool at_fault)
{
    if (!at_fault)
        return without_out(f, false);
    return tsr_redistribute_failed(f->x, &by_columns, tsr_status_set(TSR_ERROR_ARGUMENT, "the flag is upside down"));
}

static tsr_status after_a_failure_to_somewhere(const fixture *f, bool at_fault)
{
    if (!at_fault)
        return without_out(f, false);
    return tsr_redistribute_failed(f->x, NULL, tsr_status_set(TSR_ERROR_ARGUMENT, "the compass is lost"));
}

static const struct {
    operation *run;
    const char *words; /* of the sentence, on every rank */
} faults[] = {
    {to_beyond, "\"S(7)\" shard dim 7"},
    {without_placements, "tsr_redistribute: placements is NULL"},
    {without_out, "tsr_redistribute: out is NULL"},
    {to_bad_text, "tsr_redistribute_to: "},
    {to_no_text, "tsr_redistribute_to: placements is NULL"},
    {to_without_out, "tsr_redistribute_to: out is NULL"},
    {into_none, "tsr_redistribute_into: y is NULL"},
    {into_another_shape, "tsr_redistribute_into: "},
    {batch, "tsr_redistribute_batch: "},
    {in_place_without_placements, "tsr_redistribute_in_place: placements is NULL"},
    {back_without_layout, "tsr_redistribute_backward: x_layout is NULL"},
    {full_without_out, "tsr_full_tensor: out is NULL"},
    {after_a_failure, "the flag is upside down"},
    {after_a_failure_to_somewhere, "the compass is lost"},
};

static tsr_status make(const tsr_mesh *mesh, const char *placements, int64_t rows, tsr_dtensor **out)
{
    const int64_t shape[] = {rows, 6};
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

/* Makes the faulty call before any plan is kept, then the correct call, then the faulty call
 * again. */
static tsr_status check_fault(tsr_comm *comm, const fixture *f, size_t i)
{
    const bool at_fault = tsr_comm_rank(comm) == AT_FAULT;
    for (int round = 0; round < 2; round++) {
        const tsr_status status = faults[i].run(f, at_fault);
        CHECK_ERROR(status, at_fault ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, faults[i].words);
        CHECK(at_fault || strstr(tsr_status_message(), "rank 1 failed: "));
        TSR_TRY(tsr_comm_barrier(comm));
        TSR_TRY(faults[i].run(f, false));
    }
    return TSR_OK;
}

/* Checks each fault on a mesh of its own, which keeps no plan yet. */
static tsr_status check_faults(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        tsr_mesh *mesh = NULL;
        fixture f = {0};
        TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
        TSR_TRY(make(mesh, "S(0)", 6, &f.x));
        TSR_TRY(make(mesh, "S(1)", 6, &f.y));
        TSR_TRY(make(mesh, "R", 7, &f.z));
        TSR_TRY(make(mesh, "P", 6, &f.w));
        memset(tsr_dtensor_to_local(f.w).data, 0, 6 * 6 * sizeof(float));
        f.gradient = tsr_dtensor_layout(f.x);
        const tsr_status status = check_fault(comm, &f, i);
        tsr_dtensor_destroy(f.w);
        tsr_dtensor_destroy(f.z);
        tsr_dtensor_destroy(f.y);
        tsr_dtensor_destroy(f.x);
        tsr_mesh_destroy(mesh);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status check_faults_by_messages(tsr_comm *comm, void *arg)
{
    tsr_comm *lent = NULL;
    TSR_TRY(lend(comm, &lent));
    const tsr_status status = check_faults(lent, arg);
    tsr_comm_destroy(lent);
    return status;
}

/* The rank at fault has no plan to prepare. */
static tsr_status prepare_none(tsr_comm *comm, void *arg)
{
    const bool at_fault = tsr_comm_rank(comm) == AT_FAULT;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    (void)arg;
    TSR_TRY(layout_over(comm, "3", "6x6", "S(0)", TSR_F32, &src));
    TSR_TRY(layout_over(comm, "3", "6x6", "S(1)", TSR_F32, &dst));
    TSR_TRY(tsr_plan_create(src, dst, NULL, &plan));
    CHECK_ERROR(tsr_plan_prepare(at_fault ? NULL : plan, comm), at_fault ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                at_fault ? "tsr_plan_prepare: plan is NULL" : "rank 1 failed: tsr_plan_prepare: plan is NULL");
    TSR_TRY(tsr_plan_prepare(plan, comm));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static void a_plan_that_is_missing_on_one_rank_is_told_to_its_peers(void **state)
{
    (void)state;
    test_case("no plan to prepare");
    run_ranks(RANKS, prepare_none, NULL);
}

static void a_bad_argument_of_one_rank_is_told_to_its_peers(void **state)
{
    (void)state;
    test_case("a fault of rank 1");
    run_ranks(RANKS, check_faults, NULL);
    test_case("a fault of rank 1, by messages");
    run_ranks(RANKS, check_faults_by_messages, NULL);
}

/* Peers that keep a plan which moves nothing between ranks do not communicate, so the rank at fault
 * does not wait for them. */
static tsr_status fail_beside_a_local_move(tsr_comm *comm, void *arg)
{
    const bool at_fault = tsr_comm_rank(comm) == AT_FAULT;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, "R", 6, &x));
    TSR_TRY(tsr_redistribute_to(x, "S(0)", &y));
    tsr_dtensor_destroy(y);
    y = NULL;
    const tsr_status status = tsr_redistribute_to(x, at_fault ? "Q" : "S(0)", &y);
    CHECK(status == (at_fault ? TSR_ERROR_ARGUMENT : TSR_OK));
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_rank_at_fault_beside_a_local_move_does_not_wait(void **state)
{
    (void)state;
    test_case("nothing crosses ranks");
    run_ranks(RANKS, fail_beside_a_local_move, NULL);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_argument_of_one_rank_is_told_to_its_peers),
        cmocka_unit_test(a_plan_that_is_missing_on_one_rank_is_told_to_its_peers),
        cmocka_unit_test(a_rank_at_fault_beside_a_local_move_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
