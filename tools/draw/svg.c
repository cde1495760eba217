#include "draw/svg.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shares of a sans-serif font's size: the width of a character, the height of a line, and the
 * depth of the base line below the centre. */
#define CHARACTER 0.62
#define BOLD      1.12 /* factor of width */
#define LINE      1.25
#define CENTRE    0.35

/* Bands lower than this get a thinner outline, which would hide their colour. */
#define THIN 2.0

/* Bytes of the longest line of text, with the NUL. */
#define MOST_TEXT 512

static const char *const defs =
    "<defs>\n"
    "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
    "<path d=\"M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5\" stroke=\"#000000\" stroke-width=\"0.6\" "
    "stroke-opacity=\"0.45\"/></pattern>\n"
    "<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
    "<circle cx=\"2.5\" cy=\"2.5\" r=\"0.7\" fill=\"#000000\" fill-opacity=\"0.5\"/></pattern>\n"
    "</defs>\n";

void svg_begin(svg *s)
{
    *s = (svg){{0}};
}

/* Writes a text with XML's escapes. A byte outside printable ASCII becomes a question mark. */
static void write_escaped(text_buffer *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&')
            text_buffer_add(to, "&amp;");
        else if (*text == '<')
            text_buffer_add(to, "&lt;");
        else if (*text == '>')
            text_buffer_add(to, "&gt;");
        else if (*text == '"')
            text_buffer_add(to, "&quot;");
        else
            text_buffer_add_bytes(to, *text >= ' ' && *text <= '~' ? text : "?", 1);
    }
}

static void write_page(text_buffer *to, double width, double height, const char *title, const char *body)
{
    text_buffer_print(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
        "width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<title>",
        width, height, width, height);
    write_escaped(to, title);
    text_buffer_print(to, "</title>\n%s<rect x=\"0\" y=\"0\" width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", defs,
                      width, height);
    text_buffer_add(to, body);
    text_buffer_add(to, "</svg>\n");
}

void svg_end(svg *s, double width, double height, const char *title, char **text, size_t *bytes)
{
    char *const body = text_buffer_take(&s->body, NULL);
    text_buffer page = {0};
    *text = NULL;
    if (!body)
        return;
    write_page(&page, width, height, title, body);
    free(body);
    *text = text_buffer_take(&page, bytes);
}

/* A channel, from 0 to 1, of a saturated hue in sixths of the circle; `offset` is 0 for red, 4 for
 * green, 2 for blue. */
static double hue_channel(double hue, double offset)
{
    return fmin(fmax(fabs(fmod(hue + offset, 6) - 3) - 1, 0), 1);
}

static unsigned level_of(double share)
{
    return (unsigned)lround(255 * share) & 255u;
}

svg_colour svg_colour_of(size_t index)
{
    /* steps of the golden angle keep near indices apart */
    const double hue = fmod(0.6 + 6 * 0.61803398875 * (double)index, 6), pale = 0.45 + 0.12 * (double)(index % 3);
    svg_colour colour;
    snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", level_of(pale + (1 - pale) * hue_channel(hue, 0)),
             level_of(pale + (1 - pale) * hue_channel(hue, 4)), level_of(pale + (1 - pale) * hue_channel(hue, 2)));
    return colour;
}

/* The colour of item `index`, dark enough for lines on white. */
static svg_colour dark_colour_of(size_t index)
{
    const double hue = fmod(0.6 + 6 * 0.61803398875 * (double)index, 6);
    svg_colour colour;
    snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", level_of(0.55 * hue_channel(hue, 0)),
             level_of(0.55 * hue_channel(hue, 4)), level_of(0.55 * hue_channel(hue, 2)));
    return colour;
}

svg_colour svg_shade(double share)
{
    svg_colour colour;
    const unsigned level = level_of(0.95 - 0.42 * fmin(fmax(share, 0), 1));
    snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", level, level, level);
    return colour;
}

static void write_title(svg *s, const char *title)
{
    text_buffer_add(&s->body, "<title>");
    write_escaped(&s->body, title);
    text_buffer_add(&s->body, "</title>");
}

