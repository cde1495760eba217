#include "program/draw.h"

#include "cli/report.h"
#include "cli/words.h"
#include "draw/svg.h"
#include "program/place_boxes.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define MARGIN      28.0
#define LEAST_WIDTH 760.0

/* How boxes of a kind look, and what the legend says of them. */
static const struct {
    const char *fill, *stroke, *line, *meaning;
} looks[] = {
    [BOX_INPUT] = {"#e4e4e4", "#606060", "#808080", "input"},
    [BOX_OP] = {"#dce9f7", "#35618e", "#606060", "op"},
    [BOX_VIEW] = {"#ffffff", "#9ab0c6", "#606060", "view: costs nothing"},
    [BOX_MOVE] = {"#ffd9a0", "#b06000", "#d07800", "move that the program says"},
    [BOX_CHOSEN] = {"#ffb9ae", "#b02010", "#d03020", "move put in by the policy"},
    [BOX_OUTPUT] = {"#d5efd0", "#3a7a2c", "#808080", "output"},
    [BOX_BEND] = {"#ffffff", "#ffffff", "#606060", NULL},
};

static bool moves(const box *b)
{
    return b->kind == BOX_MOVE || b->kind == BOX_CHOSEN;
}

/* A line is coloured where it leads to a move, or from one. */
static void draw_join(svg *s, const graph *g, const join *j)
{
    const box *const from = &g->boxes[j->from], *const to = &g->boxes[j->to], *const source = &g->boxes[j->source];
    const box *const coloured = moves(to) ? to : source;
    const double width = moves(coloured) ? 2.2 : 1;
    svg_flow(s, (svg_point){from->x, from->y + from->height}, (svg_point){to->x, to->y}, looks[coloured->kind].line,
             width, to->kind != BOX_BEND, source->lines[source->line_count > 1 ? 1 : 0]);
    if (to->kind == BOX_BEND)
        svg_flow(s, (svg_point){to->x, to->y}, (svg_point){to->x, to->y + to->height}, looks[coloured->kind].line,
                 width, 0, NULL);
}

static void draw_box(svg *s, const box *b)
{
    const svg_rect r = {b->x - b->width / 2, b->y, b->width, b->height};
    if (b->kind == BOX_BEND)
        return;
    svg_box(s, r, looks[b->kind].fill, looks[b->kind].stroke, b->lines[0]);
    if (b->kind == BOX_OP && b->bytes > 0)
        svg_box(s, (svg_rect){r.x, r.y, 5, r.height}, looks[BOX_MOVE].line, SVG_NONE, NULL);
    for (int i = 0; i < b->line_count; i++)
        svg_text(s, b->x, b->y + 13.5 + 13 * i, (svg_style){10, "middle", b->width, i == 0}, "%s", b->lines[i]);
}

static double draw_legend(svg *s, double y)
{
    double x = MARGIN;
    for (int kind = 0; kind < BOX_BEND; kind++) {
        svg_box(s, (svg_rect){x, y, 14, 12}, looks[kind].fill, looks[kind].stroke, NULL);
        svg_text(s, x + 20, y + 10, (svg_style){10, "start", 300, 0}, "%s", looks[kind].meaning);
        x += 36 + svg_text_width(9, strlen(looks[kind].meaning));
    }
    return y + 30;
}

static double draw_figures(svg *s, const program_count *c, double y, double width)
{
    char most[BYTES_TEXT], peak[BYTES_TEXT], seconds[BYTES_TEXT], line[4 * BYTES_TEXT + 160];
    print_short_bytes(c->bytes.max, most);
    print_short_bytes(c->peak_bytes, peak);
    print_seconds(c->seconds, seconds);
    snprintf(line, sizeof line, "%s receives%s %sB, and takes %sB of memory; %s by the cost model.",
             c->request->one_rank ? "The rank"
             : c->has_totals      ? "A rank"
                                  : "The first rank",
             c->request->one_rank || !c->has_totals ? "" : " at most", most, peak, seconds);
    return svg_paragraph(s, MARGIN, y, width, 12, line) + 10;
}

static tsr_status draw(svg *s, const program_count *c, graph *g, double *width, double *height)
{
    char *const mesh = mesh_text(c->request->mesh);
    double right;
    TSR_TRY(graph_make(c, g));
    TSR_TRY(place_boxes(g, MARGIN, MARGIN + 84, &right, height));
    *width = right + MARGIN > LEAST_WIDTH ? right + MARGIN : LEAST_WIDTH;
    svg_text(s, MARGIN, MARGIN + 10, (svg_style){18, "start", *width - 2 * MARGIN, 1}, "A program on mesh %s",
             mesh ? mesh : "");
    free(mesh);
    draw_legend(s, draw_figures(s, c, MARGIN + 20, *width - 2 * MARGIN));
    for (size_t i = 0; i < g->join_count; i++)
        draw_join(s, g, &g->joins[i]);
    for (size_t i = 0; i < g->box_count; i++)
        draw_box(s, &g->boxes[i]);
    *height += MARGIN;
    return TSR_OK;
}

int program_draw(const program_count *c, char **text, size_t *bytes)
{
    svg s;
    graph g = {.count = c};
    double width = LEAST_WIDTH, height = MARGIN;
    *text = NULL;
    if (c->count > MOST_DRAWN)
        return complain(EXIT_REFUSED, "--svg draws programs of at most %d steps, but this one has %zu", MOST_DRAWN,
                        c->count);
    svg_begin(&s);
    const tsr_status status = draw(&s, c, &g, &width, &height);
    graph_finish(&g);
    svg_end(&s, width, height, "A program", text, bytes);
    if (status == TSR_OK && *text)
        return EXIT_DONE;
    free(*text);
    *text = NULL;
    return status == TSR_OK ? complain(EXIT_REFUSED, "there is no memory for the picture")
                            : complain_status(EXIT_REFUSED);
}
