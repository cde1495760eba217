#include "session.h"

#include "buffers.h"
#include "ranks.h"

#include <tessera/saved.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One rank of a flight: a task, with all that it touches. */
typedef struct rank_task {
    pool_task task; /* the first member: the pool gives it back */
    struct flight *flight;
    tsr_comm *comm;
    tsr_stream stream;
    buffers *moves; /* one for each move */
    int rank;
    fault fault;
    tsr_status status;
    char sentence[512];
} rank_task;

/* One execution that may be under way, with a communicator of its own: a handle has one call at a
 * time. */
typedef struct flight {
    session *session;
    rank_task *ranks;
    int running; /* ranks that the pool has not run yet */
} flight;

struct session {
    host host;
    const plans *file;
    tsr_plan **plans; /* of rank r and move m, at r * moves + m; all flights share them */
    flight *flights;
    atomic_size_t meetings;
    pthread_mutex_t lock; /* for `running` */
    pthread_cond_t changed;
};

static tsr_plan *plan_of(const session *s, int rank, int m)
{
    return s->plans[rank * s->file->count + m];
}

static void keep(rank_task *r, tsr_status status)
{
    r->status = status;
    snprintf(r->sentence, sizeof r->sentence, "%s", status == TSR_OK ? "" : tsr_status_message());
}

