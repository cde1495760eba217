#include "bench/moves/timed_moves.h"

#include "bench/moves/move_data.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

const bench_settings usual_timing = {.iterations = 5, .loop_seconds = 0.02, .warm_seconds = 0.3, .checks = true};

int timed_move_create(int ranks, const move_request *request, timed_move *out)
{
    *out = (timed_move){.request = *request, .ranks = ranks, .rows = calloc((size_t)ranks, sizeof *out->rows)};
    if (!out->rows)
        return complain(EXIT_REFUSED, "there is no memory for the figures of %d ranks", ranks);
    return EXIT_DONE;
}

void timed_move_finish(timed_move *t)
{
    free(t->rows);
}

int timed_moves_judge(int64_t wrong)
{
    return wrong == 0 ? EXIT_DONE
                      : complain(EXIT_REFUSED, "%lld elements are not what the moves must give", (long long)wrong);
}

int64_t timed_move_received(const timed_move *t)
{
    int64_t most = 0;
    for (int r = 0; r < t->ranks; r++)
        most = t->rows[r].received > most ? t->rows[r].received : most;
    return most;
}

int64_t timed_move_crossed(const timed_move *t)
{
    int64_t most = 0;
    for (int r = 0; r < t->ranks; r++) {
        int64_t into = 0;
        for (int peer = 0; peer < t->ranks; peer++)
            into += t->rows[peer].node == t->rows[r].node ? t->rows[peer].crossed : 0;
        most = into > most ? into : most;
    }
    return most;
}

/* What the ranks share; each rank writes only its own rows of each move. */
typedef struct job {
    place *place;
    const bench_settings *settings;
    timed_move *const *moves;
    size_t count;
} job;

/* One rank's side of one move. */
typedef struct side {
    move move;
    move_data data;
} side;

static tsr_status execute(tsr_comm *comm, void *arg)
{
    const side *const s = arg;
    (void)comm;
    return move_execute(&s->move, &s->data.source.tensor, &s->data.destination.tensor);
}

static tsr_status count_wrong(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const side *const s = arg;
    (void)comm;
    return move_data_count_wrong(&s->data, wrong);
}

static tsr_status time_move(tsr_comm *comm, side *s, const bench_settings *settings, timed_move *t)
{
    const place *const where = s->move.place;
    const int rank = tsr_comm_rank(comm);
    const tsr_bench_options options = bench_options(settings, where, rank);
    const tsr_bench_subject subject = {.call = execute, .check = count_wrong, .arg = s};
    tsr_bench_result result;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &result));
    if (settings->checks)
        bench_step(settings, where, rank);
    if (bench_keeps(where, rank)) {
        t->seconds = result.seconds;
        t->wrong = settings->checks ? result.wrong : 0;
    }
    return TSR_OK;
}

typedef struct crossing {
    const tsr_comm *comm;
    struct timed_row *row;
} crossing;

static tsr_status count_crossing(const tsr_plan_transfer *transfer, void *user)
{
    const crossing *const c = user;
    if (tsr_comm_node_of(c->comm, (int)transfer->peer) != c->row->node)
        c->row->crossed += transfer->bytes;
    return TSR_OK;
}

/* Fills the rank's row from its plan. */
static tsr_status fill_row(const tsr_comm *comm, const side *s, struct timed_row *row)
{
    crossing c = {comm, row};
    row->node = tsr_comm_node_of(comm, tsr_comm_rank(comm));
    row->received = tsr_plan_bytes_received(s->move.plan);
    return tsr_plan_visit_receives(s->move.plan, count_crossing, &c);
}

static tsr_status with_data(tsr_comm *comm, side *s, const bench_settings *settings, timed_move *t)
{
    const place *const where = s->move.place;
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(fill_row(comm, s, &t->rows[rank]));
    if (rank == 0 && t->figures)
        TSR_TRY(tsr_plan_survey_of(s->move.plan, t->figures));
    TSR_TRY((settings->checks ? move_data_create : move_data_create_plain)(where, comm, s->move.from, s->move.to,
                                                                           &s->data));
    bench_step(settings, where, rank);
    TSR_TRY(time_move(comm, s, settings, t));
    return place_share(where, comm, t->rows, sizeof *t->rows);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    bench_settings settings = *j->settings;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < j->count && status == TSR_OK; i++) {
        side s = {.data = {.from = NULL}};
        status = move_create(j->place, comm, &j->moves[i]->request, &s.move);
        if (status != TSR_OK)
            break;
        status = with_data(comm, &s, &settings, j->moves[i]);
        move_data_free(&s.data);
        move_finish(&s.move);
        settings.warm_seconds = 0;
    }
    return status;
}

int time_moves(place *p, int ranks, const bench_settings *settings, int status, timed_move *const *moves, size_t count)
{
    job j = {p, settings, moves, count};
    return bench_on_ranks(settings, status, p, ranks, run_rank, &j);
}
