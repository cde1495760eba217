/** JAX's PartitionSpec. */
#ifndef TSR_SHARDING_FORMATS_JAX_H
#define TSR_SHARDING_FORMATS_JAX_H

#include "sharding/form/formats.h"

tsr_status tsr_read_jax(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_write_jax(const tsr_layout *layout, tsr_text *out);

#endif
