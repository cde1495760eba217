/** Lists of devices as XLA and Shardy write them. A reader is called with `device` NULL to check
 * the text alone, before there is memory for the list. */
#ifndef TSR_SHARDING_FORM_DEVICE_LIST_H
#define TSR_SHARDING_FORM_DEVICE_LIST_H

#include "sharding/text/token.h"

/** Reads `count` devices apart by commas. */
tsr_status tsr_device_list_read(tsr_scan *scan, int64_t count, int64_t *device);

/** Reads `2,4]T(1,0)`, XLA's short form of a list, behind its first bracket. TSR_ERROR_ARGUMENT
 * also if its dims do not have `count` devices, those of the `whole` ("grid") that errors name. */
tsr_status tsr_device_list_read_short(tsr_scan *scan, int64_t count, const char *whole, int64_t *device);

#endif
