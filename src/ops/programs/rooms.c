/* The workspace: rooms that are used at the same time lie apart, others may share memory. Greedy by
 * size, as TensorFlow Lite's arena planner does: large rooms first, each at the lowest offset that
 * is free during its whole time. */
#include "ops/programs/rooms.h"

#include "ops/programs/executable.h"

#include <tessera/sys/memory.h>

#include <stdlib.h>
#include <string.h>

size_t tsr_room_bytes(size_t bytes)
{
    return bytes ? (bytes + TSR_ROOM_ALIGNMENT - 1) / TSR_ROOM_ALIGNMENT * TSR_ROOM_ALIGNMENT : TSR_ROOM_ALIGNMENT;
}

tsr_status tsr_executable_add_room(tsr_executable *x, size_t bytes, int first, int last, int *out)
{
    void *items = x->rooms;
    TSR_TRY(tsr_program_grow(x->context, sizeof *x->rooms, x->room_count, &x->room_room, &items));
    x->rooms = items;
    x->rooms[x->room_count] = (tsr_room){.bytes = tsr_room_bytes(bytes), .first = first, .last = last};
    *out = (int)x->room_count++;
    return TSR_OK;
}

void tsr_executable_resize_room(tsr_executable *x, int room, size_t bytes)
{
    x->rooms[room].bytes = tsr_room_bytes(bytes);
}

/* Larger rooms first; equal ones in order of time, so that every rank finds the same offsets. */
static int compare_sizes(const void *a, const void *b)
{
    const tsr_room *const x = *(tsr_room *const *)a, *const y = *(tsr_room *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first - y->first;
    return x < y ? -1 : x > y;
}

/* Inserts a room into those that are placed, which ascend by offset, at the first gap. */
static void place(tsr_room *room, tsr_room **placed, size_t count)
{
    size_t offset = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        const tsr_room *const other = placed[i];
        if (other->last < room->first || other->first > room->last)
            continue;
        if (other->offset >= offset + room->bytes)
            break;
        if (other->offset + other->bytes > offset)
            offset = other->offset + other->bytes;
    }
    room->offset = offset;
    while (at < count && placed[at]->offset <= offset)
        at++;
    memmove(placed + at + 1, placed + at, (count - at) * sizeof *placed);
    placed[at] = room;
}

tsr_status tsr_executable_place_rooms(tsr_executable *x)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, 2 * x->room_count, sizeof(tsr_room *), &memory));
    tsr_room **const sorted = memory, **const placed = sorted + x->room_count;
    x->workspace_bytes = 0;
    for (size_t i = 0; i < x->room_count; i++)
        sorted[i] = &x->rooms[i];
    if (x->room_count)
        qsort(sorted, x->room_count, sizeof *sorted, compare_sizes);
    for (size_t i = 0; i < x->room_count; i++) {
        place(sorted[i], placed, i);
        const size_t end = sorted[i]->offset + sorted[i]->bytes;
        x->workspace_bytes = end > x->workspace_bytes ? end : x->workspace_bytes;
    }
    tsr_release(x->context, memory);
    return TSR_OK;
}
