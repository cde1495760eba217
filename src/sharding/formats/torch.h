/** PyTorch's placements. */
#ifndef TSR_SHARDING_FORMATS_TORCH_H
#define TSR_SHARDING_FORMATS_TORCH_H

#include "sharding/form/formats.h"

tsr_status tsr_read_torch(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_write_torch(const tsr_layout *layout, tsr_text *out);

#endif
