#include "simulation.h"

#include "report.h"
#include "svg.h"
#include "words.h"

#include <math.h>
#include <string.h>

#define WIDTH  1000.0
#define MARGIN 28.0
/** Of the plot itself. */
#define LEFT   110.0
#define TOP    70.0
#define RIGHT  (WIDTH - 60.0)
#define BOTTOM 520.0

#define INK  "#202020"
#define GRID "#d0d0d0"

/** The rows of one line, all of one move: from `begin` to before `end`. */
typedef struct series {
    size_t begin, end;
} series;

/** The ends of the axes: powers of 2 for ranks, of 10 for seconds. */
typedef struct axes {
    double least_ranks, most_ranks;     /**< logarithms to base 2, whole numbers */
    double least_seconds, most_seconds; /**< to base 10, likewise */
} axes;

static bool is_same_move(const simulation *a, const simulation *b)
{
    return a->options.mode == b->options.mode && a->shape.ndim == b->shape.ndim &&
           memcmp(a->shape.size, b->shape.size, sizeof a->shape.size) == 0 && strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0;
}

static series next_series(const simulation *all, size_t count, size_t begin)
{
    size_t end = begin + 1;
    while (end < count && is_same_move(&all[begin], &all[end]))
        end++;
    return (series){begin, end};
}

/** Axes over all points that take any time, one power at least. */
static axes find_axes(const simulation *all, size_t count)
{
    axes a = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        const double seconds = all[i].figures.seconds > 0 ? log10(all[i].figures.seconds) : NAN;
        const double measured = all[i].measured.median > 0 ? log10(all[i].measured.median) : NAN;
        const double ranks = log2((double)all[i].ranks);
        a.least_ranks = fmin(a.least_ranks, floor(ranks));
        a.most_ranks = fmax(a.most_ranks, ceil(ranks));
        a.least_seconds = fmin(a.least_seconds, floor(fmin(seconds, measured)));
        a.most_seconds = fmax(a.most_seconds, ceil(fmax(seconds, measured)));
    }
    if (!isfinite(a.least_seconds))
        a.least_seconds = a.most_seconds = -6;
    a.most_seconds = fmax(a.most_seconds, a.least_seconds + 1);
    if (a.most_ranks == a.least_ranks) {
        a.least_ranks -= 1;
        a.most_ranks += 1;
    }
    return a;
}

static double x_of(const axes *a, double ranks)
{
    return LEFT + (RIGHT - LEFT) * (log2(ranks) - a->least_ranks) / (a->most_ranks - a->least_ranks);
}

static double y_of(const axes *a, double seconds)
{
    return BOTTOM - (BOTTOM - TOP) * (log10(seconds) - a->least_seconds) / (a->most_seconds - a->least_seconds);
}

static void draw_axes(svg *s, const axes *a)
{
    const int step = a->most_ranks - a->least_ranks > 12 ? 2 : 1;
    for (int power = (int)a->least_seconds; power <= (int)a->most_seconds; power++) {
        char text[BYTES_TEXT];
        const double y = y_of(a, pow(10, power));
        print_seconds(pow(10, power), text);
        svg_line(s, LEFT, y, RIGHT, y, GRID);
        svg_text(s, LEFT - 8, y + 4, (svg_style){12, "end", LEFT - MARGIN - 16, 0}, "%s", text);
    }
    for (int power = a->least_ranks > 0 ? (int)a->least_ranks : 0; power <= (int)a->most_ranks; power += step) {
        const double x = x_of(a, pow(2, power));
        svg_line(s, x, TOP, x, BOTTOM, GRID);
        svg_text(s, x, BOTTOM + 18, (svg_style){12, "middle", 70, 0}, "%.0f", pow(2, power));
    }
    svg_box(s, (svg_rect){LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP}, SVG_NONE, INK, NULL);
    svg_text(s, (LEFT + RIGHT) / 2, BOTTOM + 40, (svg_style){13, "middle", RIGHT - LEFT, 0}, "ranks");
    svg_upward_text(s, MARGIN, (TOP + BOTTOM) / 2, (svg_style){13, "middle", BOTTOM - TOP, 0}, "time");
}

