#include "pipeline.h"

#include "channel.h"
#include "stage.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>

/* One rank's part. Channel i of each kind is between stages i and i + 1. */
typedef struct pipeline {
    const pipeline_options *options;
    tsr_comm *comm;
    stage stages[MOST_STAGES];
    channel activations[MOST_STAGES - 1], gradients[MOST_STAGES - 1];
} pipeline;

static tsr_status make_stage(pipeline *p, int number)
{
    const pipeline_options *const o = p->options;
    const int stages = o->schedule.stages;
    const int64_t first = o->layers * number / stages, behind = o->layers * (number + 1) / stages;
    stage *const s = &p->stages[number];
    s->seed = o->seed;
    s->rate = o->rate;
    s->model = (model){.first = first,
                       .count = behind - first,
                       .begins = number == 0,
                       .ends = number == stages - 1,
                       .rows = o->rows,
                       .batch = o->rows * o->schedule.micro_batches};
    return stage_create(p->comm, o->meshes[number], s);
}

static tsr_status make_channels(pipeline *p, int number)
{
    const pipeline_options *const o = p->options;
    const int64_t sent = schedule_kept_sent(&o->schedule);
    const channel_end begin = {o->meshes[number], sent}, back = {o->meshes[number + 1], sent};
    const channel_load load = {o->rows, WIDTH, o->by_messages ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT};
    const channel_end end = {o->meshes[number + 1], schedule_kept(&o->schedule, number + 1)};
    TSR_TRY(channel_create(p->comm, begin, end, &load, &p->activations[number]));
    return channel_create(p->comm, back, begin, &load, &p->gradients[number]);
}

static tsr_status make(pipeline *p)
{
    const int stages = p->options->schedule.stages;
    for (int i = 0; i < stages; i++)
        TSR_TRY(make_stage(p, i));
    for (int i = 0; i + 1 < stages; i++)
        TSR_TRY(make_channels(p, i));
    return TSR_OK;
}

/* After a failure stages go first: with their communicators end the waits of peers who compute
 * there. So all ranks come to finish what they have started, in the order of finish_moves(), and
 * memory that others read stays until they have read it. */
static void destroy(pipeline *p)
{
    for (int i = 0; i < MOST_STAGES; i++)
        stage_destroy(&p->stages[i]);
    for (int i = 0; i + 1 < MOST_STAGES; i++) {
        channel_destroy(&p->activations[i]);
        channel_destroy(&p->gradients[i]);
    }
}

/* The tensor at one end of a channel; none where the stage is the first or the last. */
static tsr_tensor tensor_of(const channel *c, int64_t micro_batch, bool sent)
{
    if (!c->sync)
        return (tsr_tensor){0};
    return sent ? channel_sent(c, micro_batch) : channel_received(c, micro_batch);
}

static void trace(const pipeline *p, const char *what, int64_t micro_batch, int number)
{
    if (p->options->traces)
        fprintf(stderr, "rank %d: %s%lld of stage %d\n", tsr_comm_rank(p->comm), what, (long long)micro_batch, number);
}

/* Runs the forward of a micro-batch, whose number over all steps is `all`. */
static tsr_status run_forward(pipeline *p, int64_t all, int64_t micro_batch, int number)
{
    const channel none = {0}, *const before = number > 0 ? &p->activations[number - 1] : &none;
    trace(p, "F", micro_batch, number);
    return stage_forward(&p->stages[number], all, tensor_of(before, micro_batch, false),
                         tensor_of(&p->activations[number], micro_batch, true));
}

/* Runs the backward of a micro-batch, whose number over all steps is `all`; on the last stage its
 * forward before it. */
static tsr_status run_backward(pipeline *p, int64_t all, int64_t micro_batch, int number, double *loss)
{
    const channel none = {0}, *const before = number > 0 ? &p->activations[number - 1] : &none;
    const channel *const to = number > 0 ? &p->gradients[number - 1] : &none;
    const channel *const from = p->stages[number].model.ends ? &none : &p->gradients[number];
    trace(p, "B", micro_batch, number);
    TSR_TRY(stage_backward(&p->stages[number], all, tensor_of(before, micro_batch, false),
                           tensor_of(from, micro_batch, false), tensor_of(to, micro_batch, true), loss));
    return isfinite(*loss)
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "--rate %g: the loss of micro-batch %lld of a step is not finite",
                                p->options->rate, (long long)micro_batch);
}

