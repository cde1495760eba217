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

/** One line, formatted only if the context's level includes `level`, and cut at 1,023 bytes. Any
 * thread; `context` is not NULL. */
TSR_API void tsr_log(const tsr_context *context, tsr_log_level level, const char *format,
                     ...) TSR_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
