#include "sweep.h"
#include "buffer.h"
#include "message_engine.h"
#include "support.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/comm.h>
#include <tessera/dtensor.h>
#include <tessera/sys/status.h>

enum { FAILURES_TO_SHOW = 5 };

/** What a rank found out about one case. */
typedef struct verdict {
    bool failed;
    char text[1400];
    int64_t received, sent;
    int in_place;
} verdict;

/** What the ranks of one tsr_threads_run() share. Rank 0 writes between barriers; a rank writes its own verdict. */
typedef struct stage {
    move_sweep *sweep;
    int64_t next;
    bool more, stop;
    sweep_case current;
    oracle_move move;
    pthread_barrier_t barrier;
    verdict verdicts[ORACLE_MAX_RANKS];
} stage;

/** One rank's objects, kept while cases have the same meshes. */
typedef struct actor {
    stage *stage;
    tsr_comm *comm;
    int rank;
    verdict *verdict;
    tsr_mesh *src_mesh, *dst_mesh;
    oracle_mesh src_model, dst_model;
    tsr_layout *src_layout, *dst_layout;
    local_buffer src, dst;
    unsigned char *given, *wanted; /**< source and destination elements, contiguous */
} actor;

/* Allocations of this thread: execution must not make any. */
static _Thread_local int64_t allocations;

static void *count_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    allocations++;
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) == 0 ? memory : NULL;
}

static void count_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void complain(actor *a, const char *what, const char *detail)
{
    if (a->verdict->failed)
        return;
    a->verdict->failed = true;
    snprintf(a->verdict->text, sizeof(a->verdict->text), "rank %d: %s: %s", a->rank, what, detail);
}

static bool check(actor *a, tsr_status status, const char *what)
{
    if (status != TSR_OK)
        complain(a, what, tsr_status_message());
    return status == TSR_OK;
}

static void name_case(const sweep_case *c)
{
    char mesh[300], other[300], shape[100], from[400], to[400];
    oracle_print_mesh(&c->src.mesh, mesh, sizeof(mesh));
    oracle_print_mesh(&c->dst.mesh, other, sizeof(other));
    test_case("tessera redistribute --mesh %s%s%s --shape %s --dtype %s --from \"%s\" --to \"%s\" --mode %s (%s%s, seed %llu)", mesh,
              strcmp(mesh, other) != 0 ? " --to-mesh " : "", strcmp(mesh, other) != 0 ? other : "",
              oracle_print_shape(c->src.ndim, c->src.shape, shape, sizeof(shape)), oracle_dtype_name(c->src.dtype),
              oracle_print_placements(c->src.placements, c->src.mesh.ndim, from, sizeof(from)),
              oracle_print_placements(c->dst.placements, c->dst.mesh.ndim, to, sizeof(to)),
              c->mode == TSR_MODE_DIRECT ? "direct" : "message", c->way == WAY_DTENSORS ? "tsr_redistribute_into" : "tsr_plan_execute",
              c->strided ? ", strided" : "", (unsigned long long)c->seed);
}

static bool same_mesh(const oracle_mesh *a, const oracle_mesh *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])) == 0 &&
           memcmp(a->ranks, b->ranks, (size_t)oracle_mesh_count(a) * sizeof(a->ranks[0])) == 0;
}

/** The mesh of the case before if it is the same one: then the mesh's cache of plans fills up and evicts. */
static bool take_mesh(actor *a, const oracle_mesh *wanted, oracle_mesh *model, tsr_mesh **mesh)
{
    if (*mesh != NULL && same_mesh(wanted, model))
        return true;
    tsr_mesh_destroy(*mesh);
    *mesh = NULL;
    *model = *wanted;
    return check(a, tsr_mesh_create(a->comm, wanted->ndim, wanted->shape, NULL, wanted->ranks, mesh), "tsr_mesh_create");
}

