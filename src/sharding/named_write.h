/** Writes shardings that name axes: XLA's version 3, and Shardy's attributes. */
#ifndef TSR_SHARDING_NAMED_WRITE_H
#define TSR_SHARDING_NAMED_WRITE_H

#include "sharding/formats.h"

tsr_sharding_writer tsr_write_hlo3, tsr_write_sdy;

#endif
