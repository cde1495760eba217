/** Places the boxes of a program: levels from the top, few crossings, straight lines. */
#ifndef TESSERA_TOOLS_PROGRAM_PLACE_BOXES_H
#define TESSERA_TOOLS_PROGRAM_PLACE_BOXES_H

#include "program/graph.h"

/** Gives every box its place, the first at (left, top); lines that pass levels get bends. `*right`
 * and `*bottom` get the ends. TSR_ERROR_MEMORY. */
tsr_status place_boxes(graph *g, double left, double top, double *right, double *bottom);

#endif
