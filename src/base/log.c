#include "base/settings.h"

#include <tessera/sys/log.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1024

void tsr_log(const tsr_context *context, tsr_log_level level, const char *format, ...)
{
    const tsr_settings *settings = tsr_context_settings(context);
    if (level > settings->log_level)
        return;
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    /* A sink that writes is a cancellation point: without this a thread could be cancelled in the
     * middle of the work that logs. */
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    settings->log(settings->log_user, level, line);
    pthread_setcancelstate(state, &state);
}
