/** Executables on a device: what must lie where, and memory that they keep there. */
#ifndef TSR_OPS_PROGRAMS_DEVICES_PLACE_H
#define TSR_OPS_PROGRAMS_DEVICES_PLACE_H

#include "ops/programs/executable.h"

/** Checks the device of compile options; TSR_ERROR_ARGUMENT. */
tsr_status tsr_place_check_device(tsr_device device);

/** True if two devices are one. */
bool tsr_place_is_same(tsr_device a, tsr_device b);

/** "the host", or a device's name and index, for sentences; returns `text`. */
const char *tsr_place_print(tsr_device device, char *text, size_t capacity);

/** Marks inputs that lie on the host: those that give stores their positions. */
void tsr_executable_mark_lent(tsr_executable *x);

/** Checks that the device can do all steps of this rank: else TSR_ERROR_UNSUPPORTED, by op and
 * device. */
tsr_status tsr_executable_check_place(tsr_executable *x);

/** Fills constants on the device, once. Waits for the device. */
tsr_status tsr_executable_fill_constants(tsr_executable *x);

/** Frees what lies on the device. */
void tsr_executable_leave_device(tsr_executable *x);

/** A number of the kind of device, equal on ranks with devices of one name. */
uint64_t tsr_executable_device_kind(const tsr_executable *x);

#endif
