/**
 * What answering one question about layouts takes, against the bound that the context sets (tsr_context_options.plan_entries).
 *
 * An entry is one element of a list that is built, or one step of a loop whose length the layouts decide. Whoever lists or loops takes its
 * entries first, so that what is refused has cost neither the memory nor the time.
 */
#ifndef TSR_PLACEMENT_METER_H
#define TSR_PLACEMENT_METER_H

#include "placement/layout.h"

typedef struct tsr_meter {
    const char *call;            /**< for sentences; static text */
    const tsr_layout *from, *to; /**< what they name; `to` is NULL where the question is about one layout; borrowed */
    int64_t used, limit;
    int plans; /**< the question may take what so many plans may, which `limit` has in it; for sentences; 0: it is about one */
} tsr_meter;

/** A meter that nothing has been taken of, with the bound of the context of `from`. */
tsr_meter tsr_meter_of(const char *call, const tsr_layout *from, const tsr_layout *to);

/** TSR_ERROR_ARGUMENT: `wanted` entries in all, or about so many, are more than the bound. */
tsr_status tsr_meter_refuse(const tsr_meter *meter, double wanted);

/** Takes `count` entries. TSR_ERROR_ARGUMENT: they are too many. */
static inline tsr_status tsr_meter_take(tsr_meter *meter, int64_t count)
{
    if (count > meter->limit - meter->used)
        return tsr_meter_refuse(meter, (double)meter->used + (double)count);
    meter->used += count;
    return TSR_OK;
}

/** TSR_ERROR_ARGUMENT: `count` entries, which will be taken one by one, are too many. */
static inline tsr_status tsr_meter_expect(const tsr_meter *meter, int64_t count)
{
    return count <= meter->limit - meter->used ? TSR_OK : tsr_meter_refuse(meter, (double)meter->used + (double)count);
}

/** Takes `count` entries `times` times. */
static inline tsr_status tsr_meter_take_times(tsr_meter *meter, int64_t count, int64_t times)
{
    int64_t product;
    if (__builtin_mul_overflow(count, times, &product))
        return tsr_meter_refuse(meter, (double)meter->used + (double)count * (double)times);
    return tsr_meter_take(meter, product);
}

/** Takes `count` entries for a walk that has come to `at` of `length`; a refusal tells what the whole walk would take if it went on so. */
tsr_status tsr_meter_take_on_way(tsr_meter *meter, int64_t count, int64_t begun, int64_t at, int64_t length);

#endif
