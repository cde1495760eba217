#include <limits.h>
#include <string.h>

#include <tessera/sys/status.h>

#include "placement/layout.h"

typedef struct parser {
    const char *text;
    size_t at;
    int64_t *numbers; /* room for sizes and blocks, used from the front */
    size_t number_count, number_capacity;
} parser;

/* Quotes at most 200 characters so that long hostile text does not push the reason out of the message. */
static tsr_status wrong(parser *p, size_t at, const char *expected)
{
    p->at = at;
    const size_t length = strlen(p->text);
    const char found[4] = {'"', p->text[at], '"', 0};
    return tsr_status_set(TSR_ERROR_ARGUMENT, "placements \"%.200s%s\", character %zu: expected %s, found %s", p->text,
                          length > 200 ? ".." : "", at + 1, expected, p->text[at] ? found : "the end");
}

static void skip_spaces(parser *p)
{
    while (p->text[p->at] == ' ')
        p->at++;
}

static bool accept(parser *p, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(p->text + p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* A comma with any spaces around it; leaves the position alone if there is none. */
static bool accept_comma(parser *p)
{
    const size_t start = p->at;
    skip_spaces(p);
    if (!accept(p, ",")) {
        p->at = start;
        return false;
    }
    skip_spaces(p);
    return true;
}

static tsr_status parse_number(parser *p, int64_t least, int64_t most, const char *expected, int64_t *out)
{
    const size_t start = p->at;
    int64_t value = 0;
    while (p->text[p->at] >= '0' && p->text[p->at] <= '9') {
        const int64_t digit = p->text[p->at] - '0';
        if (value > (most - digit) / 10)
            return wrong(p, start, expected);
        value = value * 10 + digit;
        p->at++;
    }
    if (p->at == start || value < least)
        return wrong(p, start, expected);
    *out = value;
    return TSR_OK;
}

static tsr_status parse_list(parser *p, const int64_t **numbers, size_t *count)
{
    const size_t first = p->number_count;
    do {
        int64_t value = 0;
        TSR_TRY(parse_number(p, 0, INT64_MAX, "a size (0 or more)", &value));
        if (p->number_count == p->number_capacity)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "placements: room for %zu numbers of sizes= and blocks=, but the text has more",
                                  p->number_capacity);
        p->numbers[p->number_count++] = value;
    } while (accept_comma(p));
    *numbers = p->numbers + first;
    *count = p->number_count - first;
    return TSR_OK;
}

static tsr_status parse_modifier(parser *p, tsr_placement *placement)
{
    const size_t start = p->at;
    const char *const known = "balanced, interleave=, blocks=, sizes= or unit=, each at most once";
    if (!placement->balanced && accept(p, "balanced")) {
        placement->balanced = 1;
        return TSR_OK;
    }
    if (!placement->interleave && accept(p, "interleave="))
        return parse_number(p, 1, INT64_MAX, "a number of blocks (1 or more)", &placement->interleave);
    if (!placement->unit && accept(p, "unit="))
        return parse_number(p, 1, INT64_MAX, "a unit (1 or more)", &placement->unit);
    if (!placement->blocks && accept(p, "blocks="))
        return parse_list(p, &placement->blocks, &placement->block_count);
    if (!placement->sizes && accept(p, "sizes="))
        return parse_list(p, &placement->sizes, &placement->size_count);
    return wrong(p, start, known);
}

static tsr_status parse_shard(parser *p, tsr_placement *placement)
{
    int64_t number = 0;
    TSR_TRY(parse_number(p, 0, INT_MAX, "a tensor dim (0 or more)", &number));
    *placement = tsr_shard((int)number);
    while (accept(p, ";"))
        TSR_TRY(parse_modifier(p, placement));
    if (!accept(p, ")"))
        return wrong(p, p->at, "\";\" or \")\"");
    if (accept(p, "[")) {
        TSR_TRY(parse_number(p, 0, INT_MAX, "a place in the cut order (0 or more)", &number));
        placement->order = (int)number;
        if (!accept(p, "]"))
            return wrong(p, p->at, "\"]\"");
    }
    return TSR_OK;
}

static tsr_status parse_partial(parser *p, tsr_placement *placement)
{
    *placement = tsr_partial(TSR_SUM);
    if (!accept(p, "("))
        return TSR_OK;
    for (tsr_reduce_op op = TSR_SUM; op < TSR_REDUCE_OP_END; op++) {
        if (accept(p, tsr_reduce_op_name(op))) {
            placement->op = op;
            return accept(p, ")") ? TSR_OK : wrong(p, p->at, "\")\"");
        }
    }
    return wrong(p, p->at, "sum, avg, max, min or prod");
}

static tsr_status parse_placement(parser *p, tsr_placement *placement)
{
    if (accept(p, "R")) {
        *placement = tsr_replicate();
        return TSR_OK;
    }
    if (accept(p, "S("))
        return parse_shard(p, placement);
    if (accept(p, "P"))
        return parse_partial(p, placement);
    return wrong(p, p->at + (p->text[p->at] == 'S'), p->text[p->at] == 'S' ? "\"(\"" : "R, S(dim) or P");
}

/* Keeps the first TSR_MAX_DIMS: no mesh has more. */
static tsr_status parse_all(parser *p, tsr_placement *kept, int *count)
{
    int found = 0;
    do {
        tsr_placement placement;
        TSR_TRY(parse_placement(p, &placement));
        if (found < TSR_MAX_DIMS)
            kept[found] = placement;
        found++;
    } while (accept_comma(p));
    if (p->text[p->at])
        return wrong(p, p->at, "\",\" or the end");
    *count = found;
    return TSR_OK;
}

tsr_status tsr_placements_parse(const char *text, tsr_placement *out, int capacity, int *count, int64_t *numbers, size_t number_capacity,
                                size_t *position)
{
    if (!text || !count || (!out && capacity > 0) || (!numbers && number_capacity > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_placements_parse: text, count, and out and numbers unless their capacity is 0, must not be NULL");
    parser p = {text, 0, numbers, 0, number_capacity};
    tsr_placement kept[TSR_MAX_DIMS];
    int found = 0;
    const tsr_status status = parse_all(&p, kept, &found);
    if (status != TSR_OK) {
        if (position)
            *position = p.at;
        return status;
    }
    for (int i = 0; i < found && i < capacity && i < TSR_MAX_DIMS; i++)
        out[i] = kept[i];
    *count = found;
    return TSR_OK;
}
