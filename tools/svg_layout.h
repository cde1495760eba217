/** A layout as a picture: every block of the tensor in its owner's colour, with its ranks. */
#ifndef TESSERA_TOOLS_SVG_LAYOUT_H
#define TESSERA_TOOLS_SVG_LAYOUT_H

#include "svg.h"

#include <tessera/layout.h>

/**
 * Draws a layout below (x, y), `width` wide, under a heading, and says in `*height` how far down it reaches. A tensor or mesh that cannot
 * be drawn gets a sentence instead.
 */
tsr_status svg_layout(svg *s, const tsr_layout *layout, const char *heading, double x, double y, double width, double *height);

#endif
