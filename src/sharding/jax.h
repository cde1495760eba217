/** JAX's PartitionSpec. */
#ifndef TSR_SHARDING_JAX_H
#define TSR_SHARDING_JAX_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_jax;
tsr_sharding_writer tsr_write_jax;

#endif
