/** Finds equal rows among entries: a hash table of their numbers, open and linear. */
#ifndef TSR_TENSOR_ROWS_ROW_SET_H
#define TSR_TENSOR_ROWS_ROW_SET_H

#include "tensor/rows/row_rooms.h"

#include <stdint.h>

/** Entries that have different keys, by index. */
typedef struct tsr_row_set {
    const int64_t *keys; /**< of all entries; borrowed */
    uint32_t *slots;     /**< index of an entry plus 1; 0: free */
    uint64_t mask;       /**< number of slots - 1 */
} tsr_row_set;

/** An empty set with room for `count` entries, in TSR_ROOM_SLOTS. TSR_ERROR_MEMORY also for more
 * than 2^32 - 2 entries. */
tsr_status tsr_row_set_begin(tsr_row_rooms *rooms, size_t count, const int64_t *keys, tsr_row_set *out);

/** The entry with the key of `entry` that was added first: `entry` itself if none was. */
static inline uint32_t tsr_row_set_add(tsr_row_set *set, uint32_t entry)
{
    const int64_t key = set->keys[entry];
    uint64_t at = ((uint64_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    for (;; at++) {
        const uint32_t slot = set->slots[at & set->mask];
        if (slot == 0) {
            set->slots[at & set->mask] = entry + 1;
            return entry;
        }
        if (set->keys[slot - 1] == key)
            return slot - 1;
    }
}

#endif
