#include "bench/loop.h"
#include "bench/peak.h"

#include <tessera/sys/memory.h>

/* One call that is measured in turns with others: its loop, and this rank's times, then those of
 * the slowest rank. */
typedef struct turn {
    tsr_bench_loop loop;
    double *whole, *enqueue;
} turn;

/* The argument of a plain copy. */
typedef struct copy {
    const tsr_bench_peak *peak;
    int index;
} copy;

/* A measurement on one rank. The turns of copies come first, so that a subject that shares its
 * result with them writes it last. */
typedef struct measurement {
    tsr_bench_rank rank;
    const tsr_bench_subject *subjects;
    int count;
    bool copies; /* plain copies are measured */
    tsr_bench_peak peak;
    copy copy[TSR_BENCH_MOST_COPIES];
    tsr_bench_subject copied[TSR_BENCH_MOST_COPIES];
    turn turns[TSR_BENCH_MOST_COPIES + TSR_BENCH_MOST_SUBJECTS];
    int turn_count;
    double *times; /* memory of the turns' times */
    int64_t done;  /* iterations that were kept */
    int64_t wrong[TSR_BENCH_MOST_SUBJECTS];
    int64_t bytes[TSR_BENCH_MOST_SUBJECTS];
} measurement;

static tsr_status run_copy(tsr_comm *comm, void *arg)
{
    const copy *const c = arg;
    (void)comm;
    return tsr_bench_peak_run(c->peak, c->index);
}

static tsr_status check_subjects(const char *call, const tsr_bench_subject *subjects, int count, const void *results)
{
    if (!results || !subjects)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, results ? "the subject" : "the result");
    if (count < 1 || count > TSR_BENCH_MOST_SUBJECTS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: count is %d; it must be from 1 to %d", call, count,
                              TSR_BENCH_MOST_SUBJECTS);
    for (int i = 0; i < count; i++)
        if (!subjects[i].call == !subjects[i].measure)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: subject %d has %s of `call` and `measure`; give it one",
                                  call, i, subjects[i].call ? "both" : "none");
    return TSR_OK;
}

static tsr_status allocate_times(measurement *m)
{
    const size_t turns = TSR_BENCH_MOST_COPIES + (size_t)m->count, iterations = (size_t)m->rank.options.iterations;
    void *memory;
    TSR_TRY(tsr_allocate(tsr_comm_context(m->rank.comm), 2 * turns * iterations * sizeof *m->times, &memory));
    m->times = memory;
    return TSR_OK;
}

static void add_turn(measurement *m, const tsr_bench_subject *subject)
{
    const size_t iterations = (size_t)m->rank.options.iterations;
    double *const times = m->times + 2 * iterations * (size_t)m->turn_count;
    m->turns[m->turn_count++] = (turn){{subject, 1}, times, times + iterations};
}

static tsr_status add_copies(measurement *m, size_t bytes, void *result)
{
    TSR_TRY(tsr_bench_peak_enter(&m->rank, bytes, result, &m->peak));
    for (int i = 0; i < m->peak.count; i++) {
        m->copy[i] = (copy){&m->peak, i};
        m->copied[i] = (tsr_bench_subject){.call = run_copy, .arg = &m->copy[i]};
        add_turn(m, &m->copied[i]);
    }
    return TSR_OK;
}

static tsr_status run_iteration(measurement *m, int64_t iteration)
{
    tsr_bench_seconds seconds;
    for (int i = 0; i < m->turn_count; i++) {
        TSR_TRY(tsr_bench_loop_time(&m->rank, &m->turns[i].loop, &seconds));
        if (iteration < 0)
            continue;
        m->turns[i].whole[iteration] = seconds.whole;
        m->turns[i].enqueue[iteration] = seconds.enqueue;
    }
    if (m->rank.options.step)
        m->rank.options.step(m->rank.options.step_arg);
    return TSR_OK;
}

