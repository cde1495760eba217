/** Memory that calls by id work in, kept from call to call of a plan. */
#ifndef TSR_TENSOR_ROWS_ROW_ROOMS_H
#define TSR_TENSOR_ROWS_ROW_ROOMS_H

#include "device/device.h"

#include <tessera/comm.h>

#include <stddef.h>

/** What a room holds. */
typedef enum tsr_row_use {
    TSR_ROOM_PARTS,      /**< row part of each id */
    TSR_ROOM_PLACES,     /**< local row of each id, in the order of the ids */
    TSR_ROOM_STARTS,     /**< where the ids of each row part begin */
    TSR_ROOM_LOCALS,     /**< local rows, by row part */
    TSR_ROOM_POSITIONS,  /**< positions of the ids, by row part */
    TSR_ROOM_SLOTS,      /**< of a tsr_row_set */
    TSR_ROOM_UNIQUE,     /**< each row once */
    TSR_ROOM_INDICES,    /**< which of these each id names */
    TSR_ROOM_SOURCES,    /**< rows of all ranks */
    TSR_ROOM_CHAIN,      /**< rows of equal ids */
    TSR_ROOM_LAST,       /**< the last row of each chain */
    TSR_ROOM_SUM,        /**< one row's sum */
    TSR_ROOM_COUNTS,     /**< numbers of messages */
    TSR_ROOM_SENT,       /**< requests, or other messages */
    TSR_ROOM_BEGINNINGS, /**< of peers' requests */
    TSR_ROOM_ASKED,      /**< peers' requests */
    TSR_ROOM_ANSWERED,   /**< answers to them */
    TSR_ROOM_RECEIVED,   /**< answers of peers, or other messages */
    TSR_ROOM_SHOWN,      /**< a copy of what peers in other processes read; shared memory */
    TSR_ROOM_IDS,        /**< a copy of ids that are on a device */
    TSR_ROOM_LISTS,      /**< of a tsr_row_batch */
    TSR_ROOM_ON_HOST,
    /* on the device of a call's tables */
    TSR_ROOM_DEVICE_IDS = TSR_ROOM_ON_HOST, /**< ids without gaps */
    TSR_ROOM_DEVICE_LISTS,                  /**< a copy of TSR_ROOM_LISTS */
    TSR_ROOM_DEVICE_SUM,                    /**< accumulators of a tsr_row_batch */
    TSR_ROOM_DEVICE_SENT,                   /**< rows of messages */
    TSR_ROOM_DEVICE_RECEIVED,
    TSR_ROOM_USES
} tsr_row_use;

/** Begins as all 0 but for `context`, `sharing` and `device`, which are borrowed. */
typedef struct tsr_row_rooms {
    tsr_context *context;
    tsr_device device; /**< of the tables */
    tsr_comm *sharing; /**< in whose shared memory TSR_ROOM_SHOWN lies; NULL: that is not used */
    void *memory[TSR_ROOM_USES];
    size_t bytes[TSR_ROOM_USES];
} tsr_row_rooms;

/** Room for `count` elements of `bytes` bytes each, aligned to 64 bytes, with undefined content; it
 * stays until the room is taken again. */
tsr_status tsr_row_room_take(tsr_row_rooms *rooms, tsr_row_use use, size_t count, size_t bytes, void **out);

/** Waits until the device, whose ops are given, has done the work on its default stream, so that
 * rooms may be used again or freed. Returns `status`, the result so far, if it is a failure, else
 * that of the wait. */
tsr_status tsr_row_rooms_settle(const tsr_device_ops *ops, tsr_status status);

/** Frees all rooms. */
void tsr_row_rooms_release(tsr_row_rooms *rooms);

#endif
