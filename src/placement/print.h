/** Shapes and layouts in words, for sentences; placements are printed by <tessera/layout.h>. Thread-safe. */
#ifndef TSR_PLACEMENT_PRINT_H
#define TSR_PLACEMENT_PRINT_H

#include "placement/layout.h"

/** "64x64", or "scalar". `text` has room for TSR_SHAPE_TEXT bytes. */
#define TSR_SHAPE_TEXT 176
const char *tsr_shape_print(int ndim, const int64_t *shape, char *text);

/** "f32 64x64 S(0),R on mesh dp=2,tp=2", cut at `capacity`. */
const char *tsr_layout_describe(const tsr_layout *layout, char *text, size_t capacity);

#endif
