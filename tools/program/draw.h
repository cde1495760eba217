/** A picture of a program. */
#ifndef TESSERA_TOOLS_PROGRAM_DRAW_H
#define TESSERA_TOOLS_PROGRAM_DRAW_H

#include "program/count.h"

/** The most steps of a program that is drawn. */
#define MOST_DRAWN 2000

/** Makes the picture as SVG, which the caller frees. Returns the tool's exit status: EXIT_REFUSED
 * for more steps than MOST_DRAWN. */
int program_draw(const program_count *c, char **text, size_t *bytes);

#endif