static bool make_layouts(actor *a)
{
    const sweep_case *c = &a->stage->current;
    if (!take_mesh(a, &c->src.mesh, &a->src_model, &a->src_mesh))
        return false;
    tsr_mesh *dst_mesh = a->src_mesh;
    if (!same_mesh(&c->src.mesh, &c->dst.mesh)) {
        if (!take_mesh(a, &c->dst.mesh, &a->dst_model, &a->dst_mesh))
            return false;
        dst_mesh = a->dst_mesh;
    }
    return check(a, tsr_layout_create(a->src_mesh, c->src.placements, c->src.ndim, c->src.shape, c->src.dtype, &a->src_layout),
                 "tsr_layout_create") &&
           check(a, tsr_layout_create(dst_mesh, c->dst.placements, c->dst.ndim, c->dst.shape, c->dst.dtype, &a->dst_layout),
                 "tsr_layout_create");
}

static void make_buffers(actor *a)
{
    const sweep_case *c = &a->stage->current;
    oracle_random random = {.state = c->seed * 977 + (uint64_t)a->rank};
    oracle_shard src, dst;
    oracle_shard_create(&c->src, a->rank, &src);
    oracle_shard_create(&c->dst, a->rank, &dst);
    buffer_create(&a->src, c->src.dtype, src.ndim, src.shape, c->strided ? &random : NULL);
    buffer_create(&a->dst, c->dst.dtype, dst.ndim, dst.shape, c->strided ? &random : NULL);
    a->given = calloc((size_t)src.count + 1, oracle_bytes(c->src.dtype));
    a->wanted = calloc((size_t)dst.count + 1, oracle_bytes(c->dst.dtype));
    oracle_shard_destroy(&src);
    oracle_shard_destroy(&dst);
}

/** New values in the source, and what the destination must become. */
static void set_values(actor *a, uint64_t seed)
{
    oracle_fill(&a->stage->move, seed, false, a->rank, a->given);
    oracle_fill(&a->stage->move, seed, true, a->rank, a->wanted);
    if (oracle_mesh_position(&a->stage->current.src.mesh, a->rank) >= 0)
        buffer_put(&a->src, a->given);
}

static void compare(actor *a, const local_buffer *dst, const char *what)
{
    char text[256];
    if (oracle_mesh_position(&a->stage->current.dst.mesh, a->rank) >= 0 && !buffer_holds(dst, a->wanted, text, sizeof(text)))
        complain(a, what, text);
}

static void compare_source(actor *a)
{
    char text[256];
    if (oracle_mesh_position(&a->stage->current.src.mesh, a->rank) >= 0 && !buffer_holds(&a->src, a->given, text, sizeof(text)))
        complain(a, "the source changed", text);
}

enum { WORKSPACE_GUARD = 64 };

static void execute(actor *a, const tsr_plan *plan, const local_buffer *dst, const char *what)
{
    const sweep_case *c = &a->stage->current;
    const bool in_src = oracle_mesh_position(&c->src.mesh, a->rank) >= 0, in_dst = oracle_mesh_position(&c->dst.mesh, a->rank) >= 0;
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    unsigned char *workspace = NULL;
    if (bytes > 0 && posix_memalign((void **)&workspace, 64, bytes + WORKSPACE_GUARD) != 0)
        return;
    if (workspace != NULL)
        memset(workspace, 0x3C, bytes + WORKSPACE_GUARD);
    const int64_t before = allocations;
    check(a, tsr_plan_execute(plan, a->comm, in_src ? &a->src.view : NULL, in_dst ? &dst->view : NULL, workspace, bytes, NULL), what);
    if (allocations != before)
        complain(a, what, "it allocated");
    for (size_t i = 0; workspace != NULL && i < WORKSPACE_GUARD; i++)
        if (workspace[bytes + i] != 0x3C)
            complain(a, what, "bytes behind the workspace were written");
    free(workspace);
    compare(a, dst, what);
}

