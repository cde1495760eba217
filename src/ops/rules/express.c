#include "ops/rules/express.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* Mesh dims that are tried in turn before the first placements found are taken. */
#define TRIES 256

struct tsr_cut_list {
    struct tsr_cut_list *next;
    int64_t numbers[];
};

tsr_status tsr_cut_lists_add(tsr_cut_lists *lists, size_t count, int64_t **out)
{
    void *memory;
    TSR_TRY(tsr_allocate(lists->context, sizeof(struct tsr_cut_list) + count * sizeof(int64_t), &memory));
    struct tsr_cut_list *const list = memory;
    list->next = lists->first;
    lists->first = list;
    *out = list->numbers;
    return TSR_OK;
}

void tsr_cut_lists_clear(tsr_cut_lists *lists)
{
    while (lists->first) {
        struct tsr_cut_list *const list = lists->first;
        lists->first = list->next;
        tsr_release(lists->context, list);
    }
}

void tsr_cuts_settle_order(int mesh_ndim, tsr_placement *cuts)
{
    int last = -1;
    bool ascends = true;
    for (int k = 0; k < mesh_ndim; k++) {
        if (cuts[k].kind != TSR_SHARD)
            continue;
        ascends = ascends && cuts[k].order > last;
        last = cuts[k].order;
    }
    for (int k = 0; k < mesh_ndim && ascends; k++)
        cuts[k].order = TSR_ORDER_DEFAULT;
}

/* Indices that lie together in a piece, and the part that owns them. */
typedef struct run {
    int64_t begin, end, part;
} run;

/* The pieces that earlier cuts leave, each as runs; places in them count from 0. */
typedef struct pieces {
    size_t count;
    size_t *begin; /* count + 1 places in `runs` */
    run *runs;
} pieces;

typedef struct search {
    const tsr_mesh *mesh;
    const tsr_parts *parts;
    const int *order;
    tsr_cut_lists *lists;
    int tries;
    bool found;
    tsr_placement tried[TSR_MAX_DIMS], *best;
    /* of one mesh dim */
    tsr_mesh *line;
    int64_t length; /* of the line: parts */
    pieces pieces;
} search;

static int compare_runs(const void *a, const void *b)
{
    const int64_t x = ((const run *)a)->begin, y = ((const run *)b)->begin;
    return (x > y) - (x < y);
}

/* Lists the intervals of a piece, at `coordinate` in mesh dims that have cut, by their part in mesh
 * dim k; the other mesh dims are gone through. */
static size_t collect_runs(const search *s, unsigned left, int k, int64_t *coordinate, run *runs)
{
    size_t used = 0;
    do {
        size_t count;
        const tsr_interval *const own = tsr_parts_get(s->parts, tsr_parts_place(s->parts, coordinate), &count);
        for (size_t i = 0; i < count; i++)
            runs[used++] = (run){own[i].begin, own[i].end, coordinate[k]};
    } while (tsr_parts_advance(s->parts, left, coordinate));
    return used;
}

/* Sorts runs, counts their places from 0, and joins runs of one part that lie side by side. */
static size_t join_runs(run *runs, size_t count)
{
    size_t used = 0;
    int64_t place = 0;
    if (count)
        qsort(runs, count, sizeof *runs, compare_runs);
    for (size_t i = 0; i < count; i++) {
        const int64_t length = runs[i].end - runs[i].begin;
        if (used && runs[used - 1].part == runs[i].part)
            runs[used - 1].end += length;
        else
            runs[used++] = (run){place, place + length, runs[i].part};
        place += length;
    }
    return used;
}

/* Lists the pieces that mesh dim k of `left` cuts, when all others of the parts' have cut or follow
 * in `left`. */
