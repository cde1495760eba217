/** Executables on a device: what must lie where, and constants. */
#ifndef TSR_OPS_PROGRAMS_PREPARED_PLACE_H
#define TSR_OPS_PROGRAMS_PREPARED_PLACE_H

#include "ops/programs/executable.h"

/** Checks that the device can do all steps of this rank: else TSR_ERROR_UNSUPPORTED, by op and
 * device. */
tsr_status tsr_executable_check_place(tsr_executable *x);

/** Fills constants on the device, once. Waits for the device. */
tsr_status tsr_executable_fill_constants(tsr_executable *x);

/** A number of the kind of device, equal on ranks with devices of one name. */
uint64_t tsr_executable_device_kind(const tsr_executable *x);

#endif
