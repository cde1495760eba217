/** Reads shardings that name axes: XLA's version 3, and Shardy's attributes. */
#ifndef TSR_SHARDING_FORMATS_NAMED_READ_H
#define TSR_SHARDING_FORMATS_NAMED_READ_H

#include "sharding/form/formats.h"

tsr_status tsr_read_hlo3(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_read_sdy(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);

#endif
