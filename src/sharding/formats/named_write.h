/** Writes shardings that name axes: XLA's version 3, and Shardy's attributes. */
#ifndef TSR_SHARDING_FORMATS_NAMED_WRITE_H
#define TSR_SHARDING_FORMATS_NAMED_WRITE_H

#include "sharding/form/formats.h"

tsr_status tsr_write_hlo3(const tsr_layout *layout, tsr_text *out);
tsr_status tsr_write_sdy(const tsr_layout *layout, tsr_text *out);

#endif
