/** Option structs that begin with `size_t size`, as every call reads them. */
#ifndef TSR_BASE_OPTIONS_H
#define TSR_BASE_OPTIONS_H

#include <stddef.h>
#include <tessera/status.h>

/**
 * Copies `given` over `known`, which holds the defaults (`.._INIT`) and is `bytes` long; NULL leaves them. A shorter struct, from a caller
 * built with older headers, leaves the fields that it lacks. TSR_ERROR_ARGUMENT, worded for `call`: a size of 0 (no `.._INIT`) or above
 * `bytes` (newer headers than this library).
 */
tsr_status tsr_options_read(const char *call, const void *given, void *known, size_t bytes);

#endif
