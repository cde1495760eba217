/* Numbers of a run that follow from its step, and from what runs before it found. */
#include <tessera/optimizer.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <math.h>

/* The part of the way from the peak to the floor that is behind `step`. */
static double find_progress(const tsr_schedule *s, int64_t step)
{
    if (step >= s->steps || s->steps <= s->warmup)
        return 1;
    return (double)(step - s->warmup) / (double)(s->steps - s->warmup);
}

static double find_rate(const tsr_schedule *s, int64_t step)
{
    if (step < s->warmup)
        return s->peak * ((double)step / (double)s->warmup);
    if (s->kind == TSR_SCHEDULE_CONSTANT)
        return s->peak;
    const double progress = find_progress(s, step);
    const double left = s->kind == TSR_SCHEDULE_LINEAR ? 1 - progress : 0.5 * (1 + cos(acos(-1.0) * progress));
    return s->floor + (s->peak - s->floor) * left;
}

tsr_status tsr_schedule_at(const tsr_schedule *schedule, int64_t step, double *rate)
{
    static const char call[] = "tsr_schedule_at";
    tsr_schedule s = TSR_SCHEDULE_INIT;
    if (!schedule || !rate)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, schedule ? "rate" : "schedule");
    TSR_TRY(tsr_options_read(call, schedule, &s, sizeof s));
    if (s.kind < TSR_SCHEDULE_CONSTANT || s.kind > TSR_SCHEDULE_COSINE)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: kind is %d, but must be one of tsr_schedule_kind", call,
                              (int)s.kind);
    if (!isfinite(s.peak) || !isfinite(s.floor))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: peak is %g and floor %g, but both must be finite", call, s.peak,
                              s.floor);
    if (step < 0 || s.warmup < 0 || s.steps < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: step is %lld, warmup %lld and steps %lld, but each must be 0 or more", call,
                              (long long)step, (long long)s.warmup, (long long)s.steps);
    *rate = find_rate(&s, step);
    return TSR_OK;
}

tsr_status tsr_loss_scale_next(tsr_loss_scale *scale, int finite, const tsr_loss_scale_options *options)
{
    static const char call[] = "tsr_loss_scale_next";
    tsr_loss_scale_options o = TSR_LOSS_SCALE_OPTIONS_INIT;
    if (!scale)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: scale is NULL", call);
    TSR_TRY(tsr_options_read(call, options, &o, sizeof o));
    if (!(o.growth > 1) || !(o.backoff > 0 && o.backoff < 1) || o.growth_interval < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: growth is %g, backoff %g and growth_interval %lld, but growth must be above 1, "
                              "backoff between 0 and 1, and growth_interval 1 or more",
                              call, o.growth, o.backoff, (long long)o.growth_interval);
    tsr_loss_scale next = {scale->scale, finite ? scale->finite_runs + 1 : 0};
    if (!finite)
        next.scale *= o.backoff;
    if (next.finite_runs >= o.growth_interval) {
        if (isfinite(next.scale * o.growth))
            next.scale *= o.growth;
        next.finite_runs = 0;
    }
    *scale = next;
    return TSR_OK;
}
