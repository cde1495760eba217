#include "cli/report.h"
#include "cli/words.h"
#include "draw/svg.h"
#include "files/profile.h"
#include "simulate/simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE  "What moves take, by the model of the links"
#define WIDTH  1000.0
#define MARGIN 28.0
/* Edges and sizes of the panels. */
#define LEFT   120.0
#define RIGHT  (WIDTH - 40.0)
#define TOP    86.0
#define HEIGHT 230.0
#define GAP    34.0 /* between panels */
#define NOUGHT 20.0 /* height of the lowest power above the line for 0, if values of 0 occur */
#define LINES  7    /* approximate number of lines across a panel */
#define LINE   18.0 /* height of a line of the legend */

#define INK  "#202020"
#define GRID "#d0d0d0"

/* The quantity that a panel shows against ranks. */
typedef struct quantity {
    const char *name;
    double (*of)(const simulation *s);
    void (*print)(double value, char text[BYTES_TEXT]);
    double base; /* lines are at powers of this */
} quantity;

/* A panel: its place on the page, and the values at its edges as powers of the quantity's base. */
typedef struct panel {
    const quantity *shows;
    double top, bottom;
    double least, most; /* powers at the lower and upper edge; infinite if all values are 0 */
    bool nought;        /* some values are 0: they lie on the lower edge, below the least power */
} panel;

/* What the panels share. */
typedef struct plot {
    const simulation *all;
    size_t count, series;
    double least_ranks, most_ranks; /* bounds of the x axis: whole logarithms to base 2 */
    bool measured;
    svg_point *points; /* scratch for `count` points */
    svg out;
} plot;

/* The rows [begin, end) of one line, all of one move. */
typedef struct series {
    size_t index, begin, end;
} series;

static double seconds_of(const simulation *s)
{
    return s->figures.seconds;
}

static double received_of(const simulation *s)
{
    return (double)s->figures.bytes_received.max;
}

static double workspace_of(const simulation *s)
{
    return (double)s->figures.workspace_bytes;
}

static void print_axis_bytes(double value, char text[BYTES_TEXT])
{
    char digits[BYTES_TEXT];
    print_short_bytes((int64_t)value, digits);
    snprintf(text, BYTES_TEXT, "%.40sB", digits);
    if (value <= 9999)
        snprintf(text, BYTES_TEXT, "%.40s B", digits);
}

static const quantity quantities[] = {{"time", seconds_of, print_seconds, 10},
                                      {"received, most by a rank", received_of, print_axis_bytes, 2},
                                      {"workspace, most of a rank", workspace_of, print_axis_bytes, 2}};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

static bool is_same_move(const simulation *a, const simulation *b)
{
    return a->options.mode == b->options.mode && a->dtype == b->dtype && a->shape.ndim == b->shape.ndim &&
           memcmp(a->shape.size, b->shape.size, sizeof a->shape.size) == 0 && strcmp(a->from, b->from) == 0 &&
           strcmp(a->to, b->to) == 0;
}

/* Advances to the next series; false past the last. */
static bool next_series(const plot *p, series *s)
{
    s->index += s->end > 0;
    s->begin = s->end;
    while (s->end < p->count && is_same_move(&p->all[s->begin], &p->all[s->end]))
        s->end++;
    return s->begin < s->end;
}

static double power_of(const panel *a, double value)
{
    return log(value) / log(a->shows->base);
}

static void widen(panel *a, double value)
{
    if (value <= 0) {
        a->nought = true;
        return;
    }
    /* 1e-9: a value that rounding moved off a power counts as the power */
    a->least = fmin(a->least, floor(power_of(a, value) + 1e-9));
    a->most = fmax(a->most, ceil(power_of(a, value) - 1e-9));
}

/* The panel whose edges enclose all points, at least one power apart. */
static panel find_edges(const plot *p, size_t index)
{
    const double top = TOP + (HEIGHT + GAP) * (double)index;
    panel a = {&quantities[index], top, top + HEIGHT, INFINITY, -INFINITY, false};
    for (size_t i = 0; i < p->count; i++) {
        widen(&a, a.shows->of(&p->all[i]));
        if (p->measured && index == 0) {
            widen(&a, p->all[i].measured.min);
            widen(&a, p->all[i].measured.max);
        }
    }
    a.most = fmax(a.most, a.least + 1);
    return a;
}

