/** Pointwise steps that pass the caches together. */
#ifndef TSR_OPS_PROGRAMS_FUSE_H
#define TSR_OPS_PROGRAMS_FUSE_H

#include "ops/programs/executable.h"

/** Puts pointwise steps that share tensors of one local shape one after the other, and makes groups
 * of them, to which stores of such tensors into whole states belong, too. Ranks may find different
 * groups, but no step at which ranks meet changes its place. */
tsr_status tsr_compile_groups(tsr_executable *x);

#endif
