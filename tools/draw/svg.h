/**
 * Writes a picture as SVG 1.1, without scripts.
 *
 * Lengths are pixels, y grows downwards. A lack of memory while drawing is reported by svg_end().
 * Black text is readable on all colours, and whatever a colour tells is also told by a label or a
 * hatch.
 */
#ifndef TESSERA_TOOLS_DRAW_SVG_H
#define TESSERA_TOOLS_DRAW_SVG_H

#include "cli/text_buffer.h"

#include <stdint.h>

typedef struct svg {
    text_buffer body; /**< the elements drawn so far */
} svg;

typedef struct svg_rect {
    double x, y, width, height;
} svg_rect;

/** The style of a line of text: `anchor` is "start", "middle" or "end"; a text wider than `width`
 * is cut and ends with "..". */
typedef struct svg_style {
    double size;
    const char *anchor;
    double width;
    int bold;
} svg_style;

/** Fills of a shape other than a colour. */
#define SVG_NONE  "none"
#define SVG_HATCH "url(#hatch)" /**< oblique lines: terms that are to be reduced */
#define SVG_DOTS  "url(#dots)"  /**< dots: bytes that stay on their rank */

/** A colour as "#rrggbb", with the NUL. */
typedef struct svg_colour {
    char text[8];
} svg_colour;

/** The colour of item `index`; near indices differ in colour. */
svg_colour svg_colour_of(size_t index);

/** A grey that is darker for a greater `share` (0 to 1), never too dark for black text. */
svg_colour svg_shade(double share);

/** Begins an empty picture; svg_end() must follow. */
void svg_begin(svg *s);

/** Ends the picture with its size and title. `*text`, of `*bytes`, is the whole SVG, which the
 * caller frees; NULL if memory was short. */
void svg_end(svg *s, double width, double height, const char *title, char **text, size_t *bytes);

/** Draws a rectangle; a viewer shows `title` (NULL: none) under the pointer. */
void svg_box(svg *s, svg_rect r, const char *fill, const char *stroke, const char *title);

void svg_line(svg *s, double x, double y, double to_x, double to_y, const char *stroke);

typedef struct svg_point {
    double x, y;
} svg_point;

/** Draws a curve from one point down to another, upright at both ends, `width` wide, with the head
 * of an arrow at its end where `arrow` is not 0; `title` as in svg_box(). */
void svg_flow(svg *s, svg_point from, svg_point to, const char *stroke, double width, int arrow, const char *title);

/** The number of series of a plot that differ by the shape of marks and the dashes of lines,
 * whatever colours are seen. */
#define SVG_SERIES 35

/** Draws a line through the points in the style of series `index`; nothing for fewer than 2
 * points. */
void svg_curve(svg *s, size_t index, const svg_point *points, size_t count);

/** Draws the mark of series `index`, about 10 wide, around a point, filled if `full`; `title` as in
 * svg_box(). */
void svg_mark(svg *s, size_t index, svg_point at, int full, const char *title);

/** Draws a whisker, a vertical line with ends from `y` to `to_y`, in the colour of series
 * `index`. */
void svg_whisker(svg *s, size_t index, double x, double y, double to_y);

/** Draws a band of constant height from its left edge, whose top is (x, y), to its right edge,
 * whose top is (to_x, to_y). */
void svg_band(svg *s, double x, double y, double to_x, double to_y, double height, const char *fill, const char *title);

/** Draws a text whose base line starts, is centred or ends at (x, y), by style.anchor. */
void svg_text(svg *s, double x, double y, svg_style style, const char *format, ...) TSR_PRINTF(5, 6);

/** svg_text(), turned to read upwards. */
void svg_upward_text(svg *s, double x, double y, svg_style style, const char *format, ...) TSR_PRINTF(5, 6);

/** The approximate width of a text of `characters` characters. */
double svg_text_width(double size, size_t characters);

/** Draws words in lines, centred in a rectangle; lines break at spaces and after a +. Returns 1, or
 * 0 with nothing drawn if they do not fit. */
int svg_words(svg *s, svg_rect r, double size, const char *words);

/** svg_words() on one line that reads upwards. */
int svg_upward_words(svg *s, svg_rect r, double size, const char *words);

/** Draws words in lines of at most `width`, the first below (x, y); returns the y where they
 * end. */
double svg_paragraph(svg *s, double x, double y, double width, double size, const char *words);

#endif