/* True in `*over` if rank 0's time is up; collective if there is a limit. */
static tsr_status time_is_up(const measurement *m, double start, uint8_t *over)
{
    const double most = m->rank.options.most_seconds;
    *over = most > 0 && tsr_bench_clock() - start > most;
    return most > 0 ? tsr_comm_broadcast(m->rank.comm, over, 1, TSR_U8, 0, tsr_device_host(), NULL) : TSR_OK;
}

static tsr_status run_iterations(measurement *m)
{
    const tsr_bench_options *const o = &m->rank.options;
    const double start = tsr_bench_clock();
    uint8_t over = 0;
    for (int i = 0; i < m->turn_count; i++)
        TSR_TRY(tsr_bench_loop_settle(&m->rank, &m->turns[i].loop));
    for (int64_t i = -o->warm_ups; i < o->iterations && (!over || m->done == 0); i++) {
        TSR_TRY(time_is_up(m, start, &over));
        if (over && i != 0)
            continue;
        TSR_TRY(run_iteration(m, i));
        m->done = i < 0 ? 0 : i + 1;
    }
    return TSR_OK;
}

/* Checks each subject, and sums up wrong elements and payloads over all ranks. */
static tsr_status check_results(measurement *m)
{
    tsr_comm *const comm = m->rank.comm;
    tsr_bench_outcome o = {.status = TSR_OK};
    for (int i = 0; i < m->count; i++) {
        const tsr_bench_subject *const s = &m->subjects[i];
        m->bytes[i] = (int64_t)s->bytes;
        if (!s->check || m->rank.options.no_check || o.status != TSR_OK)
            continue;
        tsr_status_forget();
        tsr_bench_outcome_add(&o, s->check(comm, s->arg, &m->wrong[i]));
    }
    TSR_TRY(tsr_bench_agree(comm, &o));
    TSR_TRY(tsr_comm_all_reduce(comm, m->wrong, m->wrong, TSR_BENCH_MOST_SUBJECTS, TSR_I64, TSR_SUM, tsr_device_host(),
                                NULL));
    return tsr_comm_all_reduce(comm, m->bytes, m->bytes, TSR_BENCH_MOST_SUBJECTS, TSR_I64, TSR_SUM, tsr_device_host(),
                               NULL);
}

/* Takes the slowest rank's time of each iteration. */
static tsr_status share_times(const measurement *m)
{
    tsr_comm *const comm = m->rank.comm;
    for (int i = 0; i < m->turn_count; i++) {
        double *const whole = m->turns[i].whole, *const enqueue = m->turns[i].enqueue;
        TSR_TRY(tsr_comm_all_reduce(comm, whole, whole, m->done, TSR_F64, TSR_MAX, tsr_device_host(), NULL));
        TSR_TRY(tsr_comm_all_reduce(comm, enqueue, enqueue, m->done, TSR_F64, TSR_MAX, tsr_device_host(), NULL));
    }
    return TSR_OK;
}

static double rate(double bytes, double seconds)
{
    return seconds > 0 ? bytes / seconds : 0;
}

static tsr_status sum_up(const measurement *m, const turn *t, int64_t bytes, tsr_bench_result *out)
{
    *out = (tsr_bench_result){.iterations = m->done, .calls = t->loop.runs, .wrong = -1, .bytes = bytes};
    TSR_TRY(tsr_bench_sum_up(t->whole, m->done, &out->seconds));
    TSR_TRY(tsr_bench_sum_up(t->enqueue, m->done, &out->enqueue));
    out->bandwidth = rate((double)bytes, out->seconds.median);
    return TSR_OK;
}

/* Finds the plain copy with the least median. */
static tsr_status find_peak(const measurement *m, tsr_bench_result *best)
{
    *best = (tsr_bench_result){.peak_copy = NULL};
    for (int i = 0; m->copies && i < m->peak.count; i++) {
        tsr_bench_result one;
        TSR_TRY(sum_up(m, &m->turns[i], (int64_t)m->peak.payload, &one));
        if (i > 0 && one.bandwidth <= best->bandwidth)
            continue;
        one.peak_copy = tsr_bench_peak_name(&m->peak, i);
        *best = one;
    }
    return TSR_OK;
}

