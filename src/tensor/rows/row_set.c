#include "tensor/rows/row_set.h"

#include <tessera/sys/status.h>

#include <string.h>

tsr_status tsr_row_set_begin(tsr_row_rooms *rooms, size_t count, const int64_t *keys, tsr_row_set *out)
{
    size_t slots = 16;
    void *memory;
    if (count >= UINT32_MAX)
        return tsr_status_set(TSR_ERROR_MEMORY, "%zu ids come to one rank: at most 2^32 - 2 may come in one call",
                              count);
    while (slots < 2 * count)
        slots *= 2;
    TSR_TRY(tsr_row_room_take(rooms, TSR_ROOM_SLOTS, slots, sizeof(uint32_t), &memory));
    memset(memory, 0, slots * sizeof(uint32_t));
    *out = (tsr_row_set){keys, memory, slots - 1};
    return TSR_OK;
}
