#include <tessera/sys/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 1024

static _Thread_local char sentence[SENTENCE_BYTES];

const char *tsr_status_name(tsr_status status)
{
    static const char *const names[] = {
        [TSR_OK] = "ok",
        [TSR_ERROR_ARGUMENT] = "argument",
        [TSR_ERROR_UNSUPPORTED] = "unsupported",
        [TSR_ERROR_UNAVAILABLE] = "unavailable",
        [TSR_ERROR_MEMORY] = "memory",
        [TSR_ERROR_PEER] = "peer",
        [TSR_ERROR_DEVICE] = "device",
        [TSR_ERROR_STATE] = "state",
        [TSR_ERROR_IO] = "io",
        [TSR_ERROR_INTERNAL] = "internal",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

const char *tsr_status_message(void)
{
    return sentence;
}

tsr_status tsr_status_set(tsr_status status, const char *format, ...)
{
    /* The arguments may point into the last sentence, to say more about it. */
    char next[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(next, sizeof next, format, arguments) < 0)
        next[0] = '\0';
    va_end(arguments);
    memcpy(sentence, next, strlen(next) + 1);
    return status;
}
