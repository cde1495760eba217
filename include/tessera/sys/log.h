/**
 * @file
 * The log of a context, silent by default.
 */
#ifndef TESSERA_SYS_LOG_H
#define TESSERA_SYS_LOG_H

#include <tessera/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Logs one line, cut at 1,023 bytes; it is formatted only if the context's level includes `level`.
 * `context` is not NULL. Any thread. */
TSR_API void tsr_log(const tsr_context *context, tsr_log_level level, const char *format, ...)
    TSR_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
