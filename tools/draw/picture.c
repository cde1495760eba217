#include "draw/picture.h"

#include "command.h"
#include "draw/blocks.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upper bounds of the blocks in a picture. */
#define MOST_ROWS    32
#define MOST_COLUMNS 16

/* Bytes of the text in a block, with the NUL. */
#define CELL_BYTES 28

/* Copies a list of ranks; ".." replaces the middle of a list that is too long for a cell. */
static void shorten(const char *list, size_t length, char text[CELL_BYTES])
{
    size_t last = length, first = 0;
    while (last > 0 && !strchr(" +", list[last - 1]))
        last--;
    for (size_t i = 0; i < CELL_BYTES / 2 && i < length; i++)
        if (strchr(" +", list[i]))
            first = i;
    if (length < CELL_BYTES)
        memcpy(text, list, length + 1);
    else
        snprintf(text, CELL_BYTES, "%.*s .. %.10s", (int)first, list, list + last);
}

static void name_cell(const blocks *b, size_t row, size_t column, char text[CELL_BYTES])
{
    char full[BLOCK_NAME_BYTES];
    const size_t length = blocks_name(b, row, column, full);
    shorten(full, length, text);
}

static int digits(int64_t number)
{
    return snprintf(NULL, 0, "%lld", (long long)number);
}

static void print_rule(const blocks *b, int margin, const int *widths)
{
    say("%*s", margin, "");
    for (size_t c = 0; c < b->cuts[1].count; c++) {
        say_text("+");
        for (int i = 0; i < widths[c] + 2; i++)
            say_text("-");
    }
    say("+\n");
}

/* Prints each column's first index above its left edge, and the tensor's size above the last
 * edge. */
static void print_column_heads(const blocks *b, int margin, const int *widths)
{
    say("%*s", margin, "");
    for (size_t c = 0; c < b->cuts[1].count; c++)
        say("%-*lld", widths[c] + 3, (long long)b->cuts[1].at[c]);
    say("%lld\n", (long long)b->cuts[1].at[b->cuts[1].count]);
}

static void draw(const blocks *b, char (*cells)[MOST_COLUMNS][CELL_BYTES])
{
    int widths[MOST_COLUMNS];
    for (size_t c = 0; c < b->cuts[1].count; c++) {
        widths[c] = digits(b->cuts[1].at[c]) - 2 > 1 ? digits(b->cuts[1].at[c]) - 2 : 1;
        for (size_t r = 0; r < b->cuts[0].count; r++)
            widths[c] = (int)strlen(cells[r][c]) > widths[c] ? (int)strlen(cells[r][c]) : widths[c];
    }
    const bool numbered = b->ndim == 2;
    const int margin = 2 + (numbered ? digits(b->cuts[0].at[b->cuts[0].count]) + 1 : 0);
    if (b->ndim > 0)
        print_column_heads(b, margin, widths);
    for (size_t r = 0; r < b->cuts[0].count; r++) {
        print_rule(b, margin, widths);
        if (numbered)
            say("%*lld ", margin - 1, (long long)b->cuts[0].at[r]);
        else
            say("%*s", margin, "");
        for (size_t c = 0; c < b->cuts[1].count; c++)
            say("| %-*s ", widths[c], cells[r][c]);
        say("|\n");
    }
    print_rule(b, margin, widths);
    if (numbered)
        say("%*lld\n", margin - 1, (long long)b->cuts[0].at[b->cuts[0].count]);
}

static tsr_status draw_pieces(const blocks *b)
{
    if (b->cuts[0].count == 0 || b->cuts[1].count == 0) {
        say("no picture: the tensor is empty\n");
        return TSR_OK;
    }
    if (b->cuts[0].count > MOST_ROWS || b->cuts[1].count > MOST_COLUMNS) {
        say("no picture: %zu x %zu blocks are more than %d x %d\n", b->cuts[0].count, b->cuts[1].count, MOST_ROWS,
            MOST_COLUMNS);
        return TSR_OK;
    }
    char(*const cells)[MOST_COLUMNS][CELL_BYTES] = calloc(MOST_ROWS, sizeof *cells);
    if (!cells)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the picture");
    for (size_t r = 0; r < b->cuts[0].count; r++)
        for (size_t c = 0; c < b->cuts[1].count; c++)
            name_cell(b, r, c, cells[r][c]);
    draw(b, cells);
    free(cells);
    return TSR_OK;
}

tsr_status picture_print(const tsr_layout *layout)
{
    if (!blocks_possible(layout)) {
        say("no picture: that is for tensors of at most %d dims on at most %d ranks, each with at most %d intervals of "
            "a dim\n",
            BLOCKS_DIMS, BLOCKS_RANKS, BLOCKS_INTERVALS);
        return TSR_OK;
    }
    blocks b;
    TSR_TRY(blocks_read(layout, &b));
    const tsr_status status = draw_pieces(&b);
    blocks_finish(&b);
    return status;
}
