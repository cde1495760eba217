/** What redistribution keeps in a group's slot: memory for executions over the group, and which
 * execution is started. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_HOLDING_H
#define TSR_REDISTRIBUTE_EXECUTE_HOLDING_H

#include "comm/groups/group.h"

typedef struct tsr_holding {
    /** host memory for one execution, as large as any prepare asked for: see scratch.h */
    void *scratch;
    size_t scratch_bytes;
    void *shelf; /**< memory that peers reach, as large as any prepare asked for; NULL where peers reach all memory: see
                    shelf.h */
    size_t shelf_bytes;  /**< SIZE_MAX where peers reach all memory */
    const void *pending; /**< the plan whose execution was started over this group and is not finished; NULL: none */
    bool streams;        /**< the tensors of the last execution by messages were on a device with streams */
} tsr_holding;

_Static_assert(sizeof(tsr_holding) <= TSR_GROUP_SLOT_BYTES, "a group's slot has room for what redistribution keeps");

/** What is kept in `group`, which tsr_group_prepare() has made, with or without
 * tsr_holding_keeper. */
static inline tsr_holding *tsr_holding_of(const tsr_group *group)
{
    return tsr_group_slot(group);
}

/** What a plan needs of its group; the keeper gets it as `wanted`. */
typedef struct tsr_holding_wanted {
    size_t scratch_bytes, shelf_bytes; /**< shelf_bytes is 0 where peers reach all memory */
} tsr_holding_wanted;

extern const tsr_group_keeper tsr_holding_keeper;

#endif
