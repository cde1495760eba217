/* Executions in two halves: what is refused between them, what fails in each half, and that the
 * first half waits for no rank where ranks read each other's memory. */
#include "ranks.h"
#include "support.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { RANKS = 3, ROWS = 48, COLUMNS = 27, MOST = ROWS * COLUMNS };

/* Rows to columns of a 48x27 tensor of i32 on three ranks, element g holding g. It is too large to
 * be copied aside before ranks meet. */
typedef struct fixture {
    tsr_comm *comm;
    tsr_layout *rows, *columns;
    tsr_plan *plan;
    int32_t have[MOST], want[MOST];
    tsr_tensor src, dst;
    void *workspace;
    size_t bytes;
} fixture;

static tsr_status fixture_make(fixture *f, tsr_comm *comm, const char *mesh, tsr_mode mode)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = mode;
    *f = (fixture){.comm = comm};
    TSR_TRY(layout_over(comm, mesh, "48x27", "S(0)", TSR_I32, &f->rows));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(f->rows), "S(1)", 2, tsr_layout_shape(f->rows), TSR_I32, &f->columns));
    TSR_TRY(tsr_plan_create(f->rows, f->columns, &options, &f->plan));
    TSR_TRY(shard_over(f->rows, f->have, &f->src));
    TSR_TRY(shard_over(f->columns, f->want, &f->dst));
    f->workspace = workspace_for(f->plan, &f->bytes);
    for (int i = 0; i < MOST; i++) {
        f->have[i] = tsr_comm_rank(comm) * (ROWS / RANKS) * COLUMNS + i;
        f->want[i] = -1;
    }
    return TSR_OK;
}

static void fixture_destroy(fixture *f)
{
    tsr_plan_destroy(f->plan);
    tsr_layout_destroy(f->rows);
    tsr_layout_destroy(f->columns);
    free(f->workspace);
}

static tsr_status start(const fixture *f, const tsr_tensor *dst)
{
    return tsr_plan_start(f->plan, f->comm, &f->src, dst, f->workspace, f->bytes, NULL);
}

static tsr_status execute(const fixture *f)
{
    return tsr_plan_execute(f->plan, f->comm, &f->src, &f->dst, f->workspace, f->bytes, NULL);
}

static tsr_status check_moved(const fixture *f)
{
    const int across = COLUMNS / RANKS;
    for (int i = 0; i < ROWS * across; i++)
        CHECK(f->want[i] == i / across * COLUMNS + tsr_comm_rank(f->comm) * across + i % across);
    return TSR_OK;
}

/* Two tensors that are moved together on four ranks. Where the plan knows nodes, sharing within
 * them costs nothing. */
enum { PARTY = 4 };

typedef struct pair {
    tsr_plan *plan;
    tsr_tensor src[2], dst[2];
    void *workspace;
    size_t bytes;
} pair;

static tsr_status pair_plan(pair *f, const tsr_layout *from, const tsr_layout *to, tsr_mode mode,
                            int64_t ranks_per_node)
{
    static const tsr_cost_profile round_is_free = {{0.0, 1e15}, {1e-3, 1e3}};
    const tsr_layout *const src[] = {from, from}, *const dst[] = {to, to};
    int64_t here[2], there[2];
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = mode;
    options.nodes.ranks_per_node = ranks_per_node;
    options.profile = &round_is_free;
    TSR_TRY(tsr_plan_create_batch(2, src, dst, &options, &f->plan));
    TSR_TRY(tsr_layout_local(from, NULL, here, NULL));
    TSR_TRY(tsr_layout_local(to, NULL, there, NULL));
    for (int i = 0; i < 2; i++) {
        f->src[i] = tsr_tensor_contiguous(calloc((size_t)(here[0] * here[1]), 4), TSR_I32, 2, here);
        f->dst[i] = tsr_tensor_contiguous(calloc((size_t)(there[0] * there[1]), 4), TSR_I32, 2, there);
    }
    f->workspace = workspace_for(f->plan, &f->bytes);
    return TSR_OK;
}

static void pair_destroy(pair *f)
{
    tsr_plan_destroy(f->plan);
    for (int i = 0; i < 2; i++) {
        free(f->src[i].data);
        free(f->dst[i].data);
    }
    free(f->workspace);
}

