/** Reads shardings that name axes: XLA's version 3, and Shardy's attributes. */
#ifndef TSR_SHARDING_NAMED_READ_H
#define TSR_SHARDING_NAMED_READ_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_hlo3, tsr_read_sdy;

#endif
