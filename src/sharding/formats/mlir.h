/** Sharding values of MLIR's shard dialect. */
#ifndef TSR_SHARDING_FORMATS_MLIR_H
#define TSR_SHARDING_FORMATS_MLIR_H

#include "sharding/form/formats.h"

tsr_status tsr_read_mlir(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_write_mlir(const tsr_layout *layout, tsr_text *out);

#endif
