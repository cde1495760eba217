/** OneFlow's SBP. */
#ifndef TSR_SHARDING_SBP_H
#define TSR_SHARDING_SBP_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_sbp;
tsr_sharding_writer tsr_write_sbp;

#endif
