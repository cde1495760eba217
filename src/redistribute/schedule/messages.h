/**
 * What travels as messages: one message a peer, phase and round, of everything that all items have for that peer.
 *
 * Both ends order a message's parcels alike: by item, then as they found them. In round s of C a parcel of e elements carries those from
 * e * s / C on, so that both ends know every size.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_MESSAGES_H
#define TSR_REDISTRIBUTE_SCHEDULE_MESSAGES_H

#include "base/checked.h"
#include "redistribute/schedule/plan.h"

/** Lists the plan's mail, and sets its rounds and workspace. TSR_ERROR_ARGUMENT: options.max_workspace cannot be kept. Message mode only.
 */
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

/** Bytes that so many elements of an item take in a message: parcels begin where every dtype may. */
static inline size_t tsr_mail_bytes(const tsr_item *item, int64_t elements)
{
    return tsr_round_up((size_t)elements * item->src->element_bytes, TSR_ALIGNMENT);
}

/** Messages begin on lines of their own. */
static inline size_t tsr_mail_line(size_t bytes)
{
    return tsr_round_up(bytes, TSR_LINE);
}

#endif
