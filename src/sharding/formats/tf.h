/** Layouts of TensorFlow's DTensor. */
#ifndef TSR_SHARDING_FORMATS_TF_H
#define TSR_SHARDING_FORMATS_TF_H

#include "sharding/form/formats.h"

tsr_status tsr_read_tf(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);
tsr_status tsr_write_tf(const tsr_layout *layout, tsr_text *out);

#endif
