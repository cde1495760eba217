/**
 * A picture being written: SVG 1.1, text alone, no scripts.
 *
 * Lengths are pixels, y grows downwards. What goes wrong with memory on the way is said by svg_end(). Colours keep black text readable, and
 * whatever they tell is told by a label or a hatch as well.
 */
#ifndef TESSERA_TOOLS_DRAW_SVG_H
#define TESSERA_TOOLS_DRAW_SVG_H

#include "cli/text_buffer.h"

#include <stdint.h>

typedef struct svg {
    text_buffer body; /**< what was drawn so far */
} svg;

typedef struct svg_rect {
    double x, y, width, height;
} svg_rect;

/** How a line of text stands: `anchor` is "start", "middle" or "end"; at most `width` wide, cut with ".." where it is longer. */
typedef struct svg_style {
    double size;
    const char *anchor;
    double width;
    int bold;
} svg_style;

/** What fills a shape where no colour does. */
#define SVG_NONE  "none"
#define SVG_HATCH "url(#hatch)" /**< oblique lines: terms that are still to be reduced */
#define SVG_DOTS  "url(#dots)"  /**< what stays where it is */

/** "#rrggbb" and its end. */
typedef struct svg_colour {
    char text[8];
} svg_colour;

/** The colour of one of many that stand side by side. */
svg_colour svg_colour_of(size_t index);

/** A grey that is the darker the greater `share` (0 to 1) is, never too dark for black text. */
svg_colour svg_shade(double share);

void svg_begin(svg *s);

/** Wraps what was drawn as a picture of that size and name. The caller frees `*text`; NULL if there was no memory. Ends `s` in any case. */
void svg_end(svg *s, double width, double height, const char *title, char **text, size_t *bytes);

/** A rectangle; `title` is what a viewer shows about it, NULL for none. */
void svg_box(svg *s, svg_rect r, const char *fill, const char *stroke, const char *title);

void svg_line(svg *s, double x, double y, double to_x, double to_y, const char *stroke);

typedef struct svg_point {
    double x, y;
} svg_point;

/** What tells series apart that share a plot, whatever colours are seen: shapes of marks and dashes of lines, of which no two of so many
 * series have both. */
#define SVG_SERIES 35

/** A line through the points in the manner of series `index`; nothing through fewer than 2. */
void svg_curve(svg *s, size_t index, const svg_point *points, size_t count);

/** The mark of series `index`, about 10 wide around the point: full, or empty; `title` as of
 * svg_box(). */
void svg_mark(svg *s, size_t index, svg_point at, int full, const char *title);

/** From the least to the most of what was measured: a line with ends. */
void svg_whisker(svg *s, size_t index, double x, double y, double to_y);

/** A band of constant height that flows from the left edge at (x, y) to the right edge at (to_x, to_y). */
void svg_band(svg *s, double x, double y, double to_x, double to_y, double height, const char *fill, const char *title);

/** Text whose base line begins, is centred or ends at (x, y). */
void svg_text(svg *s, double x, double y, svg_style style, const char *format, ...) TSR_PRINTF(5, 6);

/** The same, turned to be read upwards. */
void svg_upward_text(svg *s, double x, double y, svg_style style, const char *format, ...) TSR_PRINTF(5, 6);

/** About how wide a text of so many characters is. */
double svg_text_width(double size, size_t characters);

/** Words parted by spaces, or after a +, centred in a rectangle on as many lines as it has room for; 0, and nothing drawn, if it has not.
 */
int svg_words(svg *s, svg_rect r, double size, const char *words);

/** The same on one line, read upwards. */
int svg_upward_words(svg *s, svg_rect r, double size, const char *words);

/** Words on lines of at most `width`, the first below (x, y); returns where they end. */
double svg_paragraph(svg *s, double x, double y, double width, double size, const char *words);

#endif
