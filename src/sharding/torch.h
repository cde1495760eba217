/** PyTorch's placements. */
#ifndef TSR_SHARDING_TORCH_H
#define TSR_SHARDING_TORCH_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_torch;
tsr_sharding_writer tsr_write_torch;

#endif
