#include "svg_layout.h"

#include "blocks.h"

#include <math.h>
#include <string.h>

/** Beyond so many a side, blocks are too small to be seen. */
#define MOST_PIECES 64

#define HEADING   14.0
#define LABEL     11.0
#define NUMBER    9.0
#define SMALLEST  6.0
#define MARGIN    44.0 /* for the numbers of rows */
#define LEAST_ROW 18.0 /* of a picture with one row */
#define HIGHEST   340.0

/** Where the pieces of a dim begin and end on the page. */
typedef struct edges {
    double at[MOST_PIECES + 1];
} edges;

/** Every piece gets a little, and a share by its length of what is left. */
static edges place(const block_cuts *cuts, double begin, double length)
{
    const double n = (double)cuts->count, least = fmin(LEAST_ROW, length / n / 2);
    const double whole = (double)cuts->at[cuts->count] - (double)cuts->at[0];
    edges e;
    e.at[0] = begin;
    for (size_t i = 0; i < cuts->count; i++)
        e.at[i + 1] = e.at[i] + least + (length - n * least) * ((double)cuts->at[i + 1] - (double)cuts->at[i]) / whole;
    return e;
}

/** As high as wide where rows are as many as columns, within bounds; a single row is a strip. */
static double body_height(const blocks *b, double width)
{
    if (!blocks_have_dim(b, 0))
        return 64;
    const double rows = (double)b->cuts[0].at[b->cuts[0].count], columns = (double)b->cuts[1].at[b->cuts[1].count];
    const double least = fmin(HIGHEST, fmax(80, LEAST_ROW * (double)b->cuts[0].count));
    return fmin(fmax(width * rows / columns, least), HIGHEST);
}

/** The first index of every piece at its edge, and the size at the last, where they do not run into each other. */
static void number_columns(svg *s, const block_cuts *cuts, const edges *e, double y)
{
    double free_from = -1;
    for (size_t i = 0; i <= cuts->count; i++) {
        char text[24];
        const double half = svg_text_width(NUMBER, (size_t)snprintf(text, sizeof text, "%lld", (long long)cuts->at[i])) / 2;
        if (e->at[i] - half < free_from)
            continue;
        svg_text(s, e->at[i], y, (svg_style){NUMBER, "middle", 200, 0}, "%s", text);
        free_from = e->at[i] + half + 3;
    }
}

static void number_rows(svg *s, const block_cuts *cuts, const edges *e, double x)
{
    double free_from = -1;
    for (size_t i = 0; i <= cuts->count; i++) {
        if (e->at[i] < free_from)
            continue;
        svg_text(s, x, e->at[i] + NUMBER / 3, (svg_style){NUMBER, "end", MARGIN - 6, 0}, "%lld", (long long)cuts->at[i]);
        free_from = e->at[i] + NUMBER + 1;
    }
}

static size_t first_owner(const blocks *b, size_t row, size_t column)
{
    size_t i = 0;
    while (i + 1 < b->owner_count && !blocks_own(b, &b->owners[i], row, column))
        i++;
    return i;
}

/** The largest letters that fit; a viewer shows the title in any case. */
static void label_block(svg *s, svg_rect r, const char *name)
{
    for (double size = LABEL; size >= SMALLEST; size--)
        if (svg_words(s, r, size, name))
            return;
    svg_words(s, r, SMALLEST, "..");
}

static void draw_block(svg *s, const blocks *b, const edges *rows, const edges *columns, size_t row, size_t column)
{
    char name[BLOCK_NAME_BYTES], title[BLOCK_NAME_BYTES + 128];
    blocks_name(b, row, column, name);
    snprintf(title, sizeof title, "[%lld, %lld) x [%lld, %lld): %s", (long long)b->cuts[0].at[row], (long long)b->cuts[0].at[row + 1],
             (long long)b->cuts[1].at[column], (long long)b->cuts[1].at[column + 1], name);
    const svg_rect r = {columns->at[column], rows->at[row], columns->at[column + 1] - columns->at[column],
                        rows->at[row + 1] - rows->at[row]};
    const svg_colour colour = svg_colour_of((size_t)b->owners[first_owner(b, row, column)].rank);
    svg_box(s, r, colour.text, "#000000", title);
    if (strchr(name, '+') != NULL)
        svg_box(s, r, SVG_HATCH, SVG_NONE, NULL);
    label_block(s, r, name);
}

