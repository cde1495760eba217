/**
 * The memory of devices. Callers see addresses that no program can read or write: the same bytes
 * lie elsewhere, where commands find them.
 */
#ifndef EXAMPLES_BACKEND_SPACE_H
#define EXAMPLES_BACKEND_SPACE_H

#include <tessera/context.h>

#include <stdbool.h>
#include <stddef.h>

/** A range of the address space that is in use; sorted by address. */
typedef struct space_block {
    struct space_block *next;
    size_t at, bytes;
} space_block;

typedef struct space {
    tsr_context *context;
    char *front, *back; /**< what callers see; where the bytes are */
    space_block *blocks;
} space;

/** Reserves addresses; pages are taken when they are first written. */
tsr_status space_open(tsr_context *context, space *out);
void space_close(space *s);

/** `bytes` bytes at `*out`, aligned to 256. TSR_ERROR_MEMORY: there is no room. */
tsr_status space_allocate(space *s, size_t bytes, void **out);
void space_release(space *s, const void *memory);

/** Whether an address that a caller gave lies in the space. */
bool space_has(const space *s, const void *address);

/** Where the bytes of an address of the space are. */
void *space_find(const space *s, const void *address);

#endif
