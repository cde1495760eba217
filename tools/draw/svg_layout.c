#include "draw/svg_layout.h"

#include "draw/blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Upper bound of the pieces of a dim: more would be too small to see. */
#define MOST_PIECES 64

#define HEADING    14.0
#define LABEL      11.0
#define NUMBER     9.0
#define LARGEST    13 /* greatest and smallest font sizes in a block */
#define SMALLEST   6
#define LEAST_ROW  11.0 /* height of a row that letters fit into */
#define LEAST      18.0 /* least length of a piece, if there is room */
#define STRIP      64.0
#define COLUMN_GAP 16.0 /* half of the gap between the two layouts */
#define HIGHEST    340.0

/* The edges of the pieces of a dim on the page. */
typedef struct edges {
    double at[MOST_PIECES + 1];
} edges;

/* Gives every piece a least length, and a share of the rest in proportion to its size. */
static edges place(const block_cuts *cuts, double begin, double length)
{
    const double n = (double)cuts->count, least = fmin(LEAST, length / n / 2);
    const double whole = (double)cuts->at[cuts->count] - (double)cuts->at[0];
    edges e;
    e.at[0] = begin;
    for (size_t i = 0; i < cuts->count; i++)
        e.at[i + 1] = e.at[i] + least + (length - n * least) * ((double)cuts->at[i + 1] - (double)cuts->at[i]) / whole;
    return e;
}

/* The height of a picture: in proportion to the rows, within bounds; a strip for a tensor of one
 * dim. */
static double body_height(const blocks *b, double width)
{
    if (!blocks_have_dim(b, 0))
        return STRIP;
    const double rows = (double)b->cuts[0].at[b->cuts[0].count], columns = (double)b->cuts[1].at[b->cuts[1].count];
    const double pieces = (double)b->cuts[0].count, most = fmax(HIGHEST, LEAST_ROW * pieces);
    return fmin(fmax(width * rows / columns, fmin(most, fmax(80, LEAST * pieces))), most);
}

static size_t print_number(int64_t number, char text[24])
{
    return (size_t)snprintf(text, 24, "%lld", (long long)number);
}

/* Writes the tensor's size at the end, and the first index of every piece at its edge unless it
 * would overlap another or go beyond `right`. */
static void number_columns(svg *s, const block_cuts *cuts, const edges *e, double y, double right)
{
    char text[24];
    const svg_style style = {NUMBER, "middle", 200, 0};
    const double last = svg_text_width(NUMBER, print_number(cuts->at[cuts->count], text)) / 2;
    const double end = fmin(e->at[cuts->count], right - last);
    svg_text(s, end, y, style, "%s", text);
    double free_from = -1;
    for (size_t i = 0; i < cuts->count; i++) {
        const double half = svg_text_width(NUMBER, print_number(cuts->at[i], text)) / 2;
        if (e->at[i] - half < free_from || e->at[i] + half + 3 > end - last)
            continue;
        svg_text(s, e->at[i], y, style, "%s", text);
        free_from = e->at[i] + half + 3;
    }
}

static void number_rows(svg *s, const block_cuts *cuts, const edges *e, double x)
{
    const svg_style style = {NUMBER, "end", 200, 0};
    const double end = e->at[cuts->count];
    svg_text(s, x, end + NUMBER / 3, style, "%lld", (long long)cuts->at[cuts->count]);
    double free_from = -1;
    for (size_t i = 0; i < cuts->count; i++) {
        if (e->at[i] < free_from || e->at[i] + NUMBER > end)
            continue;
        svg_text(s, x, e->at[i] + NUMBER / 3, style, "%lld", (long long)cuts->at[i]);
        free_from = e->at[i] + NUMBER + 1;
    }
}

/* The width of the row numbers, left of the blocks. */
static double row_margin(const blocks *b)
{
    char text[24];
    return blocks_have_dim(b, 0) ? svg_text_width(NUMBER, print_number(b->cuts[0].at[b->cuts[0].count], text)) + 8 : 0;
}

static size_t first_owner(const blocks *b, size_t row, size_t column)
{
    size_t i = 0;
    while (i + 1 < b->owner_count && !blocks_own(b, &b->owners[i], row, column))
        i++;
    return i;
}

/* Labels a block in the largest font that fits, across or upwards, or with "..". */
static void label_block(svg *s, svg_rect r, const char *name)
{
    for (int size = LARGEST; size >= SMALLEST; size--)
        if (svg_words(s, r, size, name) || (r.height > r.width && svg_upward_words(s, r, size, name)))
            return;
    svg_words(s, r, SMALLEST, "..");
}

static void draw_block(svg *s, const blocks *b, const edges *rows, const edges *columns, size_t row, size_t column)
{
    char name[BLOCK_NAME_BYTES], title[BLOCK_NAME_BYTES + 128];
    blocks_name(b, row, column, name);
    snprintf(title, sizeof title, "[%lld, %lld) x [%lld, %lld): %s", (long long)b->cuts[0].at[row],
             (long long)b->cuts[0].at[row + 1], (long long)b->cuts[1].at[column], (long long)b->cuts[1].at[column + 1],
             name);
    const svg_rect r = {columns->at[column], rows->at[row], columns->at[column + 1] - columns->at[column],
                        rows->at[row + 1] - rows->at[row]};
    const svg_colour colour = svg_colour_of((size_t)b->owners[first_owner(b, row, column)].rank);
    svg_box(s, r, colour.text, "#000000", title);
    if (strchr(name, '+'))
        svg_box(s, r, SVG_HATCH, SVG_NONE, NULL);
    label_block(s, r, name);
}

