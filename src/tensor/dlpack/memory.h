/** Small memory of a context, or of the C library where there is none: a context takes longer to
 * make than a tensor to lend. */
#ifndef TSR_TENSOR_DLPACK_MEMORY_H
#define TSR_TENSOR_DLPACK_MEMORY_H

#include <tessera/context.h>

#include <stddef.h>

/** Memory that holds a reference to `context`, which may be NULL. */
tsr_status tsr_dl_allocate(tsr_context *context, size_t bytes, void **out);

/** Frees memory of tsr_dl_allocate(), and gives the reference back. */
void tsr_dl_release(tsr_context *context, void *memory);

#endif