/** Ranks that hold nothing, in one line; "" if there are none. */
static void name_idle(const blocks *b, char text[BLOCK_NAME_BYTES])
{
    int64_t shape[TSR_MAX_DIMS];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < b->owner_count; i++) {
        if (tsr_layout_local(b->layout, b->owners[i].coordinate, shape, NULL) != TSR_OK)
            continue;
        int idle = 0;
        for (int d = 0; d < b->ndim; d++)
            idle |= shape[d] == 0;
        if (idle)
            used += (size_t)snprintf(text + used, BLOCK_NAME_BYTES - used, " %lld", (long long)b->owners[i].rank);
    }
}

static bool has_partial(const tsr_layout *layout)
{
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(layout)); d++)
        if (tsr_layout_placements(layout)[d].kind == TSR_PARTIAL)
            return true;
    return false;
}

/** What the blocks cannot say, below them; returns where that ends. */
static double draw_notes(svg *s, const blocks *b, double x, double y, double width)
{
    char idle[BLOCK_NAME_BYTES];
    const svg_style style = {LABEL, "start", width, 0};
    if (has_partial(b->layout))
        svg_text(s, x, y += 16, style, "Hatched: ranks joined by + hold terms of one value.");
    name_idle(b, idle);
    if (idle[0] == '\0')
        return y;
    svg_text(s, x, y += 16, style, "These ranks hold nothing:");
    svg_words(s, (svg_rect){x, y + 4, width, 60}, NUMBER, idle + 1);
    return y + 68;
}

static double draw_blocks(svg *s, const blocks *b, double x, double y, double width)
{
    const double left = x + MARGIN, wide = width - MARGIN - 20, high = body_height(b, wide);
    const edges rows = place(&b->cuts[0], y + 16, high), columns = place(&b->cuts[1], left, wide);
    if (blocks_have_dim(b, 1))
        number_columns(s, &b->cuts[1], &columns, y + 11);
    if (blocks_have_dim(b, 0))
        number_rows(s, &b->cuts[0], &rows, left - 4);
    for (size_t r = 0; r < b->cuts[0].count; r++)
        for (size_t c = 0; c < b->cuts[1].count; c++)
            draw_block(s, b, &rows, &columns, r, c);
    return draw_notes(s, b, left, y + 16 + high, wide);
}

static double draw_sentence(svg *s, double x, double y, double width, const char *sentence)
{
    svg_text(s, x, y + 16, (svg_style){LABEL, "start", width, 0}, "%s", sentence);
    return y + 24;
}

static double draw_body(svg *s, const blocks *b, double x, double y, double width)
{
    if (b->cuts[0].count == 0 || b->cuts[1].count == 0)
        return draw_notes(s, b, x, draw_sentence(s, x, y, width, "The tensor is empty."), width);
    if (b->cuts[0].count > MOST_PIECES || b->cuts[1].count > MOST_PIECES)
        return draw_sentence(s, x, y, width, "Too many blocks to be drawn: 64 a side are the most.");
    return draw_blocks(s, b, x, y, width);
}

tsr_status svg_layout(svg *s, const tsr_layout *layout, const char *heading, double x, double y, double width, double *height)
{
    svg_text(s, x, y + HEADING, (svg_style){HEADING, "start", width, 1}, "%s", heading);
    const double top = y + HEADING + 8;
    if (!blocks_possible(layout)) {
        *height = draw_sentence(s, x, top, width, "Not drawn: layouts are for tensors of at most 2 dims on at most 64 ranks.") - y;
        return TSR_OK;
    }
    blocks b;
    const tsr_status status = blocks_read(layout, &b);
    if (status != TSR_OK)
        return status;
    *height = draw_body(s, &b, x, top, width) - y;
    blocks_finish(&b);
    return TSR_OK;
}
