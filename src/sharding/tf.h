/** Layouts of TensorFlow's DTensor. */
#ifndef TSR_SHARDING_TF_H
#define TSR_SHARDING_TF_H

#include "sharding/formats.h"

tsr_sharding_reader tsr_read_tf;
tsr_sharding_writer tsr_write_tf;

#endif
