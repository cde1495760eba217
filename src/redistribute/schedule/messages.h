/**
 * Mail: one message for each peer, phase and round, with the parcels of all items for that peer.
 *
 * Both ends order a message's parcels alike: by item, then as they found them. Of a parcel of e
 * elements, round s of C carries those from e * s / C on. So both ends know every size.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_MESSAGES_H
#define TSR_REDISTRIBUTE_SCHEDULE_MESSAGES_H

#include "base/checked.h"
#include "redistribute/schedule/plan.h"

/** Lists the plan's mail, and sets its rounds and workspace. TSR_ERROR_ARGUMENT:
 * options.max_workspace is too small. Message mode only. */
tsr_status tsr_mail_build(tsr_plan *plan);
void tsr_mail_free(tsr_plan *plan);

/** Elements [begin, end) of a parcel that a round carries. */
typedef struct tsr_extent {
    int64_t begin, end;
} tsr_extent;

static inline tsr_extent tsr_mail_range(int64_t elements, int64_t round, int64_t rounds)
{
    const int64_t each = elements / rounds, rest = elements % rounds;
    return (tsr_extent){each * round + rest * round / rounds, each * (round + 1) + rest * (round + 1) / rounds};
}

/** Bytes that `elements` elements of an item take in a message: a multiple of 16, so that the next
 * parcel is aligned for every dtype. */
static inline size_t tsr_mail_bytes(const tsr_item *item, int64_t elements)
{
    return tsr_round_up((size_t)elements * item->src->element_bytes, TSR_ALIGNMENT);
}

/** Rounds up to whole cache lines, since every message begins on a line of its own. */
static inline size_t tsr_mail_line(size_t bytes)
{
    return tsr_round_up(bytes, TSR_LINE);
}

#endif
