#include "base/text/scan.h"
#include "placement/layout.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct parser {
    tsr_scan scan;
    int64_t *numbers; /* room for sizes and blocks, used from the front */
    size_t number_count, number_capacity;
} parser;

static tsr_status refuse_more(parser *p, size_t at)
{
    char reason[128];
    snprintf(reason, sizeof reason,
             "there is room for %zu numbers of sizes= and blocks=; call tsr_placements_parse() with room for more",
             p->number_capacity);
    return tsr_scan_refuse(&p->scan, at, reason);
}

static tsr_status parse_list(parser *p, const int64_t **numbers, size_t *count)
{
    const size_t first = p->number_count;
    do {
        const size_t start = p->scan.at;
        int64_t value = 0;
        TSR_TRY(tsr_scan_number(&p->scan, 0, INT64_MAX, "a size (0 or more)", &value));
        if (p->number_count == p->number_capacity)
            return refuse_more(p, start);
        p->numbers[p->number_count++] = value;
    } while (tsr_scan_comma(&p->scan));
    *numbers = p->numbers + first;
    *count = p->number_count - first;
    return TSR_OK;
}

static tsr_status parse_modifier(parser *p, tsr_placement *placement)
{
    const size_t start = p->scan.at;
    const char *const known = "balanced, interleave=, blocks=, sizes= or unit=, each at most once";
    if (!placement->balanced && tsr_scan_accept(&p->scan, "balanced")) {
        placement->balanced = 1;
        return TSR_OK;
    }
    if (!placement->interleave && tsr_scan_accept(&p->scan, "interleave="))
        return tsr_scan_number(&p->scan, 1, INT64_MAX, "a number of blocks (1 or more)", &placement->interleave);
    if (!placement->unit && tsr_scan_accept(&p->scan, "unit="))
        return tsr_scan_number(&p->scan, 1, INT64_MAX, "a unit (1 or more)", &placement->unit);
    if (!placement->blocks && tsr_scan_accept(&p->scan, "blocks="))
        return parse_list(p, &placement->blocks, &placement->block_count);
    if (!placement->sizes && tsr_scan_accept(&p->scan, "sizes="))
        return parse_list(p, &placement->sizes, &placement->size_count);
    return tsr_scan_expected(&p->scan, start, known);
}

static tsr_status parse_shard(parser *p, tsr_placement *placement)
{
    int64_t number = 0;
    TSR_TRY(tsr_scan_number(&p->scan, 0, INT_MAX, "a tensor dim (0 or more)", &number));
    *placement = tsr_shard((int)number);
    while (tsr_scan_accept(&p->scan, ";"))
        TSR_TRY(parse_modifier(p, placement));
    if (!tsr_scan_accept(&p->scan, ")"))
        return tsr_scan_expected(&p->scan, p->scan.at, "\";\" or \")\"");
    if (tsr_scan_accept(&p->scan, "[")) {
        TSR_TRY(tsr_scan_number(&p->scan, 0, INT_MAX, "a place in the cut order (0 or more)", &number));
        placement->order = (int)number;
        if (!tsr_scan_accept(&p->scan, "]"))
            return tsr_scan_expected(&p->scan, p->scan.at, "\"]\"");
    }
    return TSR_OK;
}

static tsr_status parse_partial(parser *p, tsr_placement *placement)
{
    *placement = tsr_partial(TSR_SUM);
    if (!tsr_scan_accept(&p->scan, "("))
        return TSR_OK;
    for (tsr_reduce_op op = TSR_SUM; op < TSR_REDUCE_OP_END; op++) {
        if (tsr_scan_accept(&p->scan, tsr_reduce_op_name(op))) {
            placement->op = op;
            return tsr_scan_accept(&p->scan, ")") ? TSR_OK : tsr_scan_expected(&p->scan, p->scan.at, "\")\"");
        }
    }
    return tsr_scan_expected(&p->scan, p->scan.at, "sum, avg, max, min or prod");
}