/* What a stage computes in a turn: one forward, one backward. */
static tsr_status work(pipeline *p, int64_t step, int64_t turn, int number, double *loss)
{
    const schedule *const all = &p->options->schedule;
    const int64_t first = step * all->micro_batches;
    const int64_t forth = schedule_forward(all, turn, number), back = schedule_backward(all, turn, number);
    if (forth != SCHEDULE_NONE && !p->stages[number].model.ends)
        TSR_TRY(run_forward(p, first + forth, forth, number));
    return back == SCHEDULE_NONE ? TSR_OK : run_backward(p, first + back, back, number, loss);
}

static tsr_status start_move(pipeline *p, channel *c, const char *what, int64_t micro_batch, int from)
{
    if (micro_batch == SCHEDULE_NONE)
        return TSR_OK;
    trace(p, what, micro_batch, from);
    return channel_start(c, micro_batch);
}

/* Starts to move what the stages have made in a turn. */
static tsr_status start_moves(pipeline *p, int64_t turn)
{
    const schedule *const all = &p->options->schedule;
    for (int i = 0; i + 1 < all->stages; i++) {
        TSR_TRY(start_move(p, &p->activations[i], "start activation ", schedule_forward(all, turn, i), i));
        TSR_TRY(start_move(p, &p->gradients[i], "start gradient ", schedule_backward(all, turn, i + 1), i + 1));
    }
    return TSR_OK;
}

static tsr_status finish_move(pipeline *p, channel *c, const char *what, int from)
{
    if (c->started)
        trace(p, what, c->micro_batch, from);
    return channel_finish(c);
}

static tsr_status finish_moves(pipeline *p)
{
    for (int i = 0; i + 1 < p->options->schedule.stages; i++) {
        TSR_TRY(finish_move(p, &p->activations[i], "finish activation ", i));
        TSR_TRY(finish_move(p, &p->gradients[i], "finish gradient ", i + 1));
    }
    return TSR_OK;
}

/*
 * A step: in each turn the stages compute, each on its own ranks and communicator, and then all
 * ranks move.
 *
 * Nothing can deadlock, whether the halves of a move wait for peers or not. For the sequence of
 * starts and finishes is a function of the turn alone: every rank makes all these calls in the same
 * order, and what it computes between two of them waits for none but the ranks of its own stage,
 * which come there with the same calls behind them. So the earliest call that has not returned is
 * one in which all its ranks meet.
 *
 * With `travels`, what turn t has made is on its way during turn t + 1: micro-batch m + 1's
 * activation is started before the backward of m on the last stage, and finished behind it.
 */
static tsr_status run_turns(pipeline *p, int64_t step, double *loss)
{
    const schedule *const all = &p->options->schedule;
    for (int64_t turn = 0; turn < schedule_turns(all); turn++) {
        for (int i = 0; i < all->stages; i++)
            if (p->stages[i].mesh)
                TSR_TRY(work(p, step, turn, i, loss));
        TSR_TRY(finish_moves(p));
        TSR_TRY(start_moves(p, turn));
        if (!all->travels)
            TSR_TRY(finish_moves(p));
    }
    return TSR_OK;
}

/* The rank of the last stage that tells all others the loss. */
static tsr_status find_teller(const pipeline *p, int64_t *rank)
{
    const int64_t first[TSR_MAX_DIMS] = {0};
    tsr_mesh *last;
    TSR_TRY(tsr_mesh_parse(p->comm, NULL, p->options->meshes[p->options->schedule.stages - 1], &last));
    const tsr_status status = tsr_mesh_rank_at(last, first, rank);
    tsr_mesh_destroy(last);
    return status;
}

static tsr_status train(pipeline *p)
{
    const int stages = p->options->schedule.stages;
    int64_t teller;
    TSR_TRY(find_teller(p, &teller));
    for (int64_t step = 0; step < p->options->steps; step++) {
        double loss = 0;
        TSR_TRY(run_turns(p, step, &loss));
        for (int i = 0; i < stages; i++)
            if (p->stages[i].mesh)
                TSR_TRY(stage_update(&p->stages[i], step));
        TSR_TRY(tsr_comm_broadcast(p->comm, &loss, 1, TSR_F64, (int)teller, tsr_device_host(), NULL));
        if (tsr_comm_rank(p->comm) == 0)
            printf("step %lld: loss %.17g\n", (long long)step + 1, loss);
    }
    return TSR_OK;
}

tsr_status pipeline_run(tsr_comm *comm, void *arg)
{
    pipeline p = {.options = arg, .comm = comm};
    tsr_kept_sentence kept;
    tsr_status status = make(&p);
    if (status == TSR_OK)
        status = train(&p);
    tsr_status_keep(&kept); /* finishing what was started may fail, too */
    destroy(&p);
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}