void svg_box(svg *s, svg_rect r, const char *fill, const char *stroke, const char *title)
{
    text_buffer_print(
        &s->body,
        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"%s\" stroke-width=\"0.8\"",
        r.x, r.y, r.width, r.height, fill, stroke);
    if (!title) {
        text_buffer_add(&s->body, "/>\n");
        return;
    }
    text_buffer_add(&s->body, ">");
    write_title(s, title);
    text_buffer_add(&s->body, "</rect>\n");
}

void svg_line(svg *s, double x, double y, double to_x, double to_y, const char *stroke)
{
    text_buffer_print(&s->body,
                      "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" stroke-width=\"0.8\"/>\n", x,
                      y, to_x, to_y, stroke);
}

/* The numbers of dashes and marks have no common divisor, so that their pairs repeat only after
 * DASHES * MARKS series. */
static const char *const dashes[] = {"none", "9,4", "2,3", "12,3,2,3", "5,2"};
static const char *const marks[] = {"M-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0 Z",
                                    "M-4,-4 H4 V4 H-4 Z",
                                    "M0,-5 L5,4 H-5 Z",
                                    "M0,-6 L6,0 L0,6 L-6,0 Z",
                                    "M0,5 L5,-4 H-5 Z",
                                    "M-5,-3 L-3,-5 L0,-2 L3,-5 L5,-3 L2,0 L5,3 L3,5 L0,2 L-3,5 L-5,3 L-2,0 Z",
                                    "M-1.6,-5 H1.6 V-1.6 H5 V1.6 H1.6 V5 H-1.6 V1.6 H-5 V-1.6 H-1.6 Z"};
enum { DASHES = sizeof dashes / sizeof *dashes, MARKS = sizeof marks / sizeof *marks };
static_assert(DASHES * MARKS == SVG_SERIES, "every mark goes with every dash");

void svg_curve(svg *s, size_t index, const svg_point *points, size_t count)
{
    if (count < 2)
        return;
    text_buffer_print(&s->body,
                      "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\" stroke-dasharray=\"%s\" points=\"",
                      dark_colour_of(index).text, dashes[index % DASHES]);
    for (size_t i = 0; i < count; i++)
        text_buffer_print(&s->body, "%s%.2f,%.2f", i > 0 ? " " : "", points[i].x, points[i].y);
    text_buffer_add(&s->body, "\"/>\n");
}

void svg_mark(svg *s, size_t index, svg_point at, int full, const char *title)
{
    const svg_colour colour = dark_colour_of(index);
    text_buffer_print(&s->body,
                      "<path transform=\"translate(%.2f %.2f)\" d=\"%s\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1\">",
                      at.x, at.y, marks[index % MARKS], full ? colour.text : "#ffffff", colour.text);
    if (title)
        write_title(s, title);
    text_buffer_add(&s->body, "</path>\n");
}

void svg_whisker(svg *s, size_t index, double x, double y, double to_y)
{
    text_buffer_print(
        &s->body, "<path d=\"M%.2f,%.2f h8 m-4,0 V%.2f m-4,0 h8\" fill=\"none\" stroke=\"%s\" stroke-width=\"1\"/>\n",
        x - 4, y, to_y, dark_colour_of(index).text);
}

void svg_band(svg *s, double x, double y, double to_x, double to_y, double height, const char *fill, const char *title)
{
    const double middle = (x + to_x) / 2;
    text_buffer_print(
        &s->body,
        "<path d=\"M%.2f,%.2f C%.2f,%.2f %.2f,%.2f %.2f,%.2f L%.2f,%.2f C%.2f,%.2f %.2f,%.2f %.2f,%.2f Z\" fill=\"%s\" "
        "fill-opacity=\"0.65\" stroke=\"#404040\" stroke-width=\"%.2f\">",
        x, y, middle, y, middle, to_y, to_x, to_y, to_x, to_y + height, middle, to_y + height, middle, y + height, x,
        y + height, fill, height < THIN ? 0.05 : 0.35);
    write_title(s, title);
    text_buffer_add(&s->body, "</path>\n");
}

