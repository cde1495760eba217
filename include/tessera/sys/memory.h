/** Memory from a context's allocator, for what is built on the tables: aligned to 64 bytes, its size remembered. Thread-safe as the
 * allocator is. */
#ifndef TESSERA_SYS_MEMORY_H
#define TESSERA_SYS_MEMORY_H

#include <stddef.h>
#include <tessera/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** `context` is not NULL; `bytes` may be 0: then `*out` is a pointer that can be released. TSR_ERROR_MEMORY says how much was wanted. */
TSR_API tsr_status tsr_allocate(tsr_context *context, size_t bytes, void **out);

/** Gives memory of tsr_allocate() back to the same context; NULL is fine. */
TSR_API void tsr_release(tsr_context *context, void *memory);

#ifdef __cplusplus
}
#endif

#endif
