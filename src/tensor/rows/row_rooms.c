#include "tensor/rows/row_rooms.h"

#include "base/checked.h"
#include "comm/core/comm.h"
#include "device/allocation.h"

#include <tessera/sys/status.h>

static tsr_status allocate(const tsr_row_rooms *rooms, tsr_row_use use, size_t bytes, void **out)
{
    if (use >= TSR_ROOM_ON_HOST)
        return tsr_device_allocate(rooms->context, rooms->device, tsr_max_bytes(bytes, TSR_ALIGNMENT), out);
    return use == TSR_ROOM_SHOWN ? tsr_comm_alloc_shared(rooms->sharing, bytes, out)
                                 : tsr_allocate_data(rooms->context, bytes, out);
}

static void release(tsr_row_rooms *rooms, tsr_row_use use)
{
    if (use == TSR_ROOM_SHOWN && rooms->memory[use])
        tsr_comm_free(rooms->sharing, rooms->memory[use], rooms->bytes[use]);
    else if (use >= TSR_ROOM_ON_HOST)
        tsr_device_release(rooms->context, rooms->device, rooms->memory[use],
                           tsr_max_bytes(rooms->bytes[use], TSR_ALIGNMENT));
    else
        tsr_release(rooms->context, rooms->memory[use]);
    rooms->memory[use] = NULL;
    rooms->bytes[use] = 0;
}

tsr_status tsr_row_room_take(tsr_row_rooms *rooms, tsr_row_use use, size_t count, size_t bytes, void **out)
{
    size_t wanted;
    if (__builtin_mul_overflow(count, bytes, &wanted))
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu elements of %zu bytes", count, bytes);
    if (wanted > rooms->bytes[use] || !rooms->memory[use]) {
        /* More than is needed now, so that calls that grow slowly do not allocate each time. */
        const size_t grown = tsr_max_bytes(wanted, rooms->bytes[use] + rooms->bytes[use] / 2);
        release(rooms, use);
        TSR_TRY(allocate(rooms, use, grown, &rooms->memory[use]));
        rooms->bytes[use] = grown;
    }
    *out = rooms->memory[use];
    return TSR_OK;
}

/* A wait that fails may end early, so it is tried once more: the device may still write there. */
tsr_status tsr_row_rooms_settle(const tsr_device_ops *ops, tsr_status status)
{
    const tsr_status settled = tsr_device_settle(ops, NULL, status);
    return settled == status ? status : tsr_device_settle(ops, NULL, settled);
}

void tsr_row_rooms_release(tsr_row_rooms *rooms)
{
    const int uses = rooms->device.driver ? TSR_ROOM_USES : TSR_ROOM_ON_HOST;
    for (int use = 0; use < uses; use++)
        release(rooms, (tsr_row_use)use);
}
