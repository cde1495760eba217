#include "bench/loop.h"

#include <time.h>

/* Upper bound of the runs of a loop. */
#define MOST_RUNS 1000000

double tsr_bench_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Calls `body` several times, if there is one and nothing has failed yet. */
static void run_body(const tsr_bench_rank *r, tsr_bench_body *body, void *arg, int64_t runs, tsr_bench_outcome *o)
{
    tsr_status status = TSR_OK;
    if (!body || o->status != TSR_OK)
        return;
    tsr_status_forget();
    for (int64_t i = 0; i < runs && status == TSR_OK; i++)
        status = body(r->comm, arg);
    tsr_bench_outcome_add(o, status);
}

/* Lets a subject measure by itself, if nothing has failed yet. */
static void run_measure(const tsr_bench_rank *r, const tsr_bench_subject *s, double *seconds, tsr_bench_outcome *o)
{
    if (!s->measure || o->status != TSR_OK)
        return;
    tsr_status_forget();
    tsr_bench_outcome_add(o, s->measure(r->comm, s->arg, seconds));
}

/* Prepares, makes a run that is not timed if `warms`, and times the loop. A rank that fails still
 * comes to both barriers, where its peers may be. */
static tsr_status time_loop(const tsr_bench_rank *r, const tsr_bench_loop *loop, bool warms, tsr_bench_seconds *out)
{
    tsr_bench_outcome o = {.status = TSR_OK};
    const tsr_bench_subject *const s = loop->subject;
    double own = 0;
    run_body(r, s->prepare, s->arg, 1, &o);
    run_body(r, s->call, s->arg, warms, &o);
    tsr_bench_outcome_add(&o, tsr_bench_rank_wait(r));
    tsr_bench_outcome_add(&o, tsr_comm_barrier(r->comm));
    const double start = tsr_bench_clock();
    run_body(r, s->call, s->arg, loop->runs, &o);
    run_measure(r, s, &own, &o);
    const double enqueued = tsr_bench_clock();
    tsr_bench_outcome_add(&o, tsr_bench_rank_wait(r));
    tsr_bench_outcome_add(&o, tsr_comm_barrier(r->comm));
    *out = (tsr_bench_seconds){tsr_bench_clock() - start, enqueued - start};
    if (s->measure)
        *out = (tsr_bench_seconds){own, 0};
    return tsr_bench_agree(r->comm, &o);
}

/* Times the loop, and sets its runs to about `seconds`, by the time of rank 0. */
static tsr_status fill_loop(const tsr_bench_rank *r, tsr_bench_loop *loop, double seconds)
{
    tsr_bench_seconds taken;
    TSR_TRY(time_loop(r, loop, false, &taken));
    const double runs = seconds / (taken.whole / (double)loop->runs);
    loop->runs = !(runs > 1) ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int64_t)runs;
    return tsr_comm_broadcast(r->comm, &loop->runs, 1, TSR_I64, 0, tsr_device_host(), NULL);
}

/* Fills the loop twice, since the first call takes longer: it touches memory, or plans. */
tsr_status tsr_bench_loop_settle(const tsr_bench_rank *r, tsr_bench_loop *loop)
{
    const tsr_bench_options *const o = &r->options;
    loop->runs = 1;
    if (loop->subject->measure)
        return TSR_OK;
    TSR_TRY(fill_loop(r, loop, o->loop_seconds));
    if (o->warm_seconds > 0) {
        TSR_TRY(fill_loop(r, loop, o->warm_seconds));
        TSR_TRY(fill_loop(r, loop, o->loop_seconds));
    } else if (o->calls == 0)
        TSR_TRY(fill_loop(r, loop, o->loop_seconds));
    loop->runs = o->calls > 0 ? o->calls : loop->runs;
    return TSR_OK;
}

tsr_status tsr_bench_loop_time(const tsr_bench_rank *r, const tsr_bench_loop *loop, tsr_bench_seconds *out)
{
    TSR_TRY(time_loop(r, loop, loop->runs > 1, out));
    out->whole /= (double)loop->runs;
    out->enqueue /= (double)loop->runs;
    return TSR_OK;
}
