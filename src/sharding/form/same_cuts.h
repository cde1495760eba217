/** Whether two layouts of one tensor on one mesh give each rank the same elements. */
#ifndef TSR_SHARDING_FORM_SAME_CUTS_H
#define TSR_SHARDING_FORM_SAME_CUTS_H

#include <tessera/layout.h>

#include <stdbool.h>

/** Compares what every coordinate owns along `dim`; both layouts cut it by the same mesh dims.
 * Fails as tsr_layout_intervals() does. */
tsr_status tsr_same_cuts(const tsr_layout *a, const tsr_layout *b, int dim, bool *same);

#endif
