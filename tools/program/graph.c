#include "program/graph.h"

#include "cli/report.h"
#include "cli/words.h"

#include <tessera/sys/status.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static tsr_status lack(void)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the picture");
}

/* Makes room for one more item. */
static tsr_status grow(void **items, size_t bytes, size_t count, size_t *room)
{
    if (count < *room)
        return TSR_OK;
    const size_t wanted = *room ? 2 * *room : 64;
    void *const larger = realloc(*items, wanted * bytes);
    if (!larger)
        return lack();
    *items = larger;
    *room = wanted;
    return TSR_OK;
}

tsr_status graph_add_box(graph *g, box_kind kind, size_t level, size_t *out)
{
    void *items = g->boxes;
    TSR_TRY(grow(&items, sizeof *g->boxes, g->box_count, &g->box_room));
    g->boxes = items;
    g->boxes[g->box_count] = (box){.kind = kind, .level = level};
    *out = g->box_count++;
    return TSR_OK;
}

tsr_status graph_add_join(graph *g, size_t from, size_t to, size_t source, tsr_value value)
{
    void *items = g->joins;
    TSR_TRY(grow(&items, sizeof *g->joins, g->join_count, &g->join_room));
    g->joins = items;
    g->joins[g->join_count++] = (join){from, to, source, value, 0};
    return TSR_OK;
}

static void add_line(box *b, const char *format, ...) TSR_PRINTF(2, 3);

static void add_line(box *b, const char *format, ...)
{
    va_list arguments;
    if (b->line_count == BOX_LINES)
        return;
    va_start(arguments, format);
    vsnprintf(b->lines[b->line_count++], BOX_TEXT, format, arguments);
    va_end(arguments);
}

/* "NAME 4x8 f32 S(0)", behind `what`. */
static void add_value_line(const graph *g, box *b, const char *what, tsr_value value)
{
    char name[VALUE_NAME_BYTES], shape[SHAPE_TEXT_BYTES];
    const tsr_layout *const layout = tsr_value_layout(g->count->request->program, value);
    char *const placements = layout_text(layout);
    print_value(g->count->request->program, value, name);
    print_shape(tsr_layout_ndim(layout), tsr_layout_shape(layout), shape);
    add_line(b, "%s%.36s %.24s %s %.26s", what, name, shape, tsr_dtype_name(tsr_layout_dtype(layout)),
             placements ? placements : "");
    if (!placements)
        say_memory_is_short();
    free(placements);
}

static bool is_input(const graph *g, tsr_value value)
{
    const char *const name = tsr_value_name(g->count->request->program, value);
    for (size_t i = 0; name && i < tsr_executable_input_count(g->count->first); i++)
        if (strcmp(tsr_executable_input_name(g->count->first, i), name) == 0)
            return true;
    return false;
}

/* The box of a value, or -1; that of an input is made when a step first takes it. */
static tsr_status find_maker(graph *g, tsr_value value, int *out)
{
    size_t made;
    if (g->maker[value] < 0 && is_input(g, value)) {
        TSR_TRY(graph_add_box(g, BOX_INPUT, 0, &made));
        add_value_line(g, &g->boxes[made], "", value);
        g->maker[value] = (int)made;
    }
    *out = g->maker[value];
    return TSR_OK;
}

/* Joins a step's box to that of an operand; parameters and constants are lines of its text. */
static tsr_status join_operand(graph *g, size_t lower, tsr_value value)
{
    int maker;
    TSR_TRY(find_maker(g, value, &maker));
    if (maker >= 0)
        return graph_add_join(g, (size_t)maker, lower, (size_t)maker, value);
    /* What the backward itself makes has no name. */
    if (tsr_value_label(g->count->request->program, value))
        add_value_line(g, &g->boxes[lower], "with ", value);
    return TSR_OK;
}

/* The level below all makers of a step's operands. */
static size_t find_level(const graph *g, const tsr_executable_step *what)
{
    size_t level = 0;
    for (int i = 0; i < what->operand_count; i++) {
        const tsr_value value = what->operands[i] == TSR_NONE ? TSR_NONE : g->same[what->operands[i]];
        if (value != TSR_NONE && g->maker[value] >= 0 && g->boxes[g->maker[value]].level + 1 > level)
            level = g->boxes[g->maker[value]].level + 1;
    }
    return level ? level : 1;
}

static void describe_move(const program_step *step, box *b)
{
    char bytes[BYTES_TEXT], seconds[BYTES_TEXT];
    char *const from = layout_text(step->what.operand_layouts[0]), *const to =
                                                                       layout_text(step->what.result_layouts[0]);
    print_short_bytes(step->bytes.max, bytes);
    print_seconds(step->seconds, seconds);
    add_line(b, "%.40s -> %.40s", from ? from : "", to ? to : "");
    if (step->bytes.max > 0)
        add_line(b, "%sB to a rank, %s", bytes, seconds);
    else
        add_line(b, "no bytes move");
    if (step->what.cause)
        add_line(b, "put in for %.60s", step->what.cause);
    free(from);
    free(to);
}

