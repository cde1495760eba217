/** A program as boxes in levels, each below what it takes, joined by lines. */
#ifndef TESSERA_TOOLS_PROGRAM_GRAPH_H
#define TESSERA_TOOLS_PROGRAM_GRAPH_H

#include "program/count.h"

/** The most lines of text in a box. */
#define BOX_LINES 12
#define BOX_TEXT  96

/** What a box is. */
typedef enum box_kind {
    BOX_INPUT,
    BOX_OP,
    BOX_VIEW,   /**< an op that costs nothing */
    BOX_MOVE,   /**< a redistribution that the program says */
    BOX_CHOSEN, /**< one that the policy put in */
    BOX_OUTPUT,
    BOX_BEND /**< nothing: a line that passes a level goes through it */
} box_kind;

/** A box; x is its middle, y its upper edge. */
typedef struct box {
    box_kind kind;
    size_t level, place; /**< `place`: in the order of the level, from the left */
    double x, y, width, height;
    double wish; /**< where it would lie by its neighbours alone */
    int neighbours;
    int64_t bytes; /**< received by one rank in a move, or inside an op */
    int line_count;
    char lines[BOX_LINES][BOX_TEXT];
} box;

/** A line from a box to one in the next level. */
typedef struct join {
    size_t from, to;
    size_t source; /**< the box whose result it carries */
    tsr_value value;
    size_t level; /**< of `from` */
} join;

typedef struct graph {
    const program_count *count; /**< borrowed */
    box *boxes;
    size_t box_count, box_room;
    join *joins;
    size_t join_count, join_room;
    size_t **levels; /**< boxes of each level, from the left */
    size_t *sizes;   /**< the number of boxes of each level */
    size_t level_count;
    int *maker;      /**< by the program's value: the box that makes it; -1: none */
    tsr_value *same; /**< by the program's value: the value of which it is a varying copy */
    size_t value_count;
} graph;

/** The lines between boxes more than so many levels apart are left out; the lower box names the
 * value. */
#define FAR_LEVELS 12

/** Makes the boxes and lines of a program, without places. TSR_ERROR_MEMORY. The caller calls
 * graph_finish() in any case. */
tsr_status graph_make(const program_count *c, graph *out);
void graph_finish(graph *g);

/** Adds a box, of kind and level. TSR_ERROR_MEMORY. */
tsr_status graph_add_box(graph *g, box_kind kind, size_t level, size_t *out);

/** Adds a line that carries a value. TSR_ERROR_MEMORY. */
tsr_status graph_add_join(graph *g, size_t from, size_t to, size_t source, tsr_value value);

#endif