static tsr_status list_pieces(search *s, unsigned left, int k)
{
    void *runs, *begin;
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const unsigned before = s->parts->dims & ~left;
    pieces *const p = &s->pieces;
    size_t used = 0;
    *p = (pieces){.count = 1};
    for (int dim = 0; dim < TSR_MAX_DIMS; dim++)
        p->count *= before >> dim & 1 ? (size_t)s->parts->extent[dim] : 1;
    TSR_TRY(tsr_allocate(s->parts->context, s->parts->begin[s->parts->count] * sizeof(run), &runs));
    p->runs = runs;
    TSR_TRY(tsr_allocate(s->parts->context, (p->count + 1) * sizeof(size_t), &begin));
    p->begin = begin;
    for (size_t i = 0; i < p->count; i++) {
        p->begin[i] = used;
        used += join_runs(p->runs + used, collect_runs(s, left, k, coordinate, p->runs + used));
        tsr_parts_advance(s->parts, before, coordinate);
    }
    p->begin[p->count] = used;
    return TSR_OK;
}

static void clear_pieces(search *s)
{
    tsr_release(s->parts->context, s->pieces.runs);
    tsr_release(s->parts->context, s->pieces.begin);
    s->pieces = (pieces){0};
}

static int64_t piece_length(const pieces *p, size_t i)
{
    return p->begin[i] == p->begin[i + 1] ? 0 : p->runs[p->begin[i + 1] - 1].end;
}

/* True if a piece is owned as the first one is. */
static bool is_like_first(const pieces *p, size_t i)
{
    const size_t count = p->begin[i + 1] - p->begin[i];
    return i > 0 && count == p->begin[1] &&
           (count == 0 || memcmp(p->runs, p->runs + p->begin[i], count * sizeof *p->runs) == 0);
}

/* Whether part `part` of a layout of a piece is what the runs say; `*runs` counts those that were.
 * */
static tsr_status compare_part(const search *s, const tsr_layout *layout, size_t piece, int64_t part, size_t *seen,
                               bool *same)
{
    size_t count;
    const run *const runs = s->pieces.runs + s->pieces.begin[piece];
    const size_t most = s->pieces.begin[piece + 1] - s->pieces.begin[piece];
    TSR_TRY(tsr_layout_intervals(layout, &part, 0, NULL, 0, &count));
    *same = *seen + count <= most;
    if (!*same || count == 0)
        return TSR_OK;
    void *memory;
    TSR_TRY(tsr_allocate(s->parts->context, count * sizeof(tsr_interval), &memory));
    const tsr_interval *const own = memory;
    const tsr_status status = tsr_layout_intervals(layout, &part, 0, memory, count, &count);
    for (size_t i = 0; i < count && status == TSR_OK && *same; i++) {
        const run key = {own[i].begin, own[i].end, part};
        const run *const other = bsearch(&key, runs, most, sizeof key, compare_runs);
        *same = other && other->end == key.end && other->part == part;
    }
    *seen += count;
    tsr_release(s->parts->context, memory);
    return status;
}