static void describe_op(const graph *g, const program_step *step, box *b)
{
    char text[BYTES_TEXT], seconds[BYTES_TEXT];
    print_seconds(step->seconds, seconds);
    if (step->what.is_view)
        add_line(b, "%.60s", step->what.op);
    else
        add_line(b, "%.60s, %s", step->what.op, seconds);
    for (int i = 0; i < step->what.result_count; i++)
        add_value_line(g, b, "", step->what.results[i]);
    print_short_bytes(step->bytes.max, text);
    if (step->bytes.max > 0)
        add_line(b, "ranks exchange %sB each", text);
}

static box_kind kind_of(const tsr_executable_step *what)
{
    if (is_move(what))
        return what->cause ? BOX_CHOSEN : BOX_MOVE;
    return what->is_view ? BOX_VIEW : BOX_OP;
}

static tsr_status add_step(graph *g, const program_step *step)
{
    const tsr_executable_step *const what = &step->what;
    size_t made;
    if (strcmp(what->op, "vary") == 0) {
        g->same[what->results[0]] = g->same[what->operands[0]];
        return TSR_OK;
    }
    TSR_TRY(graph_add_box(g, kind_of(what), find_level(g, what), &made));
    g->boxes[made].bytes = step->bytes.max;
    if (is_move(what))
        describe_move(step, &g->boxes[made]);
    else
        describe_op(g, step, &g->boxes[made]);
    for (int i = 0; i < what->operand_count; i++)
        if (what->operands[i] != TSR_NONE)
            TSR_TRY(join_operand(g, made, g->same[what->operands[i]]));
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        if (what->results[i] != TSR_NONE)
            g->maker[what->results[i]] = (int)made;
    return TSR_OK;
}

static tsr_status add_output(graph *g, size_t index)
{
    size_t made;
    int maker;
    const tsr_value value = g->same[tsr_executable_output_value(g->count->first, index)];
    TSR_TRY(find_maker(g, value, &maker));
    TSR_TRY(graph_add_box(g, BOX_OUTPUT, maker < 0 ? 0 : g->boxes[maker].level + 1, &made));
    add_line(&g->boxes[made], "output %.80s", tsr_executable_output_name(g->count->first, index));
    return maker < 0 ? TSR_OK : graph_add_join(g, (size_t)maker, made, (size_t)maker, value);
}

/* The highest level of the boxes that take a box's results; SIZE_MAX: none does. */
static size_t find_taker(const graph *g, size_t index)
{
    size_t level = SIZE_MAX;
    for (size_t i = 0; i < g->join_count; i++)
        if (g->joins[i].from == index && g->boxes[g->joins[i].to].level < level)
            level = g->boxes[g->joins[i].to].level;
    return level;
}

static bool takes_any(const graph *g, size_t index)
{
    size_t i = 0;
    while (i < g->join_count && g->joins[i].to != index)
        i++;
    return i < g->join_count;
}

/* Brings moves, and what takes no other box's result, down to the first box that takes them. A box
 * that takes others was added after them, so that boxes are visited from the last; then inputs. */
static void sink_boxes(graph *g)
{
    for (int inputs = 0; inputs < 2; inputs++) {
        for (size_t i = g->box_count; i > 0; i--) {
            box *const b = &g->boxes[i - 1];
            const bool may = b->kind == BOX_MOVE || b->kind == BOX_CHOSEN || !takes_any(g, i - 1);
            const size_t taker = may && (b->kind == BOX_INPUT) == inputs ? find_taker(g, i - 1) : SIZE_MAX;
            b->level = taker != SIZE_MAX ? taker - 1 : b->level;
        }
    }
}

/* Leaves out lines between boxes that are far apart: the lower box names the value. */
static void cut_far_joins(graph *g)
{
    size_t kept = 0;
    char name[VALUE_NAME_BYTES];
    for (size_t i = 0; i < g->join_count; i++) {
        const join *const j = &g->joins[i];
        if (g->boxes[j->to].level - g->boxes[j->from].level <= FAR_LEVELS) {
            g->joins[kept++] = *j;
            continue;
        }
        print_value(g->count->request->program, j->value, name);
        add_line(&g->boxes[j->to], "with %.60s from above", name);
    }
    g->join_count = kept;
}

tsr_status graph_make(const program_count *c, graph *out)
{
    *out = (graph){.count = c};
    while (tsr_value_layout(c->request->program, (tsr_value)out->value_count))
        out->value_count++;
    out->maker = malloc((out->value_count + 1) * sizeof *out->maker);
    out->same = malloc((out->value_count + 1) * sizeof *out->same);
    if (!out->maker || !out->same)
        return lack();
    for (size_t i = 0; i < out->value_count; i++) {
        out->maker[i] = -1;
        out->same[i] = (tsr_value)i;
    }
    for (size_t i = 0; i < c->count; i++)
        TSR_TRY(add_step(out, &c->steps[i]));
    for (size_t i = 0; i < tsr_executable_output_count(c->first); i++)
        TSR_TRY(add_output(out, i));
    sink_boxes(out);
    cut_far_joins(out);
    return TSR_OK;
}

void graph_finish(graph *g)
{
    for (size_t i = 0; g->levels && i < g->level_count; i++)
        free(g->levels[i]);
    free(g->levels);
    free(g->sizes);
    free(g->boxes);
    free(g->joins);
    free(g->maker);
    free(g->same);
}
