/** Reads XLA's HLO shardings of versions 1 and 2. */
#ifndef TSR_SHARDING_FORMATS_HLO_READ_H
#define TSR_SHARDING_FORMATS_HLO_READ_H

#include "sharding/form/formats.h"

tsr_status tsr_read_hlo(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);

#endif
