/**
 * @file
 * How a back end reads options: structs that begin with `size_t size`, and variables of the
 * environment that override them.
 */
#ifndef TESSERA_SYS_OPTIONS_H
#define TESSERA_SYS_OPTIONS_H

#include <tessera/context.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Copies `given` over `known`, which holds the defaults (`.._INIT`) and is `bytes` long; `given`
 * NULL keeps the defaults. A shorter struct, of a caller built with older headers, keeps the
 * defaults of the fields that it lacks. TSR_ERROR_ARGUMENT, worded for `call`: a size of 0 (no
 * `.._INIT`) or above `bytes` (newer headers than this library).
 */
TSR_API tsr_status tsr_options_read(const char *call, const void *given, void *known, size_t bytes);

/** The milliseconds that calls wait for peers, 0: for ever. It is TSR_TIMEOUT_MS where the
 * environment of `context` sets it, else `otherwise`. `context` is not NULL. */
TSR_API int64_t tsr_context_timeout_ms(const tsr_context *context, int64_t otherwise);

#ifdef __cplusplus
}
#endif

#endif
