/** Layouts by the rules of layers that a mesh keeps, so that a repeated call infers nothing. One
 * thread at a time, as with the mesh's communicator. */
#ifndef TSR_OPS_LAYER_CACHE_H
#define TSR_OPS_LAYER_CACHE_H

#include <tessera/layout.h>

/** tsr_layer_rule_y(); recalled if the mesh was asked for equal layouts. */
tsr_status tsr_layer_recall_y(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                              tsr_layout **y);

/** tsr_layer_rule_gradient() of operand `which` of x, w and b, of which the last may be NULL; `dy`
 * is the gradient layout of the y that they give. Recalled likewise. */
tsr_status tsr_layer_recall_gradient(const char *caller, int which, const tsr_layout *const operands[3],
                                     const tsr_layout *dy, tsr_dtype dtype, tsr_layout **out);

#endif
