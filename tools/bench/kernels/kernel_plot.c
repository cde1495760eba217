#include "bench/kernels/kernel_bench.h"
#include "cli/words.h"
#include "draw/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE  "How fast kernels are in each of their ways"
#define WIDTH  1000.0
#define MARGIN 28.0
#define LEFT   110.0
#define RIGHT  (WIDTH - 40.0)
#define TOP    86.0
#define HEIGHT 220.0
#define GAP    64.0
#define LEVELS 4
#define LINE   18.0 /* height of a line of the legend */

#define INK  "#202020"
#define GRID "#d0d0d0"

/* The rows of one kernel, size and number of ranks, drawn in one frame. */
typedef struct panel {
    const kernel_figures *first;
    double top;
    double most; /* bytes a second at the upper edge; the lower edge is 0 */
} panel;

typedef struct plot {
    const kernel_figures *rows;
    size_t count;
    double least_run, most_run; /* bounds of the x axis: whole logarithms to base 2 of the bytes of a run */
    svg out;
} plot;

static bool belongs(const kernel_figures *a, const kernel_figures *b)
{
    return strcmp(a->request.kernel, b->request.kernel) == 0 && a->request.ranks == b->request.ranks &&
           llabs(a->request.bytes - b->request.bytes) <= a->request.bytes / 64;
}

/* True if `row` is the first row of its panel. */
static bool begins_panel(const plot *p, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (belongs(&p->rows[i], &p->rows[row]))
            return false;
    return true;
}

static size_t way_index(const kernel_figures *row)
{
    size_t way = 0;
    while (tsr_kernel_way_get(way) && strcmp(tsr_kernel_way_get(way), row->way) != 0)
        way++;
    return way;
}

static double x_of(const plot *p, double run)
{
    return LEFT + (RIGHT - LEFT) * (log2(run) - p->least_run) / (p->most_run - p->least_run);
}

static double y_of(const panel *a, double bandwidth)
{
    return a->top + HEIGHT * (1 - bandwidth / a->most);
}

static void find_runs(plot *p)
{
    p->least_run = INFINITY;
    p->most_run = -INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        const double run = log2((double)p->rows[i].request.run_bytes);
        p->least_run = fmin(p->least_run, floor(run) - 1);
        p->most_run = fmax(p->most_run, ceil(run) + 1);
    }
}

static panel make_panel(const plot *p, const kernel_figures *first, double top)
{
    panel a = {.first = first, .top = top, .most = 1e9};
    for (size_t i = 0; i < p->count; i++)
        if (belongs(first, &p->rows[i]))
            a.most = fmax(a.most, ceil(1.05 * p->rows[i].bandwidth / 1e9) * 1e9);
    return a;
}

static void draw_frame(plot *p, const panel *a)
{
    char bytes[BYTES_TEXT], run[BYTES_TEXT];
    print_short_bytes(a->first->request.bytes, bytes);
    svg_text(&p->out, LEFT, a->top - 8, (svg_style){13, "start", RIGHT - LEFT, 1}, "%s, %sB a call, %d rank%s",
             a->first->request.kernel, bytes, a->first->request.ranks, a->first->request.ranks == 1 ? "" : "s");
    for (int level = 0; level <= LEVELS; level++) {
        const double value = a->most * level / LEVELS, y = y_of(a, value);
        svg_line(&p->out, LEFT, y, RIGHT, y, GRID);
        svg_text(&p->out, LEFT - 8, y + 4, (svg_style){12, "end", LEFT - MARGIN, 0}, "%.1f GB/s", value / 1e9);
    }
    for (int power = (int)p->least_run + 1; power < (int)p->most_run; power += 2) {
        const double x = x_of(p, ldexp(1, power));
        print_short_bytes(INT64_C(1) << power, run);
        svg_line(&p->out, x, a->top, x, a->top + HEIGHT, GRID);
        svg_text(&p->out, x, a->top + HEIGHT + 18, (svg_style){12, "middle", 70, 0}, "%sB", run);
    }
    svg_box(&p->out, (svg_rect){LEFT, a->top, RIGHT - LEFT, HEIGHT}, SVG_NONE, INK, NULL);
}

static svg_point point_of(const plot *p, const panel *a, const kernel_figures *row)
{
    return (svg_point){x_of(p, (double)row->request.run_bytes), y_of(a, row->bandwidth)};
}

/* Draws a way: a line from row to row, with full marks where the way was chosen. */
static void draw_way(plot *p, const panel *a, size_t way)
{
    svg_point line[2];
    size_t drawn = 0;
    for (size_t i = 0; i < p->count; i++) {
        const kernel_figures *const row = &p->rows[i];
        char title[128];
        if (!belongs(a->first, row) || way_index(row) != way)
            continue;
        line[0] = line[1];
        line[1] = point_of(p, a, row);
        if (drawn++ > 0)
            svg_curve(&p->out, way, line, 2);
        snprintf(title, sizeof title, "%s, runs of %lld bytes: %.2f GB/s%s", row->way,
                 (long long)row->request.run_bytes, row->bandwidth / 1e9, row->chosen ? ", chosen" : "");
        svg_mark(&p->out, way, line[1], row->chosen, title);
    }
}

static void draw_legend(plot *p, double y)
{
    for (size_t way = 0; tsr_kernel_way_get(way) != NULL; way++, y += LINE) {
        const svg_point line[] = {{LEFT, y - 4}, {LEFT + 60, y - 4}};
        svg_curve(&p->out, way, line, 2);
        svg_mark(&p->out, way, (svg_point){LEFT + 30, y - 4}, 1, NULL);
        svg_text(&p->out, LEFT + 72, y, (svg_style){12, "start", RIGHT - LEFT - 72, 0}, "%s", tsr_kernel_way_get(way));
    }
}

void kernel_plot(const kernel_figures *rows, size_t count, char **text, size_t *bytes)
{
    plot p = {.rows = rows, .count = count};
    double top = TOP;
    size_t ways = 0;
    svg_begin(&p.out);
    find_runs(&p);
    svg_text(&p.out, MARGIN, 32, (svg_style){18, "start", WIDTH - 2 * MARGIN, 1}, "%s", TITLE);
    svg_text(&p.out, MARGIN, 54, (svg_style){12, "start", WIDTH - 2 * MARGIN, 0},
             "bytes written a second, against bytes that lie together; full marks: the way that calls have chosen");
    for (size_t i = 0; i < count; i++) {
        if (!begins_panel(&p, i))
            continue;
        const panel a = make_panel(&p, &rows[i], top);
        draw_frame(&p, &a);
        for (size_t way = 0; tsr_kernel_way_get(way) != NULL; way++)
            draw_way(&p, &a, way);
        top += HEIGHT + GAP;
    }
    draw_legend(&p, top - 10);
    while (tsr_kernel_way_get(ways))
        ways++;
    svg_end(&p.out, WIDTH, top + LINE * (double)ways + MARGIN - LINE, TITLE, text, bytes);
}
