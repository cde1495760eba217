/**
 * @file
 * Memory from a context's allocator, for what is built on the tables: aligned to 64 bytes, its size
 * remembered. Thread-safe as the allocator is.
 */
#ifndef TESSERA_SYS_MEMORY_H
#define TESSERA_SYS_MEMORY_H

#include <stddef.h>
#include <tessera/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** `context` is not NULL; `bytes` may be 0: then `*out` is a pointer that can be released.
 * TSR_ERROR_MEMORY says how much was wanted. */
TSR_API tsr_status tsr_allocate(tsr_context *context, size_t bytes, void **out);

/** tsr_allocate() of what holds elements: results and workspaces. Blocks of more than 64 KiB are
 * kept when they are released, for the next (tsr_context_options.kept_bytes). */
TSR_API tsr_status tsr_allocate_data(tsr_context *context, size_t bytes, void **out);

/** Gives memory of tsr_allocate() or tsr_allocate_data() back to the same context; NULL is fine. */
TSR_API void tsr_release(tsr_context *context, void *memory);

/** An engine that has memory of its own, which peers reach, keeps large blocks of it as a context
 * does (tsr_context_options.kept_bytes): it asks before it does, and gives back when it is told. So
 * the bound holds for both together, and users see both in one place. */
typedef struct tsr_keeper {
    /** gives back all that is kept, which tsr_keeper_drop() hears of, and returns how many bytes;
     * from any thread; adds and removes no keeper */
    size_t (*trim)(void *self);
    void *self;
    struct tsr_keeper *next; /**< the context's */
} tsr_keeper;

/** `keeper` is the caller's, stays where it is and is removed before the context's last reference
 * goes; it keeps nothing then. Any thread. */
TSR_API void tsr_keeper_add(tsr_context *context, tsr_keeper *keeper);

/** No call of `trim` comes afterwards. */
TSR_API void tsr_keeper_remove(tsr_context *context, tsr_keeper *keeper);

/** 1: a block of `bytes` that was released may be kept, and counts from now on; 0: that would be
 * more than the context allows. */
TSR_API int tsr_keeper_keep(tsr_context *context, size_t bytes);

/**
 * A block of `bytes` that was kept is in use again; 0: none was kept for one that was asked for.
 */
TSR_API void tsr_keeper_take(tsr_context *context, size_t bytes);

/** A block of `bytes` that was kept goes back to the system. */
TSR_API void tsr_keeper_drop(tsr_context *context, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