/* True if PyTorch's spelling of a placement may come next, such as Shard(0): it begins with `_`, or
 * with a capital and a small letter. */
static bool looks_like_pytorch(const parser *p)
{
    const char *const next = p->scan.text + p->scan.at;
    return next[0] == '_' || (next[0] && next[1] >= 'a' && next[1] <= 'z');
}

/* Refuses PyTorch's spelling of a placement in a sentence with ours: S(0) for Shard(0). Returns
 * TSR_OK if another text comes next. */
static tsr_status refuse_pytorch(parser *p)
{
    tsr_scan scan = p->scan;
    char reason[128];
    const bool strided = tsr_scan_accept(&scan, "_StridedShard(");
    if (strided || tsr_scan_accept(&scan, "Shard(")) {
        tsr_scan_accept(&scan, "dim=");
        const size_t digits = strspn(scan.text + scan.at, "0123456789");
        const bool known = digits > 0 && digits < 10;
        snprintf(reason, sizeof reason, "this is PyTorch's spelling; write S(%.*s%s)", known ? (int)digits : 3,
                 known ? scan.text + scan.at : "dim", strided ? ";interleave=k" : "");
        return tsr_scan_refuse(&p->scan, p->scan.at, reason);
    }
    if (tsr_scan_accept(&scan, "Replicate"))
        return tsr_scan_refuse(&p->scan, p->scan.at, "this is PyTorch's spelling; write R");
    if (tsr_scan_accept(&scan, "Partial"))
        return tsr_scan_refuse(&p->scan, p->scan.at, "this is PyTorch's spelling; write P, or P(max)");
    return TSR_OK;
}

static tsr_status parse_placement(parser *p, tsr_placement *placement)
{
    if (looks_like_pytorch(p))
        TSR_TRY(refuse_pytorch(p));
    if (tsr_scan_accept(&p->scan, "R")) {
        *placement = tsr_replicate();
        return TSR_OK;
    }
    if (tsr_scan_accept(&p->scan, "S("))
        return parse_shard(p, placement);
    if (tsr_scan_accept(&p->scan, "P"))
        return parse_partial(p, placement);
    return tsr_scan_expected(&p->scan, p->scan.at + (p->scan.text[p->scan.at] == 'S'),
                             p->scan.text[p->scan.at] == 'S' ? "\"(\"" : "R, S(dim) or P");
}

/* Keeps the first TSR_MAX_DIMS placements, because no mesh has more dims; `*count` counts all. */
static tsr_status parse_all(parser *p, tsr_placement *kept, int *count)
{
    int found = 0;
    do {
        tsr_placement placement;
        TSR_TRY(parse_placement(p, &placement));
        if (found < TSR_MAX_DIMS)
            kept[found] = placement;
        found++;
    } while (tsr_scan_comma(&p->scan));
    if (p->scan.text[p->scan.at])
        return tsr_scan_expected(&p->scan, p->scan.at, "\",\" or the end");
    *count = found;
    return TSR_OK;
}

tsr_status tsr_placements_parse(const char *text, tsr_placement *out, int capacity, int *count, int64_t *numbers,
                                size_t number_capacity, size_t *position)
{
    if (!text || !count || (!out && capacity > 0) || (!numbers && number_capacity > 0))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_placements_parse: text, count, and out and numbers unless their capacity is 0, must not be NULL");
    parser p = {{"placements", text, 0}, numbers, 0, number_capacity};
    tsr_placement kept[TSR_MAX_DIMS];
    int found = 0;
    const tsr_status status = parse_all(&p, kept, &found);
    if (status != TSR_OK) {
        if (position)
            *position = p.scan.at;
        return status;
    }
    for (int i = 0; i < found && i < capacity && i < TSR_MAX_DIMS; i++)
        out[i] = kept[i];
    *count = found;
    return TSR_OK;
}