static void end_rank(rank_task *r, tsr_status status)
{
    session *const s = r->flight->session;
    keep(r, status);
    pthread_mutex_lock(&s->lock);
    if (--r->flight->running == 0)
        pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Gives all ranks of a flight to the pool, as one list. */
static void begin(flight *f, void (*run)(pool_task *task))
{
    const int ranks = f->session->file->ranks;
    f->running = ranks;
    for (int r = 0; r < ranks; r++)
        f->ranks[r].task = (pool_task){r + 1 < ranks ? &f->ranks[r + 1].task : NULL, run};
    pool_begin(f->session->host.pool, &f->ranks[0].task);
}

/* Once, in session_open(): collective, so it is a task of every rank, as executions are. */
static void prepare(pool_task *task)
{
    rank_task *const r = (rank_task *)task;
    session *const s = r->flight->session;
    tsr_status status = TSR_OK;
    for (int m = 0; m < s->file->count && status == TSR_OK; m++)
        status = tsr_plan_prepare(plan_of(s, r->rank, m), r->comm);
    end_rank(r, status);
}

/* The path that is hot: it allocates nothing, and on a device with streams only enqueues. */
static tsr_status execute_moves(rank_task *r)
{
    session *const s = r->flight->session;
    for (int m = 0; m < s->file->count; m++) {
        const buffers *const b = &r->moves[m];
        const tsr_tensor *const src = r->fault == FAULT_TENSOR ? &b->dst : &b->src;
        TSR_TRY(tsr_plan_execute(plan_of(s, r->rank, m), r->comm, src, &b->dst, b->workspace, b->workspace_bytes,
                                 r->stream));
    }
    return TSR_OK;
}

static void execute(pool_task *task)
{
    rank_task *const r = (rank_task *)task;
    if (r->fault == FAULT_ABORT)
        tsr_comm_abort(r->comm);
    end_rank(r, r->fault == FAULT_ABORT ? tsr_status_set(TSR_ERROR_DEVICE, "the host has lost this rank's device")
                                        : execute_moves(r));
}

void session_start(session *s, int flight_index, fault f, int rank)
{
    flight *const started = &s->flights[flight_index];
    for (int r = 0; r < s->file->ranks; r++)
        started->ranks[r].fault = r == rank ? f : FAULT_NONE;
    begin(started, execute);
}

static void wait_for_ranks(flight *f)
{
    session *const s = f->session;
    pthread_mutex_lock(&s->lock);
    while (f->running > 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static tsr_status conclude(const flight *f)
{
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < f->session->file->ranks; r++) {
            const rank_task *const task = &f->ranks[r];
            if (task->status != TSR_OK && (pass == 1 || task->status != TSR_ERROR_PEER))
                return tsr_status_set(task->status, "rank %d: %s", r, task->sentence);
        }
    return TSR_OK;
}

tsr_status session_wait(session *s, int flight_index)
{
    flight *const f = &s->flights[flight_index];
    wait_for_ranks(f);
    for (int r = 0; r < s->file->ranks; r++) {
        rank_task *const task = &f->ranks[r];
        const tsr_status settled = buffers_settle(s->host.device, r, task->stream);
        if (settled != TSR_OK && task->status == TSR_OK)
            keep(task, settled);
    }
    return conclude(f);
}

tsr_status session_status(const session *s, int flight_index, int rank, const char **sentence)
{
    const rank_task *const r = &s->flights[flight_index].ranks[rank];
    *sentence = r->sentence;
    return r->status;
}

tsr_status session_check(session *s, int flight_index)
{
    for (int r = 0; r < s->file->ranks; r++)
        for (int m = 0; m < s->file->count; m++) {
            const rank_task *const task = &s->flights[flight_index].ranks[r];
            TSR_TRY(buffers_check(&task->moves[m], plan_of(s, r, m), s->file->moves[m].name, r, task->stream));
        }
    return TSR_OK;
}

size_t session_meetings(const session *s)
{
    return atomic_load(&s->meetings);
}

/* Zeroed memory of the host's. */
static tsr_status take(const session *s, size_t count, size_t bytes, void *out)
{
    void *made;
    TSR_TRY(tsr_allocate(s->host.context, count * bytes, &made));
    memset(made, 0, count * bytes);
    memcpy(out, &made, sizeof made);
    return TSR_OK;
}

static tsr_status load_plans(session *s)
{
    const plans *const file = s->file;
    TSR_TRY(take(s, (size_t)file->ranks * (size_t)file->count, sizeof *s->plans, &s->plans));
    for (int r = 0; r < file->ranks; r++)
        for (int m = 0; m < file->count; m++)
            TSR_TRY(tsr_plan_load(s->host.context, file->moves[m].plan, file->moves[m].size, r,
                                  &s->plans[r * file->count + m]));
    return TSR_OK;
}

static tsr_status open_rank(flight *f, int rank)
{
    session *const s = f->session;
    rank_task *const r = &f->ranks[rank];
    r->rank = rank;
    r->flight = f;
    TSR_TRY(take(s, (size_t)s->file->count, sizeof *r->moves, &r->moves));
    TSR_TRY(buffers_stream(s->host.device, rank, &r->stream));
    for (int m = 0; m < s->file->count; m++)
        TSR_TRY(buffers_open(s->host.context, s->host.device, plan_of(s, rank, m), rank, r->stream, &r->moves[m]));
    return TSR_OK;
}

static tsr_status open_flight(session *s, flight *f)
{
    const int ranks = s->file->ranks;
    tsr_comm **handles;
    f->session = s;
    TSR_TRY(take(s, (size_t)ranks, sizeof *f->ranks, &f->ranks));
    for (int r = 0; r < ranks; r++)
        TSR_TRY(open_rank(f, r));
    TSR_TRY(take(s, (size_t)ranks, sizeof *handles, &handles));
    const tsr_status status = ranks_create(s->host.context, ranks, s->host.timeout_ms, &s->meetings, handles);
    for (int r = 0; r < ranks; r++)
        f->ranks[r].comm = handles[r];
    tsr_release(s->host.context, handles);
    TSR_TRY(status);
    begin(f, prepare);
    wait_for_ranks(f);
    return conclude(f);
}

static tsr_status open_all(session *s)
{
    if (pool_threads(s->host.pool) < s->file->ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the plans have %d ranks, which wait for each other, but the pool has %d threads",
                              s->file->ranks, pool_threads(s->host.pool));
    TSR_TRY(load_plans(s));
    TSR_TRY(take(s, (size_t)s->host.flights, sizeof *s->flights, &s->flights));
    for (int f = 0; f < s->host.flights; f++)
        TSR_TRY(open_flight(s, &s->flights[f]));
    return TSR_OK;
}

tsr_status session_open(const host *h, const plans *file, session **out)
{
    void *made;
    TSR_TRY(tsr_allocate(h->context, sizeof(session), &made));
    session *const s = made;
    memset(made, 0, sizeof *s);
    s->host = *h;
    s->file = file;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    const tsr_status status = open_all(s);
    if (status == TSR_OK)
        *out = s;
    else
        session_close(s);
    return status;
}

static void close_flight(const session *s, const flight *f)
{
    for (int r = 0; f->ranks && r < s->file->ranks; r++) {
        rank_task *const rank = &f->ranks[r];
        tsr_comm_destroy(rank->comm);
        for (int m = 0; rank->moves && m < s->file->count; m++)
            buffers_close(s->host.context, &rank->moves[m]);
        buffers_end_stream(s->host.device, r, rank->stream);
        tsr_release(s->host.context, rank->moves);
    }
    tsr_release(s->host.context, f->ranks);
}

void session_close(session *s)
{
    tsr_context *const context = s->host.context;
    for (int f = 0; s->flights && f < s->host.flights; f++)
        close_flight(s, &s->flights[f]);
    for (int p = 0; s->plans && p < s->file->ranks * s->file->count; p++)
        tsr_plan_destroy(s->plans[p]);
    tsr_release(context, s->flights);
    tsr_release(context, s->plans);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    tsr_release(context, s);
}
