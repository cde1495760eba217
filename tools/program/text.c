#include "cli/report.h"
#include "cli/words.h"
#include "program/count.h"

#include <stdlib.h>
#include <string.h>

/* Columns are at most this wide. */
#define WIDEST 36

/* The columns of the table, as texts. */
enum { OP, MAKES, SHAPE, LAYOUT, MOST, ALL, TIME, COLUMNS };
static const char *const headings[COLUMNS] = {"op", "makes", "shape", "layout", "received by one", "by all", "time"};

/* Behind the layout of a value whose gradient is Partial. */
#define VARIES ", varies"

/* A line of the table; `text[LAYOUT]` may be long. */
typedef struct line {
    char text[COLUMNS][VALUE_NAME_BYTES];
} line;

/* Prints both texts of a layout; long placements are cut, so that VARIES fits behind them. */
static void print_layout(const tsr_layout *layout, char shape[VALUE_NAME_BYTES], char placements[VALUE_NAME_BYTES])
{
    char sizes[SHAPE_TEXT_BYTES];
    char *const text = layout_text(layout);
    const size_t room = VALUE_NAME_BYTES - sizeof VARIES;
    const int most = text && strlen(text) > room ? (int)(room - strlen("..")) : (int)room;
    print_shape(tsr_layout_ndim(layout), tsr_layout_shape(layout), sizes);
    snprintf(shape, VALUE_NAME_BYTES, "%s %s", sizes, tsr_dtype_name(tsr_layout_dtype(layout)));
    snprintf(placements, VALUE_NAME_BYTES, "%.*s%s", most, text ? text : "", most < (int)room ? ".." : "");
    if (!text)
        say_memory_is_short();
    free(text);
}

/* What a step costs; nothing where it costs nothing. */
static void print_costs(const program_count *c, const program_step *step, line *out)
{
    if (step->bytes.max > 0)
        print_short_bytes(step->bytes.max, out->text[MOST]);
    if (step->bytes.max > 0 && c->has_totals)
        print_short_bytes(step->bytes.total, out->text[ALL]);
    if (!step->what.is_view)
        print_seconds(step->seconds, out->text[TIME]);
}

/* "R -> S(0)", of a move. */
static void print_change(const program_step *step, line *out)
{
    char from[VALUE_NAME_BYTES], to[VALUE_NAME_BYTES];
    print_layout(step->what.operand_layouts[0], out->text[SHAPE], from);
    print_layout(step->what.result_layouts[0], out->text[SHAPE], to);
    snprintf(out->text[LAYOUT], VALUE_NAME_BYTES, "%.120s -> %.120s", from, to);
}

static void print_step(const program_count *c, const program_step *step, line *out)
{
    char name[VALUE_NAME_BYTES];
    *out = (line){{""}};
    print_value(c->request->program, step->what.results[0], out->text[MAKES]);
    if (step->what.group < 0)
        snprintf(out->text[OP], VALUE_NAME_BYTES, "%s", step->what.op);
    else
        snprintf(out->text[OP], VALUE_NAME_BYTES, "%s, group %d", step->what.op, step->what.group);
    if (is_move(&step->what)) {
        print_value(c->request->program, step->what.operands[0], name);
        snprintf(out->text[MAKES], VALUE_NAME_BYTES, "%s", name);
        snprintf(out->text[OP], VALUE_NAME_BYTES, step->what.cause ? "  move for %.200s" : "move",
                 step->what.cause ? step->what.cause : "");
        print_change(step, out);
    } else {
        print_layout(step->what.result_layouts[0], out->text[SHAPE], out->text[LAYOUT]);
        if (is_varying(c->request->program, step->what.results[0]))
            strcat(out->text[LAYOUT], VARIES);
    }
    print_costs(c, step, out);
}

/* A further result of a step has a line of its own. */
static void print_result(const program_count *c, const program_step *step, int result, line *out)
{
    *out = (line){{""}};
    print_value(c->request->program, step->what.results[result], out->text[MAKES]);
    print_layout(step->what.result_layouts[result], out->text[SHAPE], out->text[LAYOUT]);
}

static void write_line(const line *l, const size_t widths[COLUMNS], text_buffer *to)
{
    size_t pending = 0;
    for (int i = 0; i < COLUMNS; i++) {
        const bool is_number = i >= MOST;
        const size_t length = strlen(l->text[i]), pad = length < widths[i] ? widths[i] - length : 0;
        if (length > 0) {
            text_buffer_print(to, "%*s%s", (int)(pending + (is_number ? pad : 0)), "", l->text[i]);
            pending = is_number ? 2 : pad + 2;
        } else
            pending += widths[i] + 2;
    }
    text_buffer_add(to, "\n");
}

/* Calls for each line of the table: measures it where `to` is NULL, else writes it. */
static void visit_lines(const program_count *c, size_t widths[COLUMNS], text_buffer *to)
{
    line l;
    for (size_t i = 0; i < c->count; i++) {
        const program_step *const step = &c->steps[i];
        for (int result = 0; result < (is_move(&step->what) ? 1 : step->what.result_count); result++) {
            if (result > 0)
                print_result(c, step, result, &l);
            else
                print_step(c, step, &l);
            for (int k = 0; k < COLUMNS && !to; k++) {
                const size_t length = strlen(l.text[k]);
                widths[k] = length > widths[k] && length <= WIDEST ? length : widths[k];
            }
            if (to)
                write_line(&l, widths, to);
        }
    }
}

static void write_table(const program_count *c, text_buffer *to)
{
    size_t widths[COLUMNS];
    line names;
    for (int k = 0; k < COLUMNS; k++) {
        widths[k] = strlen(headings[k]);
        snprintf(names.text[k], sizeof names.text[k], "%s", headings[k]);
    }
    visit_lines(c, widths, NULL);
    write_line(&names, widths, to);
    visit_lines(c, widths, to);
}

/* ": parameters 1.2 KiB, inputs 128 bytes", of what there is. */
static void write_memory(const tsr_executable_memory *m, text_buffer *to)
{
    memory_part parts[MEMORY_PARTS];
    memory_parts(m, parts);
    const char *before = ": ";
    for (size_t i = 0; i < MEMORY_PARTS; i++) {
        char bytes[BYTES_TEXT];
        if (parts[i].bytes == 0)
            continue;
        print_short_bytes((int64_t)parts[i].bytes, bytes);
        text_buffer_print(to, "%s%s %s%sB", before, parts[i].words, bytes, strchr(bytes, ' ') ? "" : " ");
        before = ", ";
    }
}

static void write_totals(const program_count *c, text_buffer *to)
{
    char bytes[BYTES_TEXT], total[BYTES_TEXT], peak[BYTES_TEXT], seconds[BYTES_TEXT];
    print_bytes(c->bytes.max, bytes);
    print_bytes(c->bytes.total, total);
    print_bytes(c->peak_bytes, peak);
    print_seconds(c->seconds, seconds);
    if (c->request->one_rank)
        text_buffer_print(to, "\nrank %lld receives %s", (long long)c->request->rank, bytes);
    else if (c->has_totals)
        text_buffer_print(to, "\na rank receives at most %s, all together %s", bytes, total);
    else
        text_buffer_print(to, "\nthe first rank, of %lld, receives %s", (long long)tsr_mesh_count(c->request->mesh),
                          bytes);
    text_buffer_print(to, "\nmemory: %s at most", peak);
    write_memory(&c->memory, to);
    text_buffer_print(to, "\ntime by the cost model: %s\n", seconds);
}

int program_to_text(const program_count *c, text_buffer *to)
{
    write_table(c, to);
    write_totals(c, to);
    return EXIT_DONE;
}
