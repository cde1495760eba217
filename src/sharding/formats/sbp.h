/** OneFlow's SBP. */
#ifndef TSR_SHARDING_FORMATS_SBP_H
#define TSR_SHARDING_FORMATS_SBP_H

#include "sharding/form/formats.h"

tsr_status tsr_read_sbp(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_write_sbp(const tsr_layout *layout, tsr_text *out);

#endif