/* Whether a placement cuts a piece as its runs say. */
static tsr_status compare_piece(const search *s, const tsr_placement *p, size_t piece, bool *same)
{
    tsr_layout *layout;
    size_t seen = 0;
    const int64_t length = piece_length(&s->pieces, piece);
    tsr_status status = tsr_layout_create(s->line, p, 1, &length, TSR_U8, &layout);
    *same = status == TSR_OK;
    if (status != TSR_OK)
        return status == TSR_ERROR_ARGUMENT ? TSR_OK : status;
    for (int64_t part = 0; part < s->length && *same && status == TSR_OK; part++)
        status = compare_part(s, layout, piece, part, &seen, same);
    *same = *same && seen == s->pieces.begin[piece + 1] - s->pieces.begin[piece];
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status compare_pieces(const search *s, const tsr_placement *p, bool *same)
{
    *same = true;
    for (size_t i = 0; i < s->pieces.count && *same; i++) {
        if (!is_like_first(&s->pieces, i))
            TSR_TRY(compare_piece(s, p, i, same));
    }
    return TSR_OK;
}

/* What the forms that are tried have in common. */
typedef struct form_try {
    const search *s;
    tsr_placement *out;
    bool found;
} form_try;

static tsr_status try_form(form_try *t, tsr_placement p)
{
    return t->found ? TSR_OK : (*t->out = p, compare_pieces(t->s, &p, &t->found));
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* What cuts within blocks are multiples of, or else the longest block. A block begins at each part
 * below the one before. */
static int64_t find_unit(const pieces *p)
{
    int64_t unit = 0, longest = 0;
    for (size_t piece = 0; piece < p->count; piece++) {
        int64_t block = 0;
        for (size_t i = p->begin[piece]; i < p->begin[piece + 1]; i++) {
            const run *const r = &p->runs[i];
            if (i > p->begin[piece] && r->part < r[-1].part)
                block = r->begin;
            else
                unit = common_divisor(r->begin - block, unit);
            longest = r->end - block > longest ? r->end - block : longest;
        }
    }
    return unit ? unit : longest;
}

/* Tries the divisors of `all` as units, ascending. */
static tsr_status try_units(form_try *t, tsr_placement p, int64_t all)
{
    int64_t low = 2;
    for (; low <= all / low && !t->found; low++) {
        p.unit = low;
        if (all % low == 0)
            TSR_TRY(try_form(t, p));
    }
    for (low--; low > 0 && !t->found; low--) {
        p.unit = all / low;
        if (all % low == 0)
            TSR_TRY(try_form(t, p));
    }
    return TSR_OK;
}

/* Tries to deal out the blocks of a placement in chunks, balanced, and in units. */
static tsr_status try_dealings(form_try *t, tsr_placement p)
{
    tsr_placement balanced = p;
    balanced.balanced = 1;
    const int64_t all = find_unit(&t->s->pieces);
    TSR_TRY(try_form(t, p));
    TSR_TRY(try_form(t, balanced));
    TSR_TRY(try_units(t, p, all));
    return try_units(t, balanced, all);
}

/* The most runs of part 0 in a piece: the number of blocks, if they are interleaved. */
static int64_t count_blocks(const pieces *p)
{
    int64_t most = 0;
    for (size_t piece = 0; piece < p->count; piece++) {
        int64_t own = 0;
        for (size_t i = p->begin[piece]; i < p->begin[piece + 1]; i++)
            own += p->runs[i].part == 0;
        most = own > most ? own : most;
    }
    return most;
}

/* Tries blocks that begin at each part below the one before, if all pieces have the same length. */
static tsr_status try_blocks(form_try *t)
{
    const pieces *const p = &t->s->pieces;
    int64_t *blocks;
    tsr_placement listed = tsr_shard(0);
    for (size_t i = 1; i < p->count; i++) {
        if (piece_length(p, i) != piece_length(p, 0))
            return TSR_OK;
    }
    if (t->found || p->begin[1] == 0)
        return TSR_OK;
    TSR_TRY(tsr_cut_lists_add(t->s->lists, p->begin[1], &blocks));
    int64_t begin = 0;
    for (size_t i = 1; i < p->begin[1]; i++) {
        if (p->runs[i].part > p->runs[i - 1].part)
            continue;
        blocks[listed.block_count++] = p->runs[i].begin - begin;
        begin = p->runs[i].begin;
    }
    blocks[listed.block_count++] = piece_length(p, 0) - begin;
    listed.blocks = blocks;
    return listed.block_count > 1 ? try_dealings(t, listed) : TSR_OK;
}

static tsr_status try_sizes(form_try *t)
{
    const pieces *const p = &t->s->pieces;
    int64_t *sizes;
    tsr_placement listed = tsr_shard(0);
    if (t->found)
        return TSR_OK;
    TSR_TRY(tsr_cut_lists_add(t->s->lists, (size_t)t->s->length, &sizes));
    memset(sizes, 0, (size_t)t->s->length * sizeof *sizes);
    for (size_t i = 0; i < p->begin[1]; i++)
        sizes[p->runs[i].part] += p->runs[i].end - p->runs[i].begin;
    listed.sizes = sizes;
    listed.size_count = (size_t)t->s->length;
    return try_form(t, listed);
}

/* Tries all forms on the pieces, the plainest first. */
static tsr_status try_forms(form_try *t)
{
    tsr_placement interleaved = tsr_shard(0);
    TSR_TRY(try_dealings(t, tsr_shard(0)));
    interleaved.interleave = count_blocks(&t->s->pieces);
    if (interleaved.interleave > 1)
        TSR_TRY(try_dealings(t, interleaved));
    TSR_TRY(try_blocks(t));
    return try_sizes(t);
}

/* Finds how mesh dim k cuts the pieces that all mesh dims but those of `left` leave. */
static tsr_status express_dim(search *s, unsigned left, int k, bool *found)
{
    form_try t = {s, &s->tried[k], false};
    s->length = s->parts->extent[k];
    tsr_status status = tsr_mesh_create_abstract(s->parts->context, 1, &s->length, NULL, NULL, &s->line);
    if (status == TSR_OK) {
        status = list_pieces(s, left, k);
        if (status == TSR_OK)
            status = try_forms(&t);
        clear_pieces(s);
        tsr_mesh_destroy(s->line);
    }
    *found = t.found;
    return status;
}

/* The place of a cut's form in the order of forms. */
static int form_of(const tsr_placement *p)
{
    return p->kind != TSR_SHARD ? 0
           : p->sizes           ? 5
           : p->blocks          ? 4
           : p->interleave > 1  ? 3
           : p->unit > 1        ? 2
                                : p->balanced;
}

int tsr_cuts_compare_forms(const tsr_placement *a, const tsr_placement *b, int count)
{
    for (int dim = 0; dim < count; dim++) {
        if (form_of(&a[dim]) != form_of(&b[dim]))
            return form_of(&a[dim]) - form_of(&b[dim]);
    }
    return 0;
}

bool tsr_cuts_are_plainer(const tsr_placement *a, const tsr_placement *b, int count)
{
    const int forms = tsr_cuts_compare_forms(a, b, count);
    for (int dim = 0; dim < count && forms == 0; dim++) {
        if (a[dim].unit != b[dim].unit || a[dim].interleave != b[dim].interleave)
            return a[dim].unit != b[dim].unit ? a[dim].unit < b[dim].unit : a[dim].interleave < b[dim].interleave;
    }
    return forms < 0;
}

/* Lets each mesh dim of `left` cut next, at place `place` in the order. */
static tsr_status search_orders(search *s, unsigned left, int place)
{
    const int mesh_ndim = tsr_mesh_ndim(s->mesh);
    if (!left) {
        if (!s->found || tsr_cuts_compare_forms(s->tried, s->best, mesh_ndim) < 0)
            memcpy(s->best, s->tried, (size_t)mesh_ndim * sizeof *s->best);
        s->found = true;
        return TSR_OK;
    }
    for (int k = 0; k < mesh_ndim; k++) {
        bool found;
        if (!(left >> k & 1) || (s->order && s->order[place] != k) || (s->found && s->tries >= TRIES))
            continue;
        s->tries++;
        TSR_TRY(express_dim(s, left, k, &found));
        s->tried[k].order = place;
        if (found)
            TSR_TRY(search_orders(s, left & ~(1u << k), place + 1));
        s->tried[k] = tsr_replicate();
    }
    return TSR_OK;
}

tsr_status tsr_parts_express(const tsr_mesh *mesh, const tsr_parts *parts, const int *order, tsr_cut_lists *lists,
                             tsr_placement *cuts, bool *found)
{
    search s = {.mesh = mesh, .parts = parts, .order = order, .lists = lists, .best = cuts};
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        s.tried[k] = cuts[k] = tsr_replicate();
    TSR_TRY(search_orders(&s, parts->dims, 0));
    *found = s.found;
    if (s.found)
        tsr_cuts_settle_order(tsr_mesh_ndim(mesh), cuts);
    return TSR_OK;
}
