#include "draw/svg_traffic.h"

#include "cli/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST (2 * TRAFFIC_RANKS)

#define HEADING 14.0
#define LABEL   9.0
#define BAR     10.0  /* the width of a rank's bar */
#define SIDE    104.0 /* width of the text beside a bar: rank and bytes */
#define GAP     3.0   /* gap between bars */
#define LEAST   8.0   /* the height of a bar without bytes */
#define LARGEST 44.0  /* greatest side of a cell of the table */

/* A rank as a sender or a receiver of the step. */
typedef struct node {
    size_t place;     /* index in traffic.ranks */
    int64_t bytes;    /* that it sends or receives in the step */
    double y, height; /* of its bar */
    double used;      /* height of the bands drawn at its bar so far */
} node;

typedef struct column {
    node at[MOST];
    size_t count;
    int64_t bytes;
} column;

typedef struct scene {
    const traffic *t;
    size_t step;
    column from, to;
    int64_t most; /* greatest number of bytes from one rank to another */
    double scale; /* height of a byte */
} scene;

/* Lists the ranks of the mesh on one side, and ranks outside it that send (or receive) in this
 * step. */
static void list_nodes(scene *c, bool receivers)
{
    const traffic *const t = c->t;
    column *const side = receivers ? &c->to : &c->from;
    for (size_t i = 0; i < t->count; i++) {
        int64_t bytes = 0;
        for (size_t j = 0; j < t->count; j++)
            bytes += receivers ? *traffic_at(t, c->step, j, i) : *traffic_at(t, c->step, i, j);
        if (bytes == 0 && !(receivers ? t->destination[i] : t->source[i]))
            continue;
        side->at[side->count++] = (node){.place = i, .bytes = bytes};
        side->bytes += bytes;
    }
}

static int64_t between(const scene *c, size_t from, size_t to)
{
    return *traffic_at(c->t, c->step, c->from.at[from].place, c->to.at[to].place);
}

static double least_height(const column *side)
{
    return (double)side->count * (LEAST + GAP);
}

/* Places the bars of one side from the top down, with heights in proportion to bytes above the
 * least height; centres the side. */
static void place_nodes(column *side, double y, double height, double scale)
{
    double at = y + (height - least_height(side) - scale * (double)side->bytes) / 2;
    for (size_t i = 0; i < side->count; i++) {
        node *const n = &side->at[i];
        n->y = at;
        n->height = LEAST + scale * (double)n->bytes;
        at += n->height + GAP;
    }
}

static int64_t rank_of(const scene *c, const node *n)
{
    return c->t->ranks[n->place];
}

static void draw_nodes(svg *s, const scene *c, const column *side, double x, bool receivers)
{
    for (size_t i = 0; i < side->count; i++) {
        const node *const n = &side->at[i];
        char bytes[BYTES_TEXT], title[128];
        const long long rank = (long long)rank_of(c, n);
        snprintf(title, sizeof title, "rank %lld %s %lld bytes", rank, receivers ? "receives" : "sends",
                 (long long)n->bytes);
        svg_box(s, (svg_rect){x, n->y, BAR, n->height}, svg_colour_of((size_t)rank).text, "#000000", title);
        print_short_bytes(n->bytes, bytes);
        const double middle = n->y + n->height / 2 + LABEL / 3;
        const svg_style style = {LABEL, receivers ? "start" : "end", SIDE, 0};
        if (receivers)
            svg_text(s, x + BAR + 4, middle, style, "%lld: %s", rank, bytes);
        else
            svg_text(s, x - 4, middle, style, "%lld: %s", rank, bytes);
    }
}

static void draw_bands(svg *s, scene *c, double x, double to_x)
{
    for (size_t i = 0; i < c->from.count; i++) {
        for (size_t j = 0; j < c->to.count; j++) {
            const int64_t bytes = between(c, i, j);
            if (bytes == 0)
                continue;
            node *const from = &c->from.at[i], *const to = &c->to.at[j];
            const double height = fmax(c->scale * (double)bytes, 0.4);
            char title[128];
            snprintf(title, sizeof title, "rank %lld to rank %lld: %lld bytes", (long long)rank_of(c, from),
                     (long long)rank_of(c, to), (long long)bytes);
            svg_band(s, x, from->y + LEAST / 2 + from->used, to_x, to->y + LEAST / 2 + to->used, height,
                     svg_colour_of((size_t)rank_of(c, from)).text, title);
            from->used += c->scale * (double)bytes;
            to->used += c->scale * (double)bytes;
        }
    }
}

/* Draws the bars and bands, in the height that the side with more ranks needs; returns the
 * height. */