static void run_plan(actor *a)
{
    const sweep_case *c = &a->stage->current;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = c->mode;
    options.ranks_per_node = c->ranks_per_node;
    options.objective = c->objective;
    options.profile = c->profile;
    tsr_plan *plan = NULL;
    if (!check(a, tsr_plan_create(a->src_layout, a->dst_layout, &options, &plan), "tsr_plan_create") ||
        !check(a, tsr_plan_prepare(plan, a->comm), "tsr_plan_prepare"))
        goto destroy;
    a->verdict->received = tsr_plan_bytes_received(plan);
    a->verdict->sent = tsr_plan_bytes_sent(plan);
    a->verdict->in_place = tsr_plan_in_place(plan);
    set_values(a, c->seed);
    execute(a, plan, &a->dst, "tsr_plan_execute");
    compare_source(a);
    set_values(a, c->seed + 1);
    execute(a, plan, &a->dst, "the second tsr_plan_execute");
    if (oracle_in_place(&a->stage->move) && a->verdict->in_place)
        execute(a, plan, &a->src, "tsr_plan_execute in place");
destroy:
    tsr_plan_destroy(plan);
}

static void run_dtensors(actor *a)
{
    const sweep_case *c = &a->stage->current;
    tsr_dtensor *x = NULL, *y = NULL;
    const bool inside = oracle_mesh_position(&c->src.mesh, a->rank) >= 0;
    const tsr_tensor nothing = {.dtype = c->src.dtype, .ndim = 1};
    if (!check(a, tsr_dtensor_from_local(inside ? &a->src.view : &nothing, a->src_layout, NULL, &x), "tsr_dtensor_from_local") ||
        !check(a, tsr_dtensor_from_local(inside ? &a->dst.view : &nothing, a->dst_layout, NULL, &y), "tsr_dtensor_from_local"))
        goto destroy;
    set_values(a, c->seed);
    if (check(a, tsr_redistribute_into(x, y, NULL), "tsr_redistribute_into"))
        compare(a, &a->dst, "tsr_redistribute_into");
    compare_source(a);
    set_values(a, c->seed + 1);
    const int64_t before = allocations;
    if (check(a, tsr_redistribute_into(x, y, NULL), "the second tsr_redistribute_into"))
        compare(a, &a->dst, "the second tsr_redistribute_into");
    if (allocations != before)
        complain(a, "the second tsr_redistribute_into", "it allocated");
destroy:
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
}

static void run_case(actor *a)
{
    *a->verdict = (verdict){.failed = false};
    if (make_layouts(a)) {
        make_buffers(a);
        if (a->stage->current.way == WAY_DTENSORS)
            run_dtensors(a);
        else
            run_plan(a);
        buffer_destroy(&a->src);
        buffer_destroy(&a->dst);
        free(a->given);
        free(a->wanted);
    }
    tsr_layout_destroy(a->src_layout);
    tsr_layout_destroy(a->dst_layout);
    a->src_layout = a->dst_layout = NULL;
}

/** The figures of all ranks against the oracle's; returns NULL or what is wrong. */
static const char *wrong_figures(stage *s, char *text, size_t capacity)
{
    int64_t total, received = 0, sent = 0, per_rank[ORACLE_MAX_RANKS], senders[ORACLE_MAX_RANKS];
    const bool exact = oracle_lower_bound(&s->move, s->sweep->world, &total, per_rank);
    const bool told = oracle_sent(&s->move, s->sweep->world, senders) && s->current.ranks_per_node == 0;
    const bool least = s->current.objective == TSR_OBJECTIVE_BYTES;
    for (int r = 0; r < s->sweep->world; r++) {
        const verdict *v = &s->verdicts[r];
        received += v->received;
        sent += v->sent;
        snprintf(text, capacity, "rank %d: %lld bytes received, the bound is %lld", r, (long long)v->received, (long long)per_rank[r]);
        if (exact && v->received != per_rank[r])
            return text;
        snprintf(text, capacity, "rank %d: %lld bytes sent, by the rule for senders it is %lld", r, (long long)v->sent,
                 (long long)senders[r]);
        if (told && v->sent != senders[r])
            return text;
        snprintf(text, capacity, "rank %d: tsr_plan_in_place() is %d", r, v->in_place);
        if (v->in_place != oracle_in_place(&s->move))
            return text;
    }
    snprintf(text, capacity, "%lld bytes received in all, %lld sent, the bound is %lld", (long long)received, (long long)sent,
             (long long)total);
    return received == sent && received >= total && (received == total || !least) ? NULL : text;
}