static tsr_status misuse(tsr_comm *comm, void *arg)
{
    fixture f, other;
    const tsr_mode mode = *(const tsr_mode *)arg;
    TSR_TRY(fixture_make(&f, comm, "3", mode));
    TSR_TRY(fixture_make(&other, comm, "3", mode));
    CHECK_ERROR(start(&f, &f.dst), TSR_ERROR_STATE, "not prepared");
    CHECK_ERROR(tsr_plan_finish(f.plan, comm), TSR_ERROR_STATE, "not started");
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    TSR_TRY(tsr_plan_prepare(other.plan, comm));
    CHECK_ERROR(tsr_plan_finish(f.plan, comm), TSR_ERROR_STATE, "not started");
    CHECK_ERROR(tsr_plan_start(NULL, comm, &f.src, &f.dst, NULL, 0, NULL), TSR_ERROR_ARGUMENT, "plan is NULL");
    CHECK_ERROR(tsr_plan_finish(f.plan, NULL), TSR_ERROR_ARGUMENT, "comm is NULL");

    TSR_TRY(start(&f, &f.dst));
    CHECK_ERROR(start(&f, &f.dst), TSR_ERROR_STATE, "tsr_plan_finish()");
    CHECK_ERROR(start(&other, &other.dst), TSR_ERROR_STATE, "tsr_plan_finish()");
    CHECK_ERROR(execute(&other), TSR_ERROR_STATE, "tsr_plan_finish()");
    CHECK_ERROR(tsr_plan_finish(other.plan, comm), TSR_ERROR_STATE, "another plan");
    CHECK_ERROR(tsr_plan_prepare(other.plan, comm), TSR_ERROR_STATE, NULL);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_STATE, NULL);
    CHECK_ERROR(tsr_comm_exchange_finish(comm), TSR_ERROR_STATE,
                mode == TSR_MODE_MESSAGE ? "tsr_plan_finish()" : "no exchange");
    TSR_TRY(tsr_plan_finish(f.plan, comm));
    TSR_TRY(check_moved(&f));
    CHECK_ERROR(tsr_plan_finish(f.plan, comm), TSR_ERROR_STATE, "not started");
    for (int i = 0; i < MOST; i++)
        CHECK(other.want[i] == -1);
    TSR_TRY(execute(&other));
    TSR_TRY(check_moved(&other));
    fixture_destroy(&other);
    fixture_destroy(&f);
    return TSR_OK;
}

static void run_in_both_modes(int ranks, tsr_rank_main *body, const char *what)
{
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("%s, mode %d", what, (int)mode);
        run_ranks(ranks, body, &mode);
    }
}

static void between_the_halves_other_calls_are_refused_and_do_no_harm(void **state)
{
    (void)state;
    run_in_both_modes(RANKS, misuse, "misuse");
}

/* What is pending lives with the group: preparing a plan that would make it anew is refused where
 * it is pending, and told elsewhere. */
static tsr_status prepare_between(tsr_comm *comm, void *arg)
{
    fixture f;
    tsr_layout *larger[2] = {NULL, NULL};
    tsr_plan *plan = NULL;
    const bool inside = tsr_comm_rank(comm) < RANKS;
    TSR_TRY(fixture_make(&f, comm, "3", *(const tsr_mode *)arg));
    TSR_TRY(layout_over(comm, "3", "64x64", "P", TSR_I32, &larger[0]));
    TSR_TRY(layout_over(comm, "3", "64x64", "R", TSR_I32, &larger[1]));
    TSR_TRY(tsr_plan_create(larger[0], larger[1], NULL, &plan));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    TSR_TRY(start(&f, &f.dst));
    CHECK_ERROR(tsr_plan_prepare(plan, comm), inside ? TSR_ERROR_STATE : TSR_ERROR_PEER, "not finished");
    TSR_TRY(tsr_plan_finish(f.plan, comm));
    if (inside)
        TSR_TRY(check_moved(&f));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(larger[0]);
    tsr_layout_destroy(larger[1]);
    fixture_destroy(&f);
    return TSR_OK;
}

static void a_group_in_which_something_is_pending_is_not_made_anew(void **state)
{
    (void)state;
    run_in_both_modes(RANKS + 1, prepare_between, "prepare between the halves");
}

typedef struct oddity {
    tsr_mode mode;
    int rank;
} oddity;

/* In direct mode ranks meet in finish, which tells them of the fault; with messages they meet in
 * start. */