static double draw_flow(svg *s, scene *c, double x, double y, double width)
{
    const double least = fmax(least_height(&c->from), least_height(&c->to)), height = fmax(1.5 * least, 260);
    c->scale = (height - least) / (double)c->from.bytes;
    place_nodes(&c->from, y + 16, height, c->scale);
    place_nodes(&c->to, y + 16, height, c->scale);
    const double left = x + SIDE, right = x + width - SIDE - BAR;
    svg_text(s, left + BAR, y + 10, (svg_style){LABEL, "end", SIDE + BAR, 1}, "rank: bytes sent");
    svg_text(s, right, y + 10, (svg_style){LABEL, "start", SIDE + BAR + 20, 1}, "rank: bytes received");
    draw_bands(s, c, left + BAR, right);
    draw_nodes(s, c, &c->from, left, false);
    draw_nodes(s, c, &c->to, right, true);
    return 16 + height;
}

static void draw_cell(svg *s, const scene *c, size_t i, size_t j, svg_rect r)
{
    const int64_t bytes = between(c, i, j), from = rank_of(c, &c->from.at[i]), to = rank_of(c, &c->to.at[j]);
    if (bytes == 0) {
        svg_box(s, r, from == to ? SVG_DOTS : SVG_NONE, "#c0c0c0", NULL);
        return;
    }
    char title[128], text[BYTES_TEXT];
    snprintf(title, sizeof title, "from %lld to %lld: %lld bytes", (long long)from, (long long)to, (long long)bytes);
    svg_box(s, r, svg_shade((double)bytes / (double)c->most).text, "#808080", title);
    print_short_bytes(bytes, text);
    for (int smaller = 0; smaller < 4; smaller++)
        if (svg_words(s, r, LABEL + 1 - smaller, text))
            return;
}

/* The number of digits of the largest rank. */
static size_t rank_digits(const scene *c)
{
    return (size_t)snprintf(NULL, 0, "%lld", (long long)c->t->ranks[c->t->count - 1]);
}

/* Writes a rank above its column, turned if the column is narrow. */
static void draw_column_head(svg *s, double x, double y, double cell, double wide, long long rank)
{
    if (wide + 2 <= cell)
        svg_text(s, x, y, (svg_style){LABEL, "middle", SIDE, 0}, "%lld", rank);
    else
        svg_upward_text(s, x + LABEL / 3, y, (svg_style){LABEL, "start", SIDE, 0}, "%lld", rank);
}

/* Writes ranks beside the rows and above the columns, leaving out those that would overlap. */
static void draw_heads(svg *s, const scene *c, double x, double y, double cell)
{
    const size_t stride = (size_t)ceil((LABEL + 1) / cell);
    const double wide = svg_text_width(LABEL, rank_digits(c));
    for (size_t i = 0; i < c->from.count; i += stride)
        svg_text(s, x - 4, y + ((double)i + 0.5) * cell + LABEL / 3, (svg_style){LABEL, "end", SIDE, 0}, "%lld",
                 (long long)rank_of(c, &c->from.at[i]));
    for (size_t j = 0; j < c->to.count; j += stride)
        draw_column_head(s, x + ((double)j + 0.5) * cell, y - 4, cell, wide, (long long)rank_of(c, &c->to.at[j]));
}

static double draw_table(svg *s, const scene *c, double x, double y, double width)
{
    const double head = svg_text_width(LABEL, rank_digits(c)) + 10, left = x + head + 14, top = y + head + 30;
    const double cell = fmin((width - head - 16) / (double)c->to.count, LARGEST);
    svg_text(s, left, y + 10, (svg_style){LABEL, "start", width - head, 1},
             "bytes from each sender (row) to each receiver (column)");
    svg_text(s, left, y + 24, (svg_style){LABEL, "start", width - head, 0},
             "dotted: the same rank, whose own bytes do not travel");
    draw_heads(s, c, left, top, cell);
    for (size_t i = 0; i < c->from.count; i++)
        for (size_t j = 0; j < c->to.count; j++)
            draw_cell(s, c, i, j, (svg_rect){left + cell * (double)j, top + cell * (double)i, cell, cell});
    return top - y + cell * (double)c->from.count;
}

static void make_scene(const traffic *t, size_t step, scene *c)
{
    *c = (scene){.t = t, .step = step};
    list_nodes(c, false);
    list_nodes(c, true);
    for (size_t i = 0; i < c->from.count; i++)
        for (size_t j = 0; j < c->to.count; j++)
            c->most = between(c, i, j) > c->most ? between(c, i, j) : c->most;
}

double svg_traffic(svg *s, const traffic *t, size_t step, const char *heading, double x, double y, double width)
{
    svg_text(s, x, y + HEADING, (svg_style){HEADING, "start", width, 1}, "%s", heading);
    const double top = y + HEADING + 12, flow = 0.44 * width;
    scene c;
    make_scene(t, step, &c);
    if (c.from.bytes == 0) {
        return svg_paragraph(s, x, top - 4, width, 11, "Nothing crosses from rank to rank here.") - y;
    }
    return top - y + fmax(draw_flow(s, &c, x, top, flow), draw_table(s, &c, x + flow + 24, top, width - flow - 24));
}
