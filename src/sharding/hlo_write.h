/** Writes XLA's HLO shardings of versions 1 and 2. */
#ifndef TSR_SHARDING_HLO_WRITE_H
#define TSR_SHARDING_HLO_WRITE_H

#include "sharding/formats.h"

tsr_sharding_writer tsr_write_hlo1, tsr_write_hlo;

#endif
