/** A picture of one step of a move: bands from senders to receivers, of heights in proportion to
 * bytes, and a table of the bytes. */
#ifndef TESSERA_TOOLS_DRAW_SVG_TRAFFIC_H
#define TESSERA_TOOLS_DRAW_SVG_TRAFFIC_H

#include "draw/svg.h"
#include "draw/traffic.h"

/** Draws step `step` below (x, y), `width` wide, under a heading; returns the height of the
 * picture. */
double svg_traffic(svg *s, const traffic *t, size_t step, const char *heading, double x, double y, double width);

#endif