void svg_flow(svg *s, svg_point from, svg_point to, const char *stroke, double width, int arrow, const char *title)
{
    const double end = arrow ? to.y - 6 : to.y, middle = (from.y + end) / 2;
    text_buffer_print(&s->body,
                      "<path d=\"M%.2f,%.2f C%.2f,%.2f %.2f,%.2f %.2f,%.2f\" fill=\"none\" stroke=\"%s\" "
                      "stroke-width=\"%.1f\">",
                      from.x, from.y, from.x, middle, to.x, middle, to.x, end, stroke, width);
    if (title)
        write_title(s, title);
    text_buffer_add(&s->body, "</path>\n");
    if (arrow)
        text_buffer_print(&s->body, "<path d=\"M%.2f,%.2f L%.2f,%.2f L%.2f,%.2f Z\" fill=\"%s\"/>\n", to.x - 4,
                          to.y - 7, to.x + 4, to.y - 7, to.x, to.y, stroke);
}

double svg_text_width(double size, size_t characters)
{
    return CHARACTER * size * (double)characters;
}

static void cut_to_width(char *text, svg_style style)
{
    const size_t room = (size_t)fmax(style.width / (CHARACTER * style.size * (style.bold ? BOLD : 1)), 3);
    if (strlen(text) > room)
        strcpy(text + room - 2, "..");
}

static void write_text(svg *s, double x, double y, svg_style style, const char *attributes, char *text)
{
    cut_to_width(text, style);
    text_buffer_print(&s->body, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" text-anchor=\"%s\"%s%s>", x, y,
                      style.size, style.anchor, style.bold ? " font-weight=\"bold\"" : "", attributes);
    write_escaped(&s->body, text);
    text_buffer_add(&s->body, "</text>\n");
}

void svg_text(svg *s, double x, double y, svg_style style, const char *format, ...)
{
    char text[MOST_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_text(s, x, y, style, "", text);
}

void svg_upward_text(svg *s, double x, double y, svg_style style, const char *format, ...)
{
    char text[MOST_TEXT], turned[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(turned, sizeof turned, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    write_text(s, x, y, style, turned, text);
}

/* The number of characters of `words` in the first line, at most `room`; a line ends at a space or
 * after a +. 0 if the first word is longer. */
static size_t line_length(const char *words, size_t room)
{
    size_t length = 0;
    for (size_t end = 1; end <= room && words[end - 1] != '\0'; end++)
        if (words[end] == '\0' || words[end] == ' ' || words[end - 1] == '+')
            length = end;
    return length;
}

/* The number of characters that fit into a width. */
static size_t room_of(double width, double size)
{
    return (size_t)fmax(width / (CHARACTER * size), 0);
}

/* Writes words in lines, the first at (x, y), or with NULL for `s` only counts the lines; returns
 * the number of lines, 0 if a word is too long. */
static size_t write_lines(svg *s, double x, double y, svg_style style, const char *words)
{
    size_t lines = 0;
    for (; *words != '\0'; lines++) {
        const size_t length = line_length(words, room_of(style.width, style.size));
        if (length == 0)
            return 0;
        if (s)
            svg_text(s, x, y + LINE * style.size * (double)lines, style, "%.*s", (int)length, words);
        words += length + (words[length] == ' ');
    }
    return lines;
}

int svg_words(svg *s, svg_rect r, double size, const char *words)
{
    const svg_style style = {size, "middle", r.width - 3, 0};
    const size_t lines = write_lines(NULL, 0, 0, style, words);
    if (lines == 0 || (double)lines * LINE * size > r.height)
        return 0;
    write_lines(s, r.x + r.width / 2, r.y + r.height / 2 + (CENTRE - LINE * (double)(lines - 1) / 2) * size, style,
                words);
    return 1;
}

int svg_upward_words(svg *s, svg_rect r, double size, const char *words)
{
    if (svg_text_width(size, strlen(words)) > r.height - 3 || LINE * size > r.width)
        return 0;
    svg_upward_text(s, r.x + r.width / 2 + CENTRE * size, r.y + r.height / 2, (svg_style){size, "middle", r.height, 0},
                    "%s", words);
    return 1;
}

double svg_paragraph(svg *s, double x, double y, double width, double size, const char *words)
{
    const svg_style style = {size, "start", width, 0};
    const double lines = fmax((double)write_lines(NULL, 0, 0, style, words), 1);
    write_lines(s, x, y + size, style, words);
    return y + LINE * size * lines + 4;
}
