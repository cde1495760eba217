#include "base/options.h"

#include <tessera/sys/status.h>

#include <string.h>

tsr_status tsr_options_read(const char *call, const void *given, void *known, size_t bytes)
{
    if (!given)
        return TSR_OK;
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size <= sizeof size || size > bytes)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: options.size is %zu, but this library knows %zu bytes; start from the .._INIT of its headers", call,
            size, bytes);
    memcpy(known, given, size);
    return TSR_OK;
}