static tsr_status bring_a_bad_tensor(tsr_comm *comm, void *arg)
{
    const oddity *o = arg;
    fixture f;
    char name[16];
    snprintf(name, sizeof name, "rank %d", o->rank);
    TSR_TRY(fixture_make(&f, comm, "3", o->mode));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    tsr_tensor bad = f.dst;
    bad.dtype = TSR_F32;
    const bool odd = tsr_comm_rank(comm) == o->rank;
    const tsr_status wanted = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    const char *part = odd ? "f32" : name;
    if (o->mode == TSR_MODE_DIRECT) {
        TSR_TRY(start(&f, odd ? &bad : &f.dst));
        CHECK_ERROR(tsr_plan_finish(f.plan, comm), wanted, part);
    } else {
        CHECK_ERROR(start(&f, odd ? &bad : &f.dst), wanted, part);
        CHECK_ERROR(tsr_plan_finish(f.plan, comm), TSR_ERROR_STATE, "not started");
    }
    for (int i = 0; i < MOST; i++)
        CHECK(f.want[i] == -1);
    TSR_TRY(start(&f, &f.dst));
    TSR_TRY(tsr_plan_finish(f.plan, comm));
    TSR_TRY(check_moved(&f));
    fixture_destroy(&f);
    return TSR_OK;
}

static void what_one_rank_brings_wrong_is_told_to_all_by_one_of_the_halves(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * RANKS; i++) {
        oddity o = {i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, i / 2};
        test_case("rank %d brings a bad tensor to start, mode %d", o.rank, (int)o.mode);
        run_ranks(RANKS, bring_a_bad_tensor, &o);
    }
}

/* Peers may still read the memory of a rank that has left, so it stays. */
typedef struct departure {
    oddity odd;
    fixture fixtures[RANKS];
} departure;

static tsr_status leave_between(tsr_comm *comm, void *arg)
{
    departure *d = arg;
    fixture *f = &d->fixtures[tsr_comm_rank(comm)];
    char name[16];
    snprintf(name, sizeof name, "rank %d", d->odd.rank);
    TSR_TRY(fixture_make(f, comm, "3", d->odd.mode));
    TSR_TRY(tsr_plan_prepare(f->plan, comm));
    TSR_TRY(start(f, &f->dst));
    if (tsr_comm_rank(comm) == d->odd.rank)
        return TSR_OK;
    CHECK_ERROR(tsr_plan_finish(f->plan, comm), TSR_ERROR_PEER, name);
    CHECK_ERROR(execute(f), TSR_ERROR_PEER, NULL);
    return TSR_OK;
}

static void a_rank_that_leaves_between_the_halves_is_named(void **state)
{
    (void)state;
    static departure d;
    for (int i = 0; i < 2 * RANKS; i++) {
        d.odd = (oddity){i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, i / 2};
        test_case("rank %d leaves after start, mode %d", d.odd.rank, (int)d.odd.mode);
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        assert_int_equal(tsr_context_create(NULL, &options.context), TSR_OK);
        const tsr_status status = tsr_threads_run(RANKS, leave_between, &d, &options);
        if (status != TSR_OK)
            fail_msg("%s: %s", tsr_status_message(), test_case_text());
        for (int r = 0; r < RANKS; r++)
            fixture_destroy(&d.fixtures[r]);
        tsr_context_destroy(options.context);
    }
}

/*
 * What peers read of a rank beside its tensors is the library's, and is there as long as they may
 * read it. The first memory that goes when the rank leaves sends them on their way, and is nobody's
 * from then on.
 */
typedef struct parting {
    tsr_mode mode;
    int64_t ranks_per_node;
    const char *to;
    bool late; /* it leaves when the others wait for it */
    sem_t go;
    atomic_bool leaving;
    pair pairs[PARTY];
} parting;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    parting *p = user;
    if (atomic_exchange(&p->leaving, false)) {
        memset(memory, 0xee, bytes);
        for (int i = 0; i < PARTY - 1; i++)
            sem_post(&p->go);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    free(memory);
}

static tsr_status pair_make(pair *f, tsr_comm *comm, const parting *p)
{
    tsr_layout *from, *to;
    TSR_TRY(layout_over(comm, "4", "48x28", "S(0)", TSR_I32, &from));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(from), p->to, 2, tsr_layout_shape(from), TSR_I32, &to));
    const tsr_status status = pair_plan(f, from, to, p->mode, p->ranks_per_node);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    return status;
}

