/** Sharding values of MLIR's shard dialect. */
#ifndef TSR_SHARDING_MLIR_H
#define TSR_SHARDING_MLIR_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_mlir;
tsr_sharding_writer tsr_write_mlir;

#endif