/** "a" .. "z", then "a2" ..: what a legend explains also where colours are not seen. */
static void name_series(size_t index, char text[8])
{
    snprintf(text, 8, index < 26 ? "%c" : "%c%d", 'a' + (char)(index % 26), (int)(index / 26 % 100) + 1);
}

static void draw_point(svg *s, double x, double y, const char *fill, const simulation *point, double seconds)
{
    char text[BYTES_TEXT], title[BYTES_TEXT + 64];
    print_seconds(seconds, text);
    snprintf(title, sizeof title, "%lld ranks: %s", (long long)point->ranks, text);
    svg_box(s, (svg_rect){x - 3, y - 3, 6, 6}, fill, INK, title);
}

/** A line through what the model says, filled squares; empty ones, without a line, for what was measured. */
static void draw_series(svg *s, const axes *a, const simulation *all, series range, size_t index)
{
    const svg_colour colour = svg_colour_of(index);
    char letter[8];
    const simulation *before = NULL;
    name_series(index, letter);
    for (size_t i = range.begin; i < range.end; i++) {
        const simulation *const p = &all[i];
        const double x = x_of(a, (double)p->ranks), seconds = p->figures.seconds;
        if (p->measured.median > 0)
            draw_point(s, x, y_of(a, p->measured.median), "#ffffff", p, p->measured.median);
        if (seconds <= 0)
            continue;
        if (before != NULL)
            svg_line(s, x_of(a, (double)before->ranks), y_of(a, before->figures.seconds), x, y_of(a, seconds), INK);
        draw_point(s, x, y_of(a, seconds), colour.text, p, seconds);
        svg_text(s, x + 7, y_of(a, seconds) + 4 + 12 * (double)(index % 2) - 8, (svg_style){12, "start", 30, 1}, "%s", letter);
        before = p;
    }
}

static double draw_legend(svg *s, const simulation *first, size_t index, double y)
{
    char letter[8], shape[SHAPE_TEXT_BYTES];
    const svg_colour colour = svg_colour_of(index);
    name_series(index, letter);
    print_shape(first->shape.ndim, first->shape.size, shape);
    svg_box(s, (svg_rect){LEFT, y - 9, 10, 10}, colour.text, INK, NULL);
    svg_text(s, LEFT + 18, y, (svg_style){12, "start", RIGHT - LEFT - 18, 0}, "%s: %s %s, %s -> %s, %s%s", letter, shape,
             tsr_dtype_name(first->dtype), first->from, first->to, mode_name(first->options.mode),
             first->figures.seconds > 0 ? "" : "; nothing crosses ranks");
    return y + 18;
}

void simulation_plot(const simulation *all, size_t count, char **text, size_t *bytes)
{
    svg s;
    const axes a = find_axes(all, count);
    char links[128];
    double y = BOTTOM + 70;
    size_t index = 0;
    tsr_cost_print(&all[0].links, links, sizeof links);
    svg_begin(&s);
    svg_text(&s, MARGIN, 32, (svg_style){18, "start", WIDTH - 2 * MARGIN, 1}, "Time of moves by the model of the links");
    svg_text(&s, MARGIN, 54, (svg_style){12, "start", WIDTH - 2 * MARGIN, 0}, "%s (seconds, bytes a second)%s", links,
             all[0].measured.median > 0 ? "; empty squares were measured" : "");
    draw_axes(&s, &a);
    for (size_t begin = 0; begin < count; index++) {
        const series range = next_series(all, count, begin);
        draw_series(&s, &a, all, range, index);
        y = draw_legend(&s, &all[begin], index, y);
        begin = range.end;
    }
    svg_end(&s, WIDTH, y + MARGIN, "Time of moves by the model of the links", text, bytes);
}