static tsr_status leave_for_good(tsr_comm *comm, void *arg)
{
    parting *p = arg;
    pair *f = &p->pairs[tsr_comm_rank(comm)];
    TSR_TRY(pair_make(f, comm, p));
    TSR_TRY(tsr_plan_prepare(f->plan, comm));
    TSR_TRY(tsr_plan_start(f->plan, comm, f->src, f->dst, f->workspace, f->bytes, NULL));
    TSR_TRY(tsr_plan_finish(f->plan, comm));
    TSR_TRY(tsr_plan_start(f->plan, comm, f->src, f->dst, f->workspace, f->bytes, NULL));
    if (tsr_comm_rank(comm) == 1) {
        if (p->late)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        atomic_store(&p->leaving, true);
        return TSR_OK;
    }
    if (!p->late)
        sem_wait(&p->go);
    CHECK_ERROR(tsr_plan_finish(f->plan, comm), TSR_ERROR_PEER, "rank 1");
    return TSR_OK;
}

static void part(tsr_mode mode, int64_t ranks_per_node, const char *to, bool late)
{
    static parting p;
    tsr_context_options memory = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    memset(&p, 0, sizeof p);
    p.mode = mode;
    p.ranks_per_node = ranks_per_node;
    p.to = to;
    p.late = late;
    sem_init(&p.go, 0, 0);
    memory.allocator = (tsr_allocator){allocate, release, &p};
    assert_int_equal(tsr_context_create(&memory, &options.context), TSR_OK);
    test_case("rank 1 leaves a batch from S(0) to %s %s, mode %d, %d ranks a node", to,
              late ? "while others wait" : "before others go on", (int)mode, (int)ranks_per_node);
    const tsr_status status = tsr_threads_run(PARTY, leave_for_good, &p, &options);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_message(), test_case_text());
    for (int r = 0; r < PARTY; r++)
        pair_destroy(&p.pairs[r]);
    tsr_context_destroy(options.context);
    sem_destroy(&p.go);
}

static void what_peers_read_stays_until_they_have_done_so(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++)
        for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
            part(mode, 0, "S(1)", late);
            part(mode, 2, "R", late);
        }
}

/* All but the last rank have started, and written what start is not to touch, before the last one
 * begins. */
static tsr_status start_alone(tsr_comm *comm, void *arg)
{
    sem_t *started = arg;
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "3", TSR_MODE_DIRECT));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    const bool last = tsr_comm_rank(comm) == RANKS - 1;
    for (int i = 0; last && i < RANKS - 1; i++)
        sem_wait(started);
    TSR_TRY(start(&f, &f.dst));
    if (!last) {
        for (int i = 0; i < MOST; i++)
            CHECK(f.want[i] == -1);
        sem_post(started);
    }
    TSR_TRY(tsr_plan_finish(f.plan, comm));
    TSR_TRY(check_moved(&f));
    fixture_destroy(&f);
    return TSR_OK;
}

static void start_waits_for_nobody_in_direct_mode(void **state)
{
    (void)state;
    sem_t started;
    sem_init(&started, 0, 0);
    test_case("the last rank starts when the others have");
    run_ranks(RANKS, start_alone, &started);
    sem_destroy(&started);
}

/* The first half copies the descriptors of tensors. */
static tsr_status forget_descriptors(tsr_comm *comm, void *arg)
{
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "3", *(const tsr_mode *)arg));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    tsr_tensor src = f.src, dst = f.dst;
    TSR_TRY(tsr_plan_start(f.plan, comm, &src, &dst, f.workspace, f.bytes, NULL));
    memset(&src, 0xff, sizeof src);
    memset(&dst, 0xff, sizeof dst);
    TSR_TRY(tsr_plan_finish(f.plan, comm));
    TSR_TRY(check_moved(&f));
    fixture_destroy(&f);
    return TSR_OK;
}

static void descriptors_need_not_outlive_start(void **state)
{
    (void)state;
    run_in_both_modes(RANKS, forget_descriptors, "descriptors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_the_halves_other_calls_are_refused_and_do_no_harm),
        cmocka_unit_test(a_group_in_which_something_is_pending_is_not_made_anew),
        cmocka_unit_test(what_one_rank_brings_wrong_is_told_to_all_by_one_of_the_halves),
        cmocka_unit_test(a_rank_that_leaves_between_the_halves_is_named),
        cmocka_unit_test(what_peers_read_stays_until_they_have_done_so),
        cmocka_unit_test(start_waits_for_nobody_in_direct_mode),
        cmocka_unit_test(descriptors_need_not_outlive_start),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
