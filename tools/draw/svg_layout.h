/** Pictures of layouts: every block of the tensor in the colour of its first owner, with its
 * ranks. */
#ifndef TESSERA_TOOLS_DRAW_SVG_LAYOUT_H
#define TESSERA_TOOLS_DRAW_SVG_LAYOUT_H

#include "draw/svg.h"

#include <tessera/layout.h>

/**
 * Draws two layouts of one tensor side by side, each under its heading, in the strip `place` of the
 * page, whose height is not used. `*end` gets the y where they end. A layout that cannot be drawn
 * gets a sentence instead. TSR_ERROR_MEMORY.
 */
tsr_status svg_layouts(svg *s, const tsr_layout *const layouts[2], const char *const headings[2], svg_rect place,
                       double *end);

#endif
