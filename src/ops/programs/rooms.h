/** The workspace of an executable. */
#ifndef TSR_OPS_PROGRAMS_ROOMS_H
#define TSR_OPS_PROGRAMS_ROOMS_H

#include "ops/programs/executable.h"

/** A number of bytes, rounded up to a multiple of TSR_ROOM_ALIGNMENT other than 0. */
size_t tsr_room_bytes(size_t bytes);

/** Makes room in the workspace for `bytes` bytes from step `first` to step `last`. */
tsr_status tsr_executable_add_room(tsr_executable *x, size_t bytes, int first, int last, int *out);

/** Changes the size of a room. */
void tsr_executable_resize_room(tsr_executable *x, int room, size_t bytes);

/** Gives each room its offset, so that rooms whose times overlap do not, and sets the size of the
 * workspace. */
tsr_status tsr_executable_place_rooms(tsr_executable *x);

#endif
