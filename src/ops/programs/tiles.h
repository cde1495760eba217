/** Runs groups of pointwise steps tile by tile. */
#ifndef TSR_OPS_PROGRAMS_TILES_H
#define TSR_OPS_PROGRAMS_TILES_H

#include "ops/programs/executable.h"

/** The most elements of a tile, for which kernels have a short way. */
#define TSR_TILE 2048

/** Decides how many elements tiles have, and puts the values that the group's steps alone read into
 * its scratch, whose size it sets. `last` has the last step that reads each value or its view. */
void tsr_group_place_values(tsr_executable *x, tsr_group *group, const int *last);

/** Gives the group's steps their tensors, or those of a tile, where values lie now. */
void tsr_group_link(tsr_executable *x, tsr_group *group);

/** Runs the steps of a group that is tiled. */
tsr_status tsr_group_run(tsr_executable *x, const tsr_group *group);

#endif
