#include "tensor/rows/row_request.h"

#include "base/checked.h"
#include "tensor/rows/row_ids.h"
#include "tensor/rows/row_set.h"

#include <tessera/sys/status.h>

#include <string.h>

static tsr_status take_room(const tsr_row_request *request, tsr_row_use use, int64_t count, int64_t **out)
{
    void *memory;
    TSR_TRY(tsr_row_room_take(request->rooms, use, (size_t)count, sizeof(int64_t), &memory));
    *out = memory;
    return TSR_OK;
}

/* Finds each id's part and local row, in the order of the ids, and counts the ids of part p in
 * starts[p + 1]. */
static void find_places(const tsr_row_request *request, int64_t *parts, int64_t *locals)
{
    int64_t block[TSR_ROW_BLOCK];
    for (int64_t first = 0; first < request->count; first += TSR_ROW_BLOCK) {
        const int64_t count = tsr_min_i64(TSR_ROW_BLOCK, request->count - first);
        tsr_row_ids_read(request->ids, first, count, block);
        for (int64_t i = 0; i < count; i++) {
            const tsr_row_place place = tsr_row_find(&request->table->finder, block[i]);
            parts[first + i] = place.part;
            locals[first + i] = place.local;
            request->starts[place.part + 1]++;
        }
    }
}

/* Puts ids behind those of their part before them. `starts` has the numbers of ids; afterwards,
 * where each part begins. */
static void deal_out(const tsr_row_request *request, const int64_t *parts, const int64_t *locals)
{
    const int64_t part_count = request->table->rows.count;
    for (int64_t p = 0; p < part_count; p++)
        request->starts[p + 1] += request->starts[p];
    /* starts[p] counts up to where part p ends, which is where part p + 1 begins. */
    for (int64_t i = 0; i < request->count; i++) {
        const int64_t to = request->starts[parts[i]]++;
        request->locals[to] = locals[i];
        request->positions[to] = i;
    }
    memmove(request->starts + 1, request->starts, (size_t)part_count * sizeof(int64_t));
    request->starts[0] = 0;
}

/* Takes all rooms of sorting `count` ids. */
static tsr_status take_rooms(tsr_row_request *request, int64_t count, int64_t **parts, int64_t **locals)
{
    TSR_TRY(take_room(request, TSR_ROOM_STARTS, request->table->rows.count + 1, &request->starts));
    TSR_TRY(take_room(request, TSR_ROOM_LOCALS, count, &request->locals));
    TSR_TRY(take_room(request, TSR_ROOM_POSITIONS, count, &request->positions));
    TSR_TRY(take_room(request, TSR_ROOM_PARTS, count, parts));
    return take_room(request, TSR_ROOM_PLACES, count, locals);
}

tsr_status tsr_row_request_reserve(tsr_row_request *request, int64_t count)
{
    int64_t *parts, *locals;
    return take_rooms(request, count, &parts, &locals);
}

tsr_status tsr_row_request_sort(tsr_row_request *request)
{
    int64_t *parts, *locals;
    TSR_TRY(take_rooms(request, request->count, &parts, &locals));
    memset(request->starts, 0, (size_t)(request->table->rows.count + 1) * sizeof(int64_t));
    find_places(request, parts, locals);
    deal_out(request, parts, locals);
    return TSR_OK;
}

/* Keeps the last of equal rows among the `count` ids at `locals`; moves them to the front, and
 * returns how many they are. Their first id takes the position of the last. */
static int64_t keep_last(tsr_row_set *set, int64_t *locals, int64_t *positions, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        /* Entries behind `kept` are not in the set, so that this one may lie there. */
        locals[kept] = locals[i];
        const int64_t at = tsr_row_set_add(set, (uint32_t)kept);
        positions[at] = positions[i];
        kept += at == kept;
    }
    return kept;
}

tsr_status tsr_row_request_keep_last(tsr_row_request *request)
{
    int64_t kept = 0;
    for (int64_t p = 0; p < request->table->rows.count; p++) {
        const int64_t begin = request->starts[p], count = request->starts[p + 1] - begin;
        int64_t *const locals = request->locals + begin, *const positions = request->positions + begin;
        tsr_row_set set;
        TSR_TRY(tsr_row_set_begin(request->rooms, (size_t)count, locals, &set));
        const int64_t left = keep_last(&set, locals, positions, count);
        memmove(request->locals + kept, locals, (size_t)left * sizeof *locals);
        memmove(request->positions + kept, positions, (size_t)left * sizeof *positions);
        request->starts[p] = kept;
        kept += left;
    }
    request->starts[request->table->rows.count] = kept;
    return TSR_OK;
}

/* Writes each row of `count` ids once to `unique`, and for each id which it is. */
static int64_t find_unique(tsr_row_set *set, const int64_t *locals, int64_t count, int64_t *unique, int64_t *indices)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        unique[found] = locals[i];
        indices[i] = tsr_row_set_add(set, (uint32_t)found);
        found += indices[i] == found;
    }
    return found;
}

tsr_status tsr_row_request_find_unique(const tsr_row_request *request, tsr_row_unique *out)
{
    const int64_t parts = request->table->rows.count;
    int64_t found = 0;
    /* One more, where find_unique() writes a row before it knows that it is there already. */
    TSR_TRY(take_room(request, TSR_ROOM_UNIQUE, parts + 1 + request->count + 1, &out->starts));
    TSR_TRY(take_room(request, TSR_ROOM_INDICES, request->count, &out->indices));
    out->locals = out->starts + parts + 1;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = request->starts[p], count = request->starts[p + 1] - begin;
        tsr_row_set set;
        TSR_TRY(tsr_row_set_begin(request->rooms, (size_t)count, out->locals + found, &set));
        out->starts[p] = found;
        found += find_unique(&set, request->locals + begin, count, out->locals + found, out->indices + begin);
    }
    out->starts[parts] = found;
    return TSR_OK;
}
