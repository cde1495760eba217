#include "bench/rank.h"

#include <tessera/sys/options.h>

#include <math.h>

static tsr_status check_count(const char *call, const char *name, int64_t value, int64_t least)
{
    if (value < least || value > TSR_BENCH_MOST_ITERATIONS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.%s is %lld; it must be from %lld to %lld", call, name,
                              (long long)value, (long long)least, (long long)TSR_BENCH_MOST_ITERATIONS);
    return TSR_OK;
}

static tsr_status check_seconds(const char *call, const char *name, double value)
{
    if (!(value >= 0 && value < INFINITY))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.%s is %g; it must be 0 or more seconds", call, name,
                              value);
    return TSR_OK;
}

static tsr_status check_place(const char *call, const tsr_bench_options *o)
{
    if (!o->device.driver && o->device.index != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.device is host %d; the host's index is 0", call,
                              o->device.index);
    if (!o->device.driver && o->stream)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.stream is not NULL, but the host has no streams; give its device too", call);
    return TSR_OK;
}

static tsr_status check_options(const char *call, const tsr_bench_options *o)
{
    TSR_TRY(check_count(call, "iterations", o->iterations, 1));
    TSR_TRY(check_count(call, "warm_ups", o->warm_ups, 0));
    TSR_TRY(check_count(call, "calls", o->calls, 0));
    TSR_TRY(check_seconds(call, "loop_seconds", o->loop_seconds));
    TSR_TRY(check_seconds(call, "warm_seconds", o->warm_seconds));
    TSR_TRY(check_seconds(call, "most_seconds", o->most_seconds));
    return check_place(call, o);
}

void tsr_bench_rank_read(const char *call, tsr_comm *comm, const tsr_bench_options *options, tsr_bench_rank *out,
                         tsr_bench_outcome *o)
{
    static const tsr_bench_options usual = TSR_BENCH_OPTIONS_INIT;
    *out = (tsr_bench_rank){.comm = comm, .options = usual};
    tsr_bench_outcome_add(o, tsr_options_read(call, options, &out->options, sizeof out->options));
    if (o->status == TSR_OK)
        tsr_bench_outcome_add(o, check_options(call, &out->options));
    if (o->status != TSR_OK)
        out->options = usual;
    out->table = tsr_device_driver_table(out->options.device.driver, &out->self);
}

/* What all ranks must give alike. */
enum {
    VALID,
    ITERATIONS,
    WARM_UPS,
    CALLS,
    LOOP_SECONDS,
    WARM_SECONDS,
    MOST_SECONDS,
    NO_CHECK,
    NO_COPY,
    ON_DEVICE,
    COUNT,
    VALUES
};

static const char *const names[VALUES] = {[ITERATIONS] = "options.iterations",
                                          [WARM_UPS] = "options.warm_ups",
                                          [CALLS] = "options.calls",
                                          [LOOP_SECONDS] = "options.loop_seconds",
                                          [WARM_SECONDS] = "options.warm_seconds",
                                          [MOST_SECONDS] = "options.most_seconds",
                                          [NO_CHECK] = "options.no_check",
                                          [NO_COPY] = "options.no_copy",
                                          [ON_DEVICE] = "options.device, 0 for the host and 1 for others,",
                                          [COUNT] = "the number of subjects"};

static void list_values(const tsr_bench_rank *r, int count, bool valid, double *values)
{
    const tsr_bench_options *const o = &r->options;
    const double all[VALUES] = {[VALID] = valid,
                                [ITERATIONS] = (double)o->iterations,
                                [WARM_UPS] = (double)o->warm_ups,
                                [CALLS] = (double)o->calls,
                                [LOOP_SECONDS] = o->loop_seconds,
                                [WARM_SECONDS] = o->warm_seconds,
                                [MOST_SECONDS] = o->most_seconds,
                                [NO_CHECK] = o->no_check != 0,
                                [NO_COPY] = o->no_copy != 0,
                                [ON_DEVICE] = tsr_bench_rank_has_device(r),
                                [COUNT] = count};
    for (int i = 0; i < VALUES; i++)
        values[i] = all[i];
}

static tsr_status compare_values(const tsr_bench_rank *r, const double *own, const double *first)
{
    for (int i = VALID + 1; i < VALUES; i++)
        if (own[i] != first[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is %g on rank %d, but %g on rank 0; give all ranks the same",
                                  names[i], own[i], tsr_comm_rank(r->comm), first[i]);
    return TSR_OK;
}

/* The callbacks that make collective calls of the library's follow: bit 0 for `measure`, bit 1 for
 * `check`. */
static uint8_t kind_of(const tsr_bench_subject *s)
{
    return (uint8_t)((s->measure ? 1 : 0) | (s->check ? 2 : 0));
}

static tsr_status compare_kinds(const tsr_bench_rank *r, const tsr_bench_subject *subjects, int count,
                                const uint8_t *first)
{
    for (int i = 0; i < count; i++)
        if (kind_of(&subjects[i]) != first[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "subject %d has another %s on rank %d than on rank 0", i,
                                  (kind_of(&subjects[i]) ^ first[i]) & 1 ? "`call` or `measure`" : "`check` or none",
                                  tsr_comm_rank(r->comm));
    return TSR_OK;
}

tsr_status tsr_bench_rank_agree(const tsr_bench_rank *r, const tsr_bench_subject *subjects, int count,
                                tsr_bench_outcome *o)
{
    double own[VALUES], first[VALUES];
    uint8_t kinds[TSR_BENCH_MOST_SUBJECTS] = {0};
    const bool valid = o->status == TSR_OK;
    list_values(r, count, valid, own);
    list_values(r, count, valid, first);
    for (int i = 0; valid && i < count; i++)
        kinds[i] = kind_of(&subjects[i]);
    TSR_TRY(tsr_comm_broadcast(r->comm, first, VALUES, TSR_F64, 0, tsr_device_host(), NULL));
    TSR_TRY(tsr_comm_broadcast(r->comm, kinds, TSR_BENCH_MOST_SUBJECTS, TSR_U8, 0, tsr_device_host(), NULL));
    if (valid && first[VALID] != 0)
        tsr_bench_outcome_add(o, compare_values(r, own, first));
    if (o->status == TSR_OK && first[VALID] != 0)
        tsr_bench_outcome_add(o, compare_kinds(r, subjects, count, kinds));
    return tsr_bench_agree(r->comm, o);
}

bool tsr_bench_rank_has_device(const tsr_bench_rank *r)
{
    return r->options.device.driver;
}

tsr_status tsr_bench_rank_wait(const tsr_bench_rank *r)
{
    if (!r->table->stream_synchronize)
        return TSR_OK;
    return r->table->stream_synchronize(r->self, r->options.device.index, r->options.stream);
}
