#include "program/place_boxes.h"

#include "draw/svg.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE  10.0
#define LINE       13.0
#define GAP        22.0 /* between boxes of a level */
#define LEVEL_GAP  34.0
#define BEND_WIDTH 8.0

/* How often boxes are ordered, and moved, by their neighbours. */
#define SWEEPS 12

static void measure_boxes(graph *g)
{
    for (size_t i = 0; i < g->box_count; i++) {
        box *const b = &g->boxes[i];
        b->width = BEND_WIDTH;
        for (int k = 0; k < b->line_count; k++) {
            const double width = svg_text_width(TEXT_SIZE * (k == 0 ? 1.12 : 1), strlen(b->lines[k])) + 14;
            b->width = width > b->width ? width : b->width;
        }
        b->height = b->kind == BOX_BEND ? 0 : LINE * b->line_count + 8;
    }
}

/* Cuts lines that pass levels into pieces, from one level to the next. */
static tsr_status add_bends(graph *g)
{
    const size_t count = g->join_count;
    for (size_t i = 0; i < count; i++) {
        const size_t to = g->joins[i].to, source = g->joins[i].source;
        const tsr_value value = g->joins[i].value;
        size_t above = g->joins[i].from, bend;
        bool is_first = true;
        for (size_t level = g->boxes[above].level + 1; level < g->boxes[to].level; level++) {
            TSR_TRY(graph_add_box(g, BOX_BEND, level, &bend));
            if (is_first)
                g->joins[i].to = bend;
            else
                TSR_TRY(graph_add_join(g, above, bend, source, value));
            is_first = false;
            above = bend;
        }
        if (!is_first)
            TSR_TRY(graph_add_join(g, above, to, source, value));
    }
    return TSR_OK;
}

static tsr_status list_levels(graph *g)
{
    for (size_t i = 0; i < g->box_count; i++)
        g->level_count = g->boxes[i].level + 1 > g->level_count ? g->boxes[i].level + 1 : g->level_count;
    g->levels = calloc(g->level_count + 1, sizeof *g->levels);
    g->sizes = calloc(g->level_count + 1, sizeof *g->sizes);
    bool short_of_memory = !g->levels || !g->sizes;
    for (size_t i = 0; i < g->box_count && !short_of_memory; i++)
        g->sizes[g->boxes[i].level]++;
    for (size_t i = 0; i < g->level_count && !short_of_memory; i++) {
        g->levels[i] = calloc(g->sizes[i] + 1, sizeof *g->levels[i]);
        short_of_memory = !g->levels[i];
        g->sizes[i] = 0;
    }
    if (short_of_memory)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the picture");
    for (size_t i = 0; i < g->box_count; i++) {
        box *const b = &g->boxes[i];
        b->place = g->sizes[b->level]++;
        g->levels[b->level][b->place] = i;
    }
    return TSR_OK;
}

static int by_level(const void *a, const void *b)
{
    const join *const x = a, *const y = b;
    return x->level < y->level ? -1 : x->level > y->level;
}

/* Sorts lines by the level where they begin. */
static void sort_joins(graph *g)
{
    for (size_t i = 0; i < g->join_count; i++)
        g->joins[i].level = g->boxes[g->joins[i].from].level;
    if (g->join_count)
        qsort(g->joins, g->join_count, sizeof *g->joins, by_level);
}

