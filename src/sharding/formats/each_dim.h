/** Formats with one word for each mesh dim, in order: PyTorch's and OneFlow's. */
#ifndef TSR_SHARDING_FORMATS_EACH_DIM_H
#define TSR_SHARDING_FORMATS_EACH_DIM_H

#include "sharding/form/formats.h"

/** Reads one word as the placement of a mesh dim. */
typedef tsr_status tsr_read_word(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out);

/** Reads words apart by commas, in round or square brackets or in none, one for each mesh dim. */
tsr_status tsr_read_each_dim(tsr_scan *scan, const tsr_sharding_case *given, tsr_read_word *read,
                             tsr_placement *placements);

/** Reads a tensor dim, which counts from the end if it is negative. */
tsr_status tsr_read_tensor_dim(tsr_scan *scan, const tsr_sharding_case *given, int *dim);

#endif
