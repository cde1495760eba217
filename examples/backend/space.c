#include "space.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 256 };

/* Of all devices together. */
#define SPACE_BYTES ((size_t)1 << 30)

static void *reserve(int protection)
{
    void *const made = mmap(NULL, SPACE_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

tsr_status space_open(tsr_context *context, space *out)
{
    space s = {.context = context, .front = reserve(PROT_NONE), .back = reserve(PROT_READ | PROT_WRITE)};
    if (!s.front || !s.back) {
        space_close(&s);
        return tsr_status_set(TSR_ERROR_MEMORY, "queue: there are no addresses for %zu bytes", SPACE_BYTES);
    }
    *out = s;
    return TSR_OK;
}

void space_close(space *s)
{
    while (s->blocks)
        space_release(s, s->front + s->blocks->at);
    if (s->front)
        munmap(s->front, SPACE_BYTES);
    if (s->back)
        munmap(s->back, SPACE_BYTES);
}

/* The place in the list before which `bytes` bytes are free, and their offset; NULL: nowhere. */
static space_block **find_gap(space *s, size_t bytes, size_t *at)
{
    space_block **place = &s->blocks;
    *at = 0;
    for (; *place; place = &(*place)->next) {
        if ((*place)->at - *at >= bytes)
            return place;
        *at = (*place)->at + (*place)->bytes;
    }
    return SPACE_BYTES - *at >= bytes ? place : NULL;
}

tsr_status space_allocate(space *s, size_t bytes, void **out)
{
    const size_t rounded = bytes > SPACE_BYTES ? bytes : (bytes + ALIGNMENT - (bytes > 0)) / ALIGNMENT * ALIGNMENT;
    size_t at;
    space_block **const place = find_gap(s, rounded, &at);
    void *made;
    if (!place)
        return tsr_status_set(TSR_ERROR_MEMORY, "queue: there is no room for %zu bytes on the device", bytes);
    TSR_TRY(tsr_allocate(s->context, sizeof(space_block), &made));
    space_block *const block = made;
    *block = (space_block){*place, at, rounded};
    *place = block;
    *out = s->front + at;
    return TSR_OK;
}

void space_release(space *s, const void *memory)
{
    const size_t at = (size_t)((const char *)memory - s->front);
    space_block **place = &s->blocks;
    while (*place && (*place)->at != at)
        place = &(*place)->next;
    space_block *const block = *place;
    if (!block)
        return;
    *place = block->next;
    tsr_release(s->context, block);
}

bool space_has(const space *s, const void *address)
{
    const uintptr_t at = (uintptr_t)address, front = (uintptr_t)s->front;
    return at >= front && at - front < SPACE_BYTES;
}

void *space_find(const space *s, const void *address)
{
    return s->back + ((uintptr_t)address - (uintptr_t)s->front);
}