/* The first line that begins in a level, or below. */
static size_t first_join(const graph *g, size_t level)
{
    size_t low = 0, high = g->join_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (g->joins[middle].level < level)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Lets each box of a level wish for the mean position of its neighbours in the level above, or
 * below; for its own where it has none. Positions are places, or x. */
static void find_wishes(graph *g, size_t level, bool above, bool by_place)
{
    for (size_t i = 0; i < g->sizes[level]; i++) {
        g->boxes[g->levels[level][i]].wish = 0;
        g->boxes[g->levels[level][i]].neighbours = 0;
    }
    const size_t from = above ? level - 1 : level;
    for (size_t i = first_join(g, from); i < g->join_count && g->joins[i].level == from; i++) {
        box *const own = &g->boxes[above ? g->joins[i].to : g->joins[i].from];
        const box *const other = &g->boxes[above ? g->joins[i].from : g->joins[i].to];
        own->wish += by_place ? (double)other->place : other->x;
        own->neighbours++;
    }
    for (size_t i = 0; i < g->sizes[level]; i++) {
        box *const b = &g->boxes[g->levels[level][i]];
        b->wish = b->neighbours ? b->wish / b->neighbours : by_place ? (double)b->place : b->x;
    }
}

/* Orders the boxes of a level by their wishes; equal ones stay in order. */
static void order_level(graph *g, size_t level)
{
    size_t *const list = g->levels[level];
    for (size_t i = 1; i < g->sizes[level]; i++) {
        const size_t moved = list[i];
        size_t at = i;
        for (; at > 0 && g->boxes[list[at - 1]].wish > g->boxes[moved].wish; at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
    for (size_t i = 0; i < g->sizes[level]; i++)
        g->boxes[list[i]].place = i;
}

/* The least distance of the middles of two neighbours. */
static double distance(const box *left, const box *right)
{
    return (left->width + right->width) / 2 + GAP;
}

/* Moves the boxes of a level to their wishes, as far as they do not overlap: the mean of pushing
 * them to the right and to the left. */
static void shift_level(graph *g, size_t level)
{
    const size_t *const list = g->levels[level];
    const size_t count = g->sizes[level];
    for (size_t i = 0; i < count; i++) {
        box *const b = &g->boxes[list[i]];
        const double least = i ? g->boxes[list[i - 1]].x + distance(&g->boxes[list[i - 1]], b) : b->wish;
        b->x = b->wish > least ? b->wish : least;
    }
    double right = 0;
    for (size_t i = count; i > 0; i--) {
        box *const b = &g->boxes[list[i - 1]];
        const double most = i < count ? right - distance(b, &g->boxes[list[i]]) : b->wish;
        right = b->wish < most ? b->wish : most;
        b->x = (b->x + right) / 2;
    }
}

static void visit_levels(graph *g, bool by_place)
{
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (size_t i = 1; i < g->level_count; i++) {
            const size_t level = sweep % 2 ? g->level_count - 1 - i : i;
            find_wishes(g, level, sweep % 2 == 0, by_place);
            if (by_place)
                order_level(g, level);
            else
                shift_level(g, level);
        }
    }
}

static void place_levels(graph *g, double top, double *bottom)
{
    double y = top;
    for (size_t level = 0; level < g->level_count; level++) {
        double height = 0;
        for (size_t i = 0; i < g->sizes[level]; i++)
            height = g->boxes[g->levels[level][i]].height > height ? g->boxes[g->levels[level][i]].height : height;
        for (size_t i = 0; i < g->sizes[level]; i++) {
            box *const b = &g->boxes[g->levels[level][i]];
            b->height = b->kind == BOX_BEND ? height : b->height;
            b->y = y + (height - b->height) / 2;
        }
        y += height + LEVEL_GAP;
    }
    *bottom = y - LEVEL_GAP;
}

/* Moves all boxes so that the leftmost begins at `left`. */
static void move_to(graph *g, double left, double *right)
{
    double least = left, most = left;
    for (size_t i = 0; i < g->box_count; i++) {
        const double edge = g->boxes[i].x - g->boxes[i].width / 2;
        least = i == 0 || edge < least ? edge : least;
    }
    for (size_t i = 0; i < g->box_count; i++) {
        g->boxes[i].x += left - least;
        most = g->boxes[i].x + g->boxes[i].width / 2 > most ? g->boxes[i].x + g->boxes[i].width / 2 : most;
    }
    *right = most;
}

tsr_status place_boxes(graph *g, double left, double top, double *right, double *bottom)
{
    TSR_TRY(add_bends(g));
    measure_boxes(g);
    TSR_TRY(list_levels(g));
    sort_joins(g);
    visit_levels(g, true);
    for (size_t level = 0; level < g->level_count; level++) {
        for (size_t i = 0; i < g->sizes[level]; i++)
            g->boxes[g->levels[level][i]].wish = 0;
        shift_level(g, level);
    }
    visit_levels(g, false);
    place_levels(g, top, bottom);
    move_to(g, left, right);
    return TSR_OK;
}
