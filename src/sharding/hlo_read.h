/** Reads XLA's HLO shardings of versions 1 and 2. */
#ifndef TSR_SHARDING_HLO_READ_H
#define TSR_SHARDING_HLO_READ_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_hlo;

#endif
