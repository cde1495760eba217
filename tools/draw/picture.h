/** A picture of a layout as text: which ranks hold which block. */
#ifndef TESSERA_TOOLS_DRAW_PICTURE_H
#define TESSERA_TOOLS_DRAW_PICTURE_H

#include <tessera/layout.h>

/** Draws a tensor of at most 2 dims on standard output, or prints why it does not.
 * TSR_ERROR_MEMORY. */
tsr_status picture_print(const tsr_layout *layout);

#endif
