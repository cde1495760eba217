/** Writes XLA's HLO shardings of versions 1 and 2. */
#ifndef TSR_SHARDING_FORMATS_HLO_WRITE_H
#define TSR_SHARDING_FORMATS_HLO_WRITE_H

#include "sharding/form/formats.h"

tsr_status tsr_write_hlo1(const tsr_layout *layout, tsr_text *out);
tsr_status tsr_write_hlo(const tsr_layout *layout, tsr_text *out);

#endif