static double x_of_power(const plot *p, double power)
{
    return LEFT + (RIGHT - LEFT) * (power - p->least_ranks) / (p->most_ranks - p->least_ranks);
}

/* The x of a row: series are shifted sideways, so that equal points do not hide each other. */
static double x_of(const plot *p, const simulation *row, size_t index)
{
    const double x = x_of_power(p, log2((double)row->ranks)), room = x_of_power(p, 1) - x_of_power(p, 0);
    return x + fmin(14, 0.7 * room / (double)p->series) * ((double)index - (double)(p->series - 1) / 2);
}

static double y_of(const panel *a, double value)
{
    const double lowest = a->bottom - (a->nought ? NOUGHT : 0);
    return value > 0 ? lowest - (lowest - a->top) * (power_of(a, value) - a->least) / (a->most - a->least) : a->bottom;
}

static void draw_level(plot *p, const panel *a, double value)
{
    char text[BYTES_TEXT] = "0";
    const double y = y_of(a, value);
    if (value > 0)
        a->shows->print(value, text);
    svg_line(&p->out, LEFT, y, RIGHT, y, GRID);
    svg_text(&p->out, LEFT - 8, y + 4, (svg_style){12, "end", LEFT - MARGIN - 16, 0}, "%s", text);
}

static void draw_levels(plot *p, const panel *a)
{
    if (a->nought)
        draw_level(p, a, 0);
    if (!isfinite(a->least))
        return;
    const int step = (int)fmax(ceil((a->most - a->least) / LINES), 1);
    for (int power = (int)a->least; power <= (int)a->most; power += step)
        draw_level(p, a, pow(a->shows->base, power));
}

static void draw_columns(plot *p, const panel *a)
{
    const int step = p->most_ranks - p->least_ranks > 12 ? 2 : 1;
    for (int power = (int)p->least_ranks + 1; power < (int)p->most_ranks; power += step) {
        const double x = x_of_power(p, power);
        svg_line(&p->out, x, a->top, x, a->bottom, GRID);
        if (a->shows == &quantities[QUANTITIES - 1])
            svg_text(&p->out, x, a->bottom + 18, (svg_style){12, "middle", 70, 0}, "%.0f", pow(2, power));
    }
}

static void draw_frame(plot *p, const panel *a)
{
    draw_levels(p, a);
    draw_columns(p, a);
    svg_box(&p->out, (svg_rect){LEFT, a->top, RIGHT - LEFT, a->bottom - a->top}, SVG_NONE, INK, NULL);
    svg_upward_text(&p->out, MARGIN, (a->top + a->bottom) / 2, (svg_style){13, "middle", HEIGHT, 0}, "%s",
                    a->shows->name);
}

static void draw_point(plot *p, const panel *a, const simulation *row, size_t index, double value, bool full)
{
    char text[BYTES_TEXT], title[BYTES_TEXT + 96];
    a->shows->print(value, text);
    snprintf(title, sizeof title, "%lld ranks, %s: %s%s%s", (long long)row->ranks, a->shows->name,
             row->estimated ? "~" : "", text, full ? "" : " measured");
    svg_mark(&p->out, index, (svg_point){x_of(p, row, index), y_of(a, value)}, full, title);
}

/* Draws a series: a line with full marks for the model's values, empty marks with whiskers for
 * measured times. */
static void draw_series(plot *p, const panel *a, series s)
{
    for (size_t i = s.begin; i < s.end; i++)
        p->points[i - s.begin] = (svg_point){x_of(p, &p->all[i], s.index), y_of(a, a->shows->of(&p->all[i]))};
    svg_curve(&p->out, s.index, p->points, s.end - s.begin);
    for (size_t i = s.begin; i < s.end; i++) {
        const simulation *const row = &p->all[i];
        const spread *const measured = &row->measured;
        if (p->measured && a->shows == quantities) {
            svg_whisker(&p->out, s.index, p->points[i - s.begin].x, y_of(a, measured->min), y_of(a, measured->max));
            draw_point(p, a, row, s.index, measured->median, false);
        }
        draw_point(p, a, row, s.index, a->shows->of(row), true);
    }
}

