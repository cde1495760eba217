/**
 * @file
 * Memory from a context's allocator, for libraries that implement the tables: aligned to 64 bytes,
 * with its size remembered. As thread-safe as the allocator is.
 */
#ifndef TESSERA_SYS_MEMORY_H
#define TESSERA_SYS_MEMORY_H

#include <tessera/context.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Allocates `bytes`; if that is 0, `*out` is a pointer that can be released. `context` is not
 * NULL. TSR_ERROR_MEMORY: the sentence says how much was wanted. */
TSR_API tsr_status tsr_allocate(tsr_context *context, size_t bytes, void **out);

/** tsr_allocate() for memory that holds elements: results and workspaces. Released blocks of more
 * than 64 KiB are kept for later calls (tsr_context_options.kept_bytes). */
TSR_API tsr_status tsr_allocate_data(tsr_context *context, size_t bytes, void **out);

/** Gives memory of tsr_allocate() or tsr_allocate_data() back to the context that it came from;
 * NULL is fine. */
TSR_API void tsr_release(tsr_context *context, void *memory);

/** An engine with memory of its own, which peers reach, may keep large released blocks of it, as a
 * context does (tsr_context_options.kept_bytes). The engine asks before it keeps a block and
 * reports a block that it gives back. So kept_bytes bounds the memory that the context and its
 * engines keep together, and statistics count all of it. */
typedef struct tsr_keeper {
    /** gives back all that is kept, reporting each block to tsr_keeper_drop(), and returns how many
     * bytes; from any thread; adds and removes no keeper */
    size_t (*trim)(void *self);
    void *self;
    struct tsr_keeper *next; /**< used by the context */
} tsr_keeper;

/** Adds `keeper`, which is the caller's and must stay where it is. It must be removed, keeping
 * nothing, before the context's last reference goes. Any thread. */
TSR_API void tsr_keeper_add(tsr_context *context, tsr_keeper *keeper);

/** Removes a keeper that keeps nothing; afterwards `trim` is not called any more. Any thread. */
TSR_API void tsr_keeper_remove(tsr_context *context, tsr_keeper *keeper);

/** 1: a released block of `bytes` may be kept, and counts from now on; 0: it would exceed the
 * context's bound. */
TSR_API int tsr_keeper_keep(tsr_context *context, size_t bytes);

/** Reports that a kept block of `bytes` is in use again, or, with `bytes` 0, that no kept block
 * fitted a request. */
TSR_API void tsr_keeper_take(tsr_context *context, size_t bytes);

/** Reports that a kept block of `bytes` goes back to the system. */
TSR_API void tsr_keeper_drop(tsr_context *context, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
