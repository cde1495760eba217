#include "plot.h"

#include "cli/text_buffer.h"
#include "draw/svg.h"
#include "weights.h"

#include <tessera/new_file.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The picture, in pixels. */
enum { WIDTH = 760, HEIGHT = 340, LEFT = 60, TOP = 30, RIGHT = 20, TICKS = 5, LINE = 15, SMALL = 11 };

/* Where values lie. */
typedef struct scale {
    double first, last, low, high;
} scale;

static svg_point point_of(const scale *s, double step, double loss)
{
    const double across = s->last > s->first ? (step - s->first) / (s->last - s->first) : 0.5;
    const double up = s->high > s->low ? (loss - s->low) / (s->high - s->low) : 0.5;
    return (svg_point){LEFT + across * (WIDTH - LEFT - RIGHT), TOP + HEIGHT * (1 - up)};
}

/* Adds a line: a value's name, and its placements. */
static void add_layout(text_buffer *lines, const char *name, const tsr_layout *layout)
{
    char placements[TRAIN_TEXT_BYTES];
    tsr_layout_print(layout, placements, sizeof placements);
    text_buffer_print(lines, "%s  %s\n", name, placements);
}

/* True of a weight of the first layer, or of no layer. */
static bool is_shown(const char *name)
{
    return train_is_weight(name) &&
           (strncmp(name, "model.layers.", 13) != 0 || strncmp(name, "model.layers.0.", 15) == 0);
}

tsr_status train_plot_begin(train_plot *plot, const train_trainer *trainer)
{
    text_buffer lines = {0};
    tsr_executable *const x = trainer->step;
    text_buffer_print(&lines, "mesh %s, %lld windows of %lld tokens a step\n", trainer->plan->mesh,
                      (long long)trainer->plan->batch, (long long)trainer->plan->length);
    add_layout(&lines, "tokens", tsr_executable_input_layout(x, 0));
    for (size_t i = 0; i < tsr_executable_binding_count(x); i++) {
        tsr_executable_binding b;
        if (tsr_executable_binding_at(x, i, &b) == TSR_OK && is_shown(b.name))
            add_layout(&lines, b.name, b.layout);
    }
    plot->layouts = text_buffer_take(&lines, NULL);
    return plot->layouts ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for a plot");
}

tsr_status train_plot_add(train_plot *plot, const train_step *step)
{
    if (plot->count == plot->room) {
        const size_t room = plot->room ? 2 * plot->room : 256;
        train_step *const steps = realloc(plot->steps, room * sizeof *steps);
        if (!steps)
            return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the plot of %zu steps", room);
        plot->steps = steps;
        plot->room = room;
    }
    plot->steps[plot->count++] = *step;
    return TSR_OK;
}

static void include(scale *s, double loss)
{
    if (isfinite(loss)) {
        s->low = fmin(s->low, loss);
        s->high = fmax(s->high, loss);
    }
}

static scale scale_of(const train_plot *plot)
{
    scale s = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < plot->count; i++) {
        include(&s, plot->steps[i].loss);
        if (plot->steps[i].has_validation)
            include(&s, plot->steps[i].validation);
    }
    if (plot->count > 0) {
        s.first = (double)plot->steps[0].step;
        s.last = (double)plot->steps[plot->count - 1].step;
    }
    if (s.low > s.high)
        s.low = 0, s.high = 1;
    return s;
}

static void draw_axes(svg *out, const scale *s)
{
    const svg_style right = {SMALL, "end", LEFT, 0}, middle = {SMALL, "middle", WIDTH, 0};
    for (int i = 0; i <= TICKS; i++) {
        const double part = (double)i / TICKS, loss = s->low + part * (s->high - s->low);
        const double step = s->first + floor(part * (s->last - s->first));
        const svg_point across = point_of(s, s->first, loss), along = point_of(s, step, s->low);
        svg_line(out, LEFT, across.y, WIDTH - RIGHT, across.y, "#dddddd");
        svg_text(out, LEFT - 6, across.y + 4, right, "%.3f", loss);
        svg_text(out, along.x, TOP + HEIGHT + LINE, middle, "%.0f", step);
    }
}

/* Draws the losses of steps, or of validations, with their name; those that are not finite are left
 * out. */
static tsr_status draw_series(svg *out, const scale *s, const train_plot *plot, bool validations)
{
    size_t count = 0;
    svg_point *const points = calloc(plot->count + 1, sizeof *points);
    if (!points)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the plot of %zu steps", plot->count);
    for (size_t i = 0; i < plot->count; i++) {
        const train_step *const step = &plot->steps[i];
        const double loss = validations ? step->validation : step->loss;
        if (isfinite(loss) && (!validations || step->has_validation))
            points[count++] = point_of(s, (double)step->step, loss);
    }
    svg_curve(out, validations, points, count);
    for (size_t i = 0; i < count && validations; i++)
        svg_mark(out, 1, points[i], 1, "validation");
    free(points);
    return TSR_OK;
}

/* Writes the lines of layouts below the plot; returns where they end. */
static double draw_layouts(svg *out, const char *lines)
{
    const svg_style style = {SMALL, "start", WIDTH - LEFT - RIGHT, 0};
    double y = TOP + HEIGHT + 3 * LINE;
    for (const char *at = lines; at && *at != '\0'; at += strcspn(at, "\n") + 1, y += LINE)
        svg_text(out, LEFT, y, style, "%.*s", (int)strcspn(at, "\n"), at);
    return y;
}

static tsr_status draw(const train_plot *plot, char **text, size_t *bytes)
{
    svg out;
    const scale s = scale_of(plot);
    svg_begin(&out);
    svg_text(&out, LEFT, TOP - 10, (svg_style){SMALL + 2, "start", WIDTH, 1}, "Loss by step; marks: validation");
    draw_axes(&out, &s);
    tsr_status status = draw_series(&out, &s, plot, false);
    if (status == TSR_OK)
        status = draw_series(&out, &s, plot, true);
    svg_end(&out, WIDTH, draw_layouts(&out, plot->layouts), "Loss by step", text, bytes);
    if (status == TSR_OK && !*text)
        status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for the plot of %zu steps", plot->count);
    return status;
}

tsr_status train_plot_write(const train_plot *plot, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    tsr_new_file *file;
    tsr_status status = draw(plot, &text, &bytes);
    if (status == TSR_OK)
        status = tsr_new_file_create(path, &file);
    if (status == TSR_OK) {
        status = tsr_new_file_write(file, text, bytes);
        if (status == TSR_OK)
            status = tsr_new_file_publish(file);
        else
            tsr_new_file_discard(file);
    }
    free(text);
    return status;
}

void train_plot_finish(train_plot *plot)
{
    free(plot->steps);
    free(plot->layouts);
    *plot = (train_plot){0};
}
