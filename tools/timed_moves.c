#include "timed_moves.h"

#include "local.h"

#include <stdlib.h>
#include <tessera/sys/status.h>

#define LOOPS 5
/** About how long a loop takes. */
#define LOOP_SECONDS 0.02
/** Before the first: a BLAS that was just loaded lets its idle threads spin for less than that. */
#define WARM_SECONDS 0.3

int timed_move_create(int ranks, const move_request *request, timed_move *out)
{
    *out = (timed_move){.request = *request};
    return samples_create(ranks, LOOPS, &out->loops);
}

void timed_move_finish(timed_move *t)
{
    free(t->loops.seconds);
}

/** What the ranks share; each writes its own rows only. */
typedef struct job {
    place *place;
    timed_move *moves;
    size_t count;
} job;

/** One rank's side of one move. */
typedef struct side {
    move move;
    local source, destination;
} side;

static tsr_status execute(void *arg)
{
    const side *const s = arg;
    return move_execute(&s->move, &s->source.tensor, &s->destination.tensor);
}

static tsr_status time_move(tsr_comm *comm, side *s, timed_move *t, double warm_seconds)
{
    const place *const where = s->move.place;
    const int rank = tsr_comm_rank(comm);
    const bench_settings settings = {.loop_seconds = LOOP_SECONDS, .warm_seconds = warm_seconds};
    bench_loop loop = {execute, s, 1};
    TSR_TRY(bench_loop_settle(where, comm, &settings, &loop));
    for (int64_t i = 0; i < LOOPS; i++) {
        bench_seconds seconds;
        TSR_TRY(bench_loop_time(where, comm, &loop, &seconds));
        t->loops.seconds[rank * LOOPS + i] = seconds.whole;
    }
    if (rank == 0)
        t->bytes = tsr_plan_bytes_received(s->move.plan);
    return samples_share(&t->loops, where, comm);
}

static tsr_status with_tensors(tsr_comm *comm, side *s, timed_move *t, double warm_seconds)
{
    tsr_status status = local_create(s->move.place, comm, s->move.from, &s->source);
    if (status == TSR_OK)
        status = local_create(s->move.place, comm, s->move.to, &s->destination);
    if (status == TSR_OK)
        status = local_clear(&s->source);
    if (status == TSR_OK)
        status = time_move(comm, s, t, warm_seconds);
    local_free(&s->destination);
    local_free(&s->source);
    return status;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < j->count && status == TSR_OK; i++) {
        side s = {.source = {.place = NULL}};
        status = move_create(j->place, comm, &j->moves[i].request, &s.move);
        if (status != TSR_OK)
            break;
        status = with_tensors(comm, &s, &j->moves[i], i == 0 ? WARM_SECONDS : 0);
        move_finish(&s.move);
    }
    return status;
}

int time_moves(place *p, int ranks, timed_move *moves, size_t count)
{
    job j = {p, moves, count};
    return place_run(p, ranks, run_rank, &j) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}
