#include "ops/rules/pieces.h"

#include <tessera/ops.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many elements of a piece lie before position `at` of the dim that it comes from. */
static int64_t count_before(const tsr_piece *piece, int64_t at)
{
    const int64_t behind = smaller(larger(at, piece->start), piece->end);
    return (behind - piece->start + piece->step - 1) / piece->step;
}

static int64_t count_all(const tsr_piece *piece)
{
    return count_before(piece, piece->end);
}

/* Appends an interval to a list of `*count`, whose last one it may continue. */
static void put(tsr_interval *list, size_t *count, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    if (*count > 0 && list[*count - 1].end == begin)
        list[*count - 1].end = end;
    else
        list[(*count)++] = (tsr_interval){begin, end};
}

/* Appends what a part has of a piece, where the piece lies. */
static void put_moved(const tsr_piece *piece, const tsr_parts *from, size_t part, tsr_interval *list, size_t *count)
{
    size_t owned;
    const tsr_interval *const own = tsr_parts_get(from, part, &owned);
    for (size_t i = 0; i < owned; i++)
        put(list, count, piece->offset + count_before(piece, own[i].begin),
            piece->offset + count_before(piece, own[i].end));
}

/* True if a part has the same of a piece where it comes from and where it lies. `list` has room for
 * both parts. */
static bool is_same(const tsr_piece *piece, const tsr_parts *from, const tsr_parts *to, size_t part, tsr_interval *list)
{
    size_t moved = 0, clipped = 0, owned;
    const int64_t begin = piece->offset, end = piece->offset + count_all(piece);
    put_moved(piece, from, part, list, &moved);
    tsr_interval *const there = list + moved;
    const tsr_interval *const own = tsr_parts_get(to, part, &owned);
    for (size_t i = 0; i < owned; i++)
        put(there, &clipped, larger(own[i].begin, begin), smaller(own[i].end, end));
    return moved == clipped && (moved == 0 || memcmp(list, there, moved * sizeof *list) == 0);
}

static tsr_status match_piece(const tsr_piece *piece, const tsr_parts *from, const tsr_parts *to, bool *match)
{
    void *list;
    const size_t most = from->begin[from->count] + to->begin[to->count] + 1;
    *match = from->count == to->count && from->dims == to->dims;
    if (!*match)
        return TSR_OK;
    TSR_TRY(tsr_allocate(from->context, most * sizeof(tsr_interval), &list));
    for (size_t part = 0; part < from->count && *match; part++)
        *match = is_same(piece, from, to, part, list);
    tsr_release(from->context, list);
    return TSR_OK;
}

tsr_status tsr_pieces_match(const tsr_pieces *pieces, const tsr_placement *cuts, bool *match)
{
    tsr_parts to, from;
    *match = true;
    TSR_TRY(tsr_parts_list(pieces->mesh, pieces->size, cuts, &to));
    tsr_status status = TSR_OK;
    for (int i = 0; i < pieces->count && *match && status == TSR_OK; i++) {
        status = tsr_parts_list(pieces->mesh, pieces->pieces[i].size, pieces->pieces[i].cuts, &from);
        if (status != TSR_OK)
            break;
        status = match_piece(&pieces->pieces[i], &from, &to, match);
        tsr_parts_clear(&from);
    }
    tsr_parts_clear(&to);
    return status;
}

/* Puts together what each part has of all pieces, and of what lies before and behind them. */
static tsr_status join_pieces(const tsr_pieces *pieces, const tsr_parts *from, tsr_parts *out)
{
    const tsr_piece *const last = &pieces->pieces[pieces->count - 1];
    size_t most = 2, used = 0;
    void *begin, *intervals;
    for (int i = 0; i < pieces->count; i++)
        most += from[i].begin[from[i].count];
    *out = from[0];
    out->size = pieces->size;
    out->begin = NULL;
    out->intervals = NULL;
    TSR_TRY(tsr_allocate(out->context, (out->count + 1) * sizeof(size_t), &begin));
    out->begin = begin;
    TSR_TRY(tsr_allocate(out->context, most * sizeof(tsr_interval), &intervals));
    out->intervals = intervals;
    out->capacity = most;
    for (size_t part = 0; part < out->count; part++) {
        size_t count = 0;
        out->begin[part] = used;
        if (part == 0)
            put(out->intervals + used, &count, 0, pieces->pieces[0].offset);
        for (int i = 0; i < pieces->count; i++)
            put_moved(&pieces->pieces[i], &from[i], part, out->intervals + used, &count);
        if (part == out->count - 1)
            put(out->intervals + used, &count, last->offset + count_all(last), pieces->size);
        used += count;
    }
    out->begin[out->count] = used;
    return TSR_OK;
}

/* Lists the parts of all pieces. */
static tsr_status list_pieces(const tsr_pieces *pieces, tsr_parts *from)
{
    for (int i = 0; i < pieces->count; i++)
        TSR_TRY(tsr_parts_list(pieces->mesh, pieces->pieces[i].size, pieces->pieces[i].cuts, &from[i]));
    return TSR_OK;
}

static tsr_status express_pieces(const tsr_pieces *pieces, tsr_cut_lists *lists, tsr_placement *cuts, bool *found)
{
    tsr_parts from[TSR_OP_MOST_OPERANDS] = {{0}}, joined = {0};
    tsr_status status = list_pieces(pieces, from);
    if (status == TSR_OK)
        status = join_pieces(pieces, from, &joined);
    if (status == TSR_OK)
        status = tsr_parts_express(pieces->mesh, &joined, NULL, lists, cuts, found);
    tsr_parts_clear(&joined);
    for (int i = 0; i < pieces->count; i++)
        tsr_parts_clear(&from[i]);
    return status;
}

/* Tries chunk or balanced on all mesh dims that cut. */
static tsr_status try_plain(const tsr_pieces *pieces, int balanced, tsr_placement *cuts, bool *found)
{
    for (int k = 0; k < tsr_mesh_ndim(pieces->mesh); k++) {
        cuts[k] = pieces->pieces[0].cuts[k];
        if (cuts[k].kind == TSR_SHARD)
            cuts[k] = tsr_shard(0);
        cuts[k].order = pieces->pieces[0].cuts[k].order;
        cuts[k].balanced = cuts[k].kind == TSR_SHARD && balanced;
    }
    return tsr_pieces_match(pieces, cuts, found);
}

tsr_status tsr_pieces_cut(const tsr_pieces *pieces, tsr_cut_lists *lists, tsr_placement *cuts, bool *found)
{
    *found = false;
    for (int balanced = 0; balanced < 2 && !*found; balanced++)
        TSR_TRY(try_plain(pieces, balanced, cuts, found));
    return *found ? TSR_OK : express_pieces(pieces, lists, cuts, found);
}
