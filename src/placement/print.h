/** Shapes and layouts as text, for error sentences; placements are printed by <tessera/layout.h>.
 * Thread-safe. */
#ifndef TSR_PLACEMENT_PRINT_H
#define TSR_PLACEMENT_PRINT_H

#include "placement/layout.h"

/** Writes "64x64", or "scalar", to `text`, which has room for TSR_SHAPE_TEXT bytes, and returns
 * `text`. */
#define TSR_SHAPE_TEXT 176
const char *tsr_shape_print(int ndim, const int64_t *shape, char *text);

/** Writes "f32 64x64 S(0),R on mesh dp=2,tp=2" to `text`, cut at `capacity` bytes, and returns
 * `text`. */
const char *tsr_layout_describe(const tsr_layout *layout, char *text, size_t capacity);

#endif
