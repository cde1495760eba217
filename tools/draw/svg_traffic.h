/** One step of a move as a picture: bands from senders to receivers, as wide as the bytes are many, and a table of them. */
#ifndef TESSERA_TOOLS_DRAW_SVG_TRAFFIC_H
#define TESSERA_TOOLS_DRAW_SVG_TRAFFIC_H

#include "draw/svg.h"
#include "draw/traffic.h"

/** Draws step `step` below (x, y), `width` wide, under a heading; returns how far down it reaches. */
double svg_traffic(svg *s, const traffic *t, size_t step, const char *heading, double x, double y, double width);

#endif