static void compare_with_peak(const tsr_bench_result *peak, tsr_bench_result *result)
{
    result->peak_copy = peak->peak_copy;
    result->peak_bandwidth = peak->bandwidth;
    result->of_peak = peak->bandwidth > 0 ? result->bandwidth / peak->bandwidth : 0;
}

/* Without subjects the result is that of the best copy. */
static tsr_status make_results(const measurement *m, tsr_bench_result *results)
{
    tsr_bench_result peak;
    TSR_TRY(find_peak(m, &peak));
    if (m->count == 0)
        results[0] = peak;
    for (int i = 0; i < m->count; i++) {
        TSR_TRY(sum_up(m, &m->turns[m->turn_count - m->count + i], m->bytes[i], &results[i]));
        if (m->subjects[i].check && !m->rank.options.no_check)
            results[i].wrong = m->wrong[i];
    }
    for (int i = 0; i < m->count || i == 0; i++)
        compare_with_peak(&peak, &results[i]);
    return TSR_OK;
}

static tsr_status run_measurement(measurement *m, size_t bytes, void *result)
{
    if (m->copies)
        TSR_TRY(add_copies(m, bytes, result));
    for (int i = 0; i < m->count; i++)
        add_turn(m, &m->subjects[i]);
    TSR_TRY(run_iterations(m));
    TSR_TRY(check_results(m));
    return share_times(m);
}

/* What is measured: subjects, or copies of `bytes` alone. */
typedef struct request {
    const char *call; /* name of the public function */
    const tsr_bench_subject *subjects;
    int count;
    bool copies_alone;
    size_t bytes;
} request;

/* Checks this rank's arguments, and gets memory for its times. */
static void read_arguments(const request *q, const tsr_bench_options *options, const void *results, measurement *m,
                           tsr_bench_outcome *o)
{
    tsr_bench_rank_read(q->call, m->rank.comm, options, &m->rank, o);
    if (o->status == TSR_OK && q->copies_alone && !results)
        tsr_bench_outcome_add(o, tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", q->call));
    if (o->status == TSR_OK && !q->copies_alone)
        tsr_bench_outcome_add(o, check_subjects(q->call, q->subjects, q->count, results));
    if (o->status == TSR_OK)
        tsr_bench_outcome_add(o, allocate_times(m));
}

static tsr_status measure(tsr_comm *comm, const request *q, const tsr_bench_options *options, tsr_bench_result *results)
{
    measurement m = {.rank = {.comm = comm}, .subjects = q->subjects, .count = q->count};
    tsr_bench_outcome o = {.status = TSR_OK};
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", q->call);
    read_arguments(q, options, results, &m, &o);
    tsr_status status = tsr_bench_rank_agree(&m.rank, q->subjects, q->count, &o);
    if (status == TSR_OK) {
        const tsr_bench_subject *const first = q->copies_alone ? NULL : &q->subjects[0];
        m.copies = q->copies_alone || !m.rank.options.no_copy;
        status = run_measurement(&m, first ? first->bytes : q->bytes, first ? first->result : NULL);
    }
    if (status == TSR_OK)
        status = make_results(&m, results);
    tsr_bench_peak_leave(&m.peak);
    tsr_release(tsr_comm_context(comm), m.times);
    return status;
}

tsr_status tsr_bench_turns(tsr_comm *comm, const tsr_bench_subject *subjects, int count,
                           const tsr_bench_options *options, tsr_bench_result *results)
{
    const request q = {.call = "tsr_bench_turns", .subjects = subjects, .count = count};
    return measure(comm, &q, options, results);
}

tsr_status tsr_bench_call(tsr_comm *comm, const tsr_bench_subject *subject, const tsr_bench_options *options,
                          tsr_bench_result *out)
{
    const request q = {.call = "tsr_bench_call", .subjects = subject, .count = 1};
    return measure(comm, &q, options, out);
}

tsr_status tsr_bench_copy(tsr_comm *comm, size_t bytes, const tsr_bench_options *options, tsr_bench_result *out)
{
    const request q = {.call = "tsr_bench_copy", .copies_alone = true, .bytes = bytes};
    return measure(comm, &q, options, out);
}
