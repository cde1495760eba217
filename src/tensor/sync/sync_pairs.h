/** Which source each destination of a sync gets, and in which dtype elements travel. Pure. */
#ifndef TSR_TENSOR_SYNC_SYNC_PAIRS_H
#define TSR_TENSOR_SYNC_SYNC_PAIRS_H

#include <tessera/sync.h>

/** A destination with its source. */
typedef struct tsr_sync_pair {
    size_t source; /**< its number among the sources */
    const tsr_layout *from, *to;
    tsr_dtype wire; /**< that of `from` or of `to` */
} tsr_sync_pair;

/** What tsr_sync_create() is given. */
typedef struct tsr_sync_lists {
    size_t source_count, destination_count;
    const tsr_sync_tensor *sources, *destinations;
    size_t rule_count;
    const tsr_sync_rule *rules;
} tsr_sync_lists;

/** Checks the lists, and writes a pair for each destination. Layouts are borrowed from the lists.
 * Errors as for tsr_sync_create(). */
tsr_status tsr_sync_pair_up(tsr_context *context, const tsr_sync_lists *lists, tsr_sync_pair *pairs);

/** A fingerprint of pairs, and of the names in the lists, that is the same on all ranks, over
 * whichever communicators they describe the meshes. */
uint64_t tsr_sync_fingerprint(const tsr_sync_lists *lists, const tsr_sync_pair *pairs);

#endif