static void draw_panel(plot *p, const panel *a)
{
    draw_frame(p, a);
    for (series s = {0}; next_series(p, &s);)
        draw_series(p, a, s);
}

static void draw_legend(plot *p, series s, double y)
{
    char shape[SHAPE_TEXT_BYTES];
    const simulation *const first = &p->all[s.begin];
    const svg_point line[] = {{LEFT, y - 4}, {LEFT + 60, y - 4}};
    print_shape(first->shape.ndim, first->shape.size, shape);
    svg_curve(&p->out, s.index, line, 2);
    svg_mark(&p->out, s.index, (svg_point){LEFT + 30, y - 4}, 1, NULL);
    svg_text(&p->out, LEFT + 72, y, (svg_style){12, "start", RIGHT - LEFT - 72, 0}, "%s %s, %s -> %s, %s", shape,
             tsr_dtype_name(first->dtype), first->from, first->to, mode_name(first->options.mode));
}

/* The fewest ranks of a row with estimates; 0 if there is none. */
static int64_t first_estimate(const plot *p)
{
    int64_t least = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].estimated && (least == 0 || p->all[i].ranks < least))
            least = p->all[i].ranks;
    return least;
}

static void draw_heading(plot *p)
{
    const svg_style style = {12, "start", WIDTH - 2 * MARGIN, 0};
    const int64_t estimated = first_estimate(p);
    char links[LINKS_TEXT_BYTES];
    profile_print_links(p->all[0].links, links);
    svg_text(&p->out, MARGIN, 32, (svg_style){18, "start", WIDTH - 2 * MARGIN, 1}, "%s", TITLE);
    if (p->measured)
        svg_text(&p->out, MARGIN, 54, style,
                 "links as they were measured, for each number of ranks; empty marks: measured times, whiskers from "
                 "least to most");
    else
        svg_text(&p->out, MARGIN, 54, style, "%s (seconds, bytes a second)", links);
    if (estimated > 0)
        svg_text(&p->out, MARGIN, 72, style, "from %lld ranks on figures are estimates", (long long)estimated);
}

static void find_ranks(plot *p)
{
    p->least_ranks = INFINITY;
    p->most_ranks = -INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        const double ranks = log2((double)p->all[i].ranks);
        p->least_ranks = fmin(p->least_ranks, floor(ranks));
        p->most_ranks = fmax(p->most_ranks, ceil(ranks));
    }
    /* keeps points off the edges */
    p->least_ranks -= 1;
    p->most_ranks += 1;
}

static void draw(plot *p, char **text, size_t *bytes)
{
    double y = TOP + (HEIGHT + GAP) * QUANTITIES + 22;
    svg_begin(&p->out);
    draw_heading(p);
    for (size_t i = 0; i < QUANTITIES; i++) {
        const panel a = find_edges(p, i);
        draw_panel(p, &a);
    }
    svg_text(&p->out, (LEFT + RIGHT) / 2, y - 14, (svg_style){13, "middle", RIGHT - LEFT, 0},
             "ranks; series stand side by side");
    y += LINE;
    for (series s = {0}; next_series(p, &s); y += LINE)
        draw_legend(p, s, y);
    svg_end(&p->out, WIDTH, y + MARGIN - LINE, TITLE, text, bytes);
}

void simulation_plot(const simulation *all, size_t count, char **text, size_t *bytes)
{
    plot p = {.all = all, .count = count, .measured = all[0].measured_links != NULL};
    *text = NULL;
    p.points = calloc(count, sizeof *p.points);
    if (!p.points)
        return;
    for (series s = {0}; next_series(&p, &s);)
        p.series++;
    find_ranks(&p);
    draw(&p, text, bytes);
    free(p.points);
}
