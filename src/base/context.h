/** How an object takes the context that its caller gave it. */
#ifndef TSR_BASE_CONTEXT_H
#define TSR_BASE_CONTEXT_H

#include <tessera/context.h>

/** `context` with one reference more or, for NULL, a new context with the defaults. The caller owns
 * the reference. */
tsr_status tsr_context_resolve(tsr_context *context, tsr_context **out);

#endif