static void judge(stage *s)
{
    char text[256];
    const char *wrong = NULL;
    for (int r = s->sweep->world - 1; r >= 0; r--)
        wrong = s->verdicts[r].failed ? s->verdicts[r].text : wrong;
    if (wrong == NULL && s->current.way == WAY_PLAN)
        wrong = wrong_figures(s, text, sizeof(text));
    s->sweep->ran++;
    if (wrong == NULL)
        return;
    fprintf(stderr, "%s\n   %s\n", test_case_text(), wrong);
    s->stop = true;
}

static void set_next(stage *s)
{
    s->more = false;
    while (!s->stop && !s->more && s->next < s->sweep->count) {
        if (s->sweep->deadline > 0 && test_now() > s->sweep->deadline)
            return;
        memset(&s->current, 0, sizeof(s->current));
        s->more = s->sweep->make(s->sweep->arg, s->next++, &s->current);
    }
    if (!s->more)
        return;
    if (s->sweep->messages)
        s->current.mode = TSR_MODE_MESSAGE;
    name_case(&s->current);
    oracle_move_make(&s->current.src, &s->current.dst, &s->move);
}

static void play(actor *a)
{
    stage *s = a->stage;
    for (;;) {
        if (a->rank == 0)
            set_next(s);
        pthread_barrier_wait(&s->barrier);
        if (!s->more)
            break;
        run_case(a);
        pthread_barrier_wait(&s->barrier);
        if (a->rank == 0)
            judge(s);
    }
    tsr_mesh_destroy(a->src_mesh);
    tsr_mesh_destroy(a->dst_mesh);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    actor a = {.stage = s, .comm = comm, .rank = tsr_comm_rank(comm)};
    a.verdict = &s->verdicts[a.rank];
    if (s->sweep->messages)
        TSR_TRY(message_engine_create(comm, NULL, &a.comm));
    play(&a);
    if (s->sweep->messages)
        tsr_comm_destroy(a.comm);
    return TSR_OK;
}

/** One set of rank threads; a failed case ends it, because it may have broken the communicator. */
static bool run_once(stage *s)
{
    tsr_context_options context_options = TSR_CONTEXT_OPTIONS_INIT;
    context_options.allocator = (tsr_allocator){count_allocate, count_release, NULL};
    tsr_context *context = NULL;
    s->stop = false;
    pthread_barrier_init(&s->barrier, NULL, (unsigned)s->sweep->world);
    tsr_status status = tsr_context_create(&context_options, &context);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    if (status == TSR_OK)
        status = tsr_threads_run(s->sweep->world, run_rank, s, &options);
    if (status != TSR_OK) {
        fprintf(stderr, "tsr_threads_run: %s\n", tsr_status_message());
        s->stop = true;
    }
    tsr_context_destroy(context);
    pthread_barrier_destroy(&s->barrier);
    return !s->stop;
}

int sweep_run(move_sweep *sweep)
{
    stage *s = calloc(1, sizeof(*s));
    s->sweep = sweep;
    s->next = sweep->first;
    int failures = 0;
    while (failures < FAILURES_TO_SHOW && !run_once(s))
        failures++;
    free(s);
    return failures;
}
