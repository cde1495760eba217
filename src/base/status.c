#include <tessera/sys/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local tsr_kept_sentence last;

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
    return last.text;
}

tsr_status tsr_status_set(tsr_status status, const char *format, ...)
{
    /* Written aside first, because the arguments may point into the last sentence. */
    tsr_kept_sentence next;
    next.status = status;
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(next.text, sizeof next.text, format, arguments) < 0)
        next.text[0] = '\0';
    va_end(arguments);
    return tsr_status_restore(&next, status);
}

void tsr_status_keep(tsr_kept_sentence *kept)
{
    memcpy(kept->text, last.text, strlen(last.text) + 1);
    kept->status = last.status;
}

tsr_status tsr_status_restore(const tsr_kept_sentence *kept, tsr_status status)
{
    memcpy(last.text, kept->text, strlen(kept->text) + 1);
    last.status = status != TSR_OK ? status : kept->status;
    return status;
}

void tsr_status_forget(void)
{
    last.text[0] = '\0';
    last.status = TSR_OK;
}

void tsr_status_keep_returned(tsr_kept_sentence *kept, tsr_status status)
{
    tsr_status_keep(kept);
    if (last.status == status && last.text[0])
        return;
    snprintf(kept->text, sizeof kept->text, "returned %s without a sentence", tsr_status_name(status));
    kept->status = status;
}