#define IDLE       "Ranks that hold nothing:"
#define IDLE_BYTES (sizeof IDLE + BLOCK_NAME_BYTES)

static bool is_idle(const blocks *b, const block_owner *owner)
{
    int64_t shape[TSR_MAX_DIMS];
    bool idle = tsr_layout_local(b->layout, owner->coordinate, shape, NULL) != TSR_OK;
    for (int d = 0; d < b->ndim; d++)
        idle = idle || shape[d] == 0;
    return idle;
}

/* Writes a sentence that lists the ranks that hold nothing; false if there are none. */
static bool name_idle(const blocks *b, char text[IDLE_BYTES])
{
    size_t used = (size_t)snprintf(text, IDLE_BYTES, IDLE);
    for (size_t i = 0; i < b->owner_count; i++)
        if (is_idle(b, &b->owners[i]))
            used += (size_t)snprintf(text + used, IDLE_BYTES - used, " %lld", (long long)b->owners[i].rank);
    return used > strlen(IDLE);
}

static bool has_partial(const tsr_layout *layout)
{
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(layout)); d++)
        if (tsr_layout_placements(layout)[d].kind == TSR_PARTIAL)
            return true;
    return false;
}

/* Writes notes below the blocks; returns the y where they end. */
static double draw_notes(svg *s, const blocks *b, double x, double y, double width)
{
    char idle[IDLE_BYTES];
    if (b->owner_count > 0 && has_partial(b->layout))
        y = svg_paragraph(s, x, y, width, LABEL, "Hatched: ranks joined by + hold terms of one value.");
    return name_idle(b, idle) ? svg_paragraph(s, x, y, width, LABEL, idle) : y;
}

/* A layout and its place on the page. */
typedef struct panel {
    const tsr_layout *layout;
    double x, y, width;
    blocks b; /* zeroed for a layout that is not drawn */
} panel;

static void draw_blocks(svg *s, panel *p, double high)
{
    const blocks *const b = &p->b;
    const double left = p->x + row_margin(b), wide = p->x + p->width - 24 - left;
    const edges rows = place(&b->cuts[0], p->y + 16, high), columns = place(&b->cuts[1], left, wide);
    if (blocks_have_dim(b, 1))
        number_columns(s, &b->cuts[1], &columns, p->y + 11, p->x + p->width);
    if (blocks_have_dim(b, 0))
        number_rows(s, &b->cuts[0], &rows, left - 4);
    for (size_t r = 0; r < b->cuts[0].count; r++)
        for (size_t c = 0; c < b->cuts[1].count; c++)
            draw_block(s, b, &rows, &columns, r, c);
    p->y = draw_notes(s, b, left, p->y + 20 + high, wide);
}

/* The reason why a layout is not drawn; NULL if it is. */
static const char *refusal(const panel *p)
{
    if (p->b.owner_count == 0)
        return "Not drawn: layouts are drawn of tensors of at most 2 dims on at most 64 ranks, with at most 4096 "
               "intervals each.";
    if (p->b.cuts[0].count > MOST_PIECES || p->b.cuts[1].count > MOST_PIECES)
        return "Not drawn: the tensor has more than 64 blocks on a side.";
    return p->b.cuts[0].count == 0 || p->b.cuts[1].count == 0 ? "The tensor is empty." : NULL;
}

static void draw_panel(svg *s, panel *p, double high)
{
    if (!refusal(p))
        draw_blocks(s, p, high);
    else
        p->y = draw_notes(s, &p->b, p->x, svg_paragraph(s, p->x, p->y, p->width, LABEL, refusal(p)), p->width);
}

static tsr_status read_panel(panel *p)
{
    return blocks_possible(p->layout) ? blocks_read(p->layout, &p->b) : TSR_OK;
}

/* Draws both layouts at the greater of their two heights, since they are of one tensor. */
static void draw_panels(svg *s, panel panels[2])
{
    double high = 0;
    for (int i = 0; i < 2; i++)
        if (!refusal(&panels[i]))
            high = fmax(high, body_height(&panels[i].b, panels[i].width));
    for (int i = 0; i < 2; i++)
        draw_panel(s, &panels[i], high);
}

tsr_status svg_layouts(svg *s, const tsr_layout *const layouts[2], const char *const headings[2], svg_rect place,
                       double *end)
{
    panel panels[2] = {{.layout = layouts[0]}, {.layout = layouts[1]}};
    for (int i = 0; i < 2; i++) {
        panels[i].width = place.width / 2 - COLUMN_GAP;
        panels[i].x = place.x + (i == 0 ? 0 : place.width - panels[i].width);
        panels[i].y = place.y + HEADING + 8;
        svg_text(s, panels[i].x, place.y + HEADING, (svg_style){HEADING, "start", panels[i].width, 1}, "%s",
                 headings[i]);
    }
    tsr_status status = read_panel(&panels[0]);
    if (status == TSR_OK)
        status = read_panel(&panels[1]);
    if (status == TSR_OK)
        draw_panels(s, panels);
    *end = fmax(panels[0].y, panels[1].y);
    blocks_finish(&panels[0].b);
    blocks_finish(&panels[1].b);
    return status;
}
