/**
 * Counts what one question about layouts takes, against the bound that the context sets
 * (tsr_context_options.plan_entries).
 *
 * An entry is one element of a list that is built, or one step of a loop whose length the layouts
 * decide. Code takes its entries before it lists or loops, so that a refused question costs neither
 * memory nor time.
 */
#ifndef TSR_PLACEMENT_METER_H
#define TSR_PLACEMENT_METER_H

#include "placement/layout.h"

typedef struct tsr_meter {
    const char *call; /**< the call that sentences name; static text */
    /** the layouts that sentences name, borrowed; `to` is NULL if the question is about one */
    const tsr_layout *from, *to;
    int64_t used, limit; /**< entries */
    int plans;           /**< sentences say that `limit` is the bound of this many plans; 0: the bound of one */
} tsr_meter;

/** A meter with no entries used and the bound of the context of `from`; `to` may be NULL. */
tsr_meter tsr_meter_of(const char *call, const tsr_layout *from, const tsr_layout *to);

/** Returns TSR_ERROR_ARGUMENT: the question takes about `wanted` entries in all, more than the
 * bound. */
tsr_status tsr_meter_refuse(const tsr_meter *meter, double wanted);

/** Takes `count` entries. TSR_ERROR_ARGUMENT: they exceed the bound. */
static inline tsr_status tsr_meter_take(tsr_meter *meter, int64_t count)
{
    if (count > meter->limit - meter->used)
        return tsr_meter_refuse(meter, (double)meter->used + (double)count);
    meter->used += count;
    return TSR_OK;
}

/** Takes nothing, but returns TSR_ERROR_ARGUMENT if `count` more entries, which the caller will
 * take one by one, exceed the bound. */
static inline tsr_status tsr_meter_expect(const tsr_meter *meter, int64_t count)
{
    return count <= meter->limit - meter->used ? TSR_OK : tsr_meter_refuse(meter, (double)meter->used + (double)count);
}

/** Takes count * times entries. TSR_ERROR_ARGUMENT: they exceed the bound. */
static inline tsr_status tsr_meter_take_times(tsr_meter *meter, int64_t count, int64_t times)
{
    int64_t product;
    if (__builtin_mul_overflow(count, times, &product))
        return tsr_meter_refuse(meter, (double)meter->used + (double)count * (double)times);
    return tsr_meter_take(meter, product);
}

/** Takes `count` entries for a walk that has come to `at` of `length` and began when `used` was
 * `begun`. TSR_ERROR_ARGUMENT: they exceed the bound; the sentence estimates the entries of the
 * whole walk from its part so far. */
tsr_status tsr_meter_take_on_way(tsr_meter *meter, int64_t count, int64_t begun, int64_t at, int64_t length);

#endif
