/** The log of a context: silent by default. */
#ifndef TSR_BASE_LOG_H
#define TSR_BASE_LOG_H

#include <tessera/context.h>

/** One line, formatted only if the context's level includes `level`. */
void tsr_log(const tsr_context *context, tsr_log_level level, const char *format, ...) TSR_PRINTF(3, 4);

#endif
