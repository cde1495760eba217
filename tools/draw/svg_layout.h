/** Layouts as pictures: every block of the tensor in its owner's colour, with its ranks. */
#ifndef TESSERA_TOOLS_DRAW_SVG_LAYOUT_H
#define TESSERA_TOOLS_DRAW_SVG_LAYOUT_H

#include "draw/svg.h"

#include <tessera/layout.h>

/**
 * Draws two layouts of one tensor side by side in a strip of the page (its height is not used), each under its heading, and says in `*end`
 * how far down they reach. A layout that cannot be drawn gets a sentence instead.
 */
tsr_status svg_layouts(svg *s, const tsr_layout *const layouts[2], const char *const headings[2], svg_rect place, double *end);

#endif
