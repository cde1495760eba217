/** A layout drawn in text: which rank owns which block. */
#ifndef TESSERA_TOOLS_DRAW_PICTURE_H
#define TESSERA_TOOLS_DRAW_PICTURE_H

#include <tessera/layout.h>

/** Draws a tensor of at most 2 dims on standard output, or says why it does not. Errors: memory. */
tsr_status picture_print(const tsr_layout *layout);

#endif
