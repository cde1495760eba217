#include "ops/rules/pieces.h"

#include "ops/rules/alike.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Intervals that are compared without allocating memory. */
#define FEW 32
/* The most blocks of which a list is made. */
#define MOST_BLOCKS 65536

int64_t tsr_piece_count(const tsr_piece *piece)
{
    return (piece->end - piece->start + piece->step - 1) / piece->step;
}

static bool is_cut(const tsr_mesh *mesh, const tsr_placement *cuts, int dim)
{
    return cuts[dim].kind == TSR_SHARD && tsr_mesh_size(mesh, dim) > 1;
}

/* What a coordinate owns of a dim, as a list that grows. */
typedef struct intervals {
    tsr_context *context;
    size_t count, capacity;
    tsr_interval *list, few[FEW];
    void *many;
} intervals;

static void begin_list(intervals *own, const tsr_mesh *mesh)
{
    own->context = tsr_mesh_context(mesh);
    own->count = 0;
    own->capacity = FEW;
    own->list = own->few;
    own->many = NULL;
}

static tsr_status read_list(intervals *own, const tsr_layout *layout, const int64_t *coordinate)
{
    TSR_TRY(tsr_layout_intervals(layout, coordinate, 0, own->list, own->capacity, &own->count));
    if (own->count <= own->capacity)
        return TSR_OK;
    void *more;
    TSR_TRY(tsr_allocate(own->context, own->count * sizeof *own->list, &more));
    tsr_release(own->context, own->many);
    own->list = own->many = more;
    own->capacity = own->count;
    return tsr_layout_intervals(layout, coordinate, 0, own->list, own->capacity, &own->count);
}

/* Appends an interval to the first `*count`, which it may continue; it is written where those that
 * were read lie, never past them. */
static void put(tsr_interval *list, size_t *count, int64_t begin, int64_t end)
{
    if (begin >= end)
        return;
    if (*count > 0 && list[*count - 1].end == begin)
        list[*count - 1].end = end;
    else
        list[(*count)++] = (tsr_interval){begin, end};
}

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

/* Moves what is owned of a piece's dim to where the piece lies. */
static void move_list(const tsr_piece *piece, intervals *own)
{
    size_t count = 0;
    for (size_t i = 0; i < own->count; i++)
        put(own->list, &count, piece->offset + count_before(piece, own->list[i].begin),
            piece->offset + count_before(piece, own->list[i].end));
    own->count = count;
}

/* Leaves of what is owned the range that a piece covers. */
static void clip_list(const tsr_piece *piece, intervals *own)
{
    size_t count = 0;
    const int64_t begin = piece->offset, end = piece->offset + tsr_piece_count(piece);
    for (size_t i = 0; i < own->count; i++)
        put(own->list, &count, larger(own->list[i].begin, begin), smaller(own->list[i].end, end));
    own->count = count;
}

/* Two layouts of dims: the one that a piece comes from, and the one that it lies in. */
typedef struct pair {
    const tsr_piece *piece;
    const tsr_layout *from, *to;
    intervals here, there;
} pair;

static tsr_status compare_at(pair *p, const int64_t *coordinate, bool *same)
{
    TSR_TRY(read_list(&p->here, p->from, coordinate));
    TSR_TRY(read_list(&p->there, p->to, coordinate));
    move_list(p->piece, &p->here);
    clip_list(p->piece, &p->there);
    *same = p->here.count == p->there.count &&
            memcmp(p->here.list, p->there.list, p->here.count * sizeof *p->here.list) == 0;
    return TSR_OK;
}

static tsr_status match_piece(const tsr_mesh *mesh, const tsr_piece *piece, const tsr_layout *to, bool *match)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    tsr_layout *from;
    TSR_TRY(tsr_layout_create(mesh, piece->cuts, 1, &piece->size, TSR_U8, &from));
    pair p = {.piece = piece, .from = from, .to = to};
    begin_list(&p.here, mesh);
    begin_list(&p.there, mesh);
    tsr_status status;
    do
        status = compare_at(&p, coordinate, match);
    while (status == TSR_OK && *match && tsr_cuts_advance(mesh, piece->cuts, coordinate));
    tsr_release(p.here.context, p.here.many);
    tsr_release(p.there.context, p.there.many);
    tsr_layout_destroy(from);
    return status;
}

tsr_status tsr_pieces_match(const tsr_pieces *pieces, const tsr_placement *cuts, bool *match)
{
    tsr_layout *to;
    *match = true;
    TSR_TRY(tsr_layout_create(pieces->mesh, cuts, 1, &pieces->size, TSR_U8, &to));
    tsr_status status = TSR_OK;
    for (int i = 0; i < pieces->count && *match && status == TSR_OK; i++)
        status = match_piece(pieces->mesh, &pieces->pieces[i], to, match);
    tsr_layout_destroy(to);
    return status;
}

/* A search for cuts. */
typedef struct search {
    const tsr_pieces *pieces;
    tsr_placement base[TSR_MAX_DIMS], *cuts; /* those of the first piece, and those that match */
    int64_t *sizes, *blocks;                 /* room for one list each */
    size_t block_count;
    bool found;
} search;

/* Takes the cuts of the first piece, with `p` on a mesh dim (-1: on none), if they match. Cuts that
 * are no layout do not. */
static tsr_status try_cut(search *s, int dim, tsr_placement p)
{
    tsr_placement with[TSR_MAX_DIMS];
    bool match = false;
    if (s->found)
        return TSR_OK;
    memcpy(with, s->base, sizeof with);
    if (dim >= 0) {
        p.order = with[dim].order;
        with[dim] = p;
    }
    const tsr_status status = tsr_pieces_match(s->pieces, with, &match);
    if (status == TSR_OK && match) {
        memcpy(s->cuts, with, sizeof with);
        s->found = true;
    }
    return status == TSR_ERROR_ARGUMENT ? TSR_OK : status;
}

/* Adds what each part of a mesh dim owns of a piece to `sizes`. */
static tsr_status count_piece(search *s, const tsr_piece *piece, int dim)
{
    const tsr_mesh *const mesh = s->pieces->mesh;
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    tsr_layout *from;
    intervals own;
    TSR_TRY(tsr_layout_create(mesh, piece->cuts, 1, &piece->size, TSR_U8, &from));
    begin_list(&own, mesh);
    tsr_status status;
    do {
        status = read_list(&own, from, coordinate);
        for (size_t i = 0; status == TSR_OK && i < own.count; i++)
            s->sizes[coordinate[dim]] += count_before(piece, own.list[i].end) - count_before(piece, own.list[i].begin);
    } while (status == TSR_OK && tsr_cuts_advance(mesh, piece->cuts, coordinate));
    tsr_release(own.context, own.many);
    tsr_layout_destroy(from);
    return status;
}

/* Tries sizes by what parts own; what lies before the first piece goes to the first part, what lies
 * behind the last one to the last. */
static tsr_status try_sizes(search *s, int dim)
{
    const int64_t parts = tsr_mesh_size(s->pieces->mesh, dim);
    const tsr_piece *const last = &s->pieces->pieces[s->pieces->count - 1];
    tsr_placement p = tsr_shard(0);
    if (s->found)
        return TSR_OK;
    memset(s->sizes, 0, (size_t)parts * sizeof *s->sizes);
    for (int i = 0; i < s->pieces->count; i++)
        TSR_TRY(count_piece(s, &s->pieces->pieces[i], dim));
    s->sizes[0] += s->pieces->pieces[0].offset;
    s->sizes[parts - 1] += s->pieces->size - last->offset - tsr_piece_count(last);
    p.sizes = s->sizes;
    p.size_count = (size_t)parts;
    return try_cut(s, dim, p);
}

/* The number of blocks of a cut, and the size of one of them. */
static int64_t count_blocks(const tsr_placement *p)
{
    return p->blocks ? (int64_t)p->block_count : p->interleave > 1 ? p->interleave : 1;
}

static int64_t size_of_block(const tsr_piece *piece, const tsr_placement *p, int64_t block)
{
    if (p->blocks)
        return p->blocks[block];
    const int64_t count = count_blocks(p), chunk = (piece->size + count - 1) / count;
    return smaller(piece->size, chunk * (block + 1)) - smaller(piece->size, chunk * block);
}

/* Lists what pieces have of each block of their dims. */
static void list_blocks(search *s, int dim)
{
    s->block_count = 0;
    for (int i = 0; i < s->pieces->count; i++) {
        const tsr_piece *const piece = &s->pieces->pieces[i];
        const tsr_placement *const p = &piece->cuts[dim];
        int64_t at = 0;
        for (int64_t block = 0; block < count_blocks(p); block++) {
            const int64_t size = size_of_block(piece, p, block);
            const int64_t kept = count_before(piece, at + size) - count_before(piece, at);
            if (kept > 0)
                s->blocks[s->block_count++] = kept;
            at += size;
        }
    }
}

static tsr_status try_blocks(search *s, int dim, tsr_placement p)
{
    bool equal = true;
    for (size_t i = 1; i < s->block_count; i++)
        equal = equal && s->blocks[i] == s->blocks[0];
    if (s->block_count < 2)
        return TSR_OK;
    if (equal) {
        p.interleave = (int64_t)s->block_count;
        return try_cut(s, dim, p);
    }
    p.blocks = s->blocks;
    p.block_count = s->block_count;
    return try_cut(s, dim, p);
}

/* Tries all forms on one mesh dim: without lists, then blocks, then sizes. */
static tsr_status try_dim(search *s, int dim)
{
    const tsr_placement *const own = &s->base[dim];
    tsr_placement forms[4] = {tsr_shard(0), tsr_shard(0), tsr_shard(0), tsr_shard(0)};
    forms[1].balanced = 1;
    forms[2].balanced = own->balanced;
    forms[2].unit = forms[3].unit = own->unit;
    forms[3].balanced = !own->balanced;
    const int count = own->unit > 1 ? 4 : 2;
    for (int i = 0; i < count; i++)
        TSR_TRY(try_cut(s, dim, forms[i]));
    if (s->blocks)
        list_blocks(s, dim);
    for (int i = 0; i < count && s->blocks; i++)
        TSR_TRY(try_blocks(s, dim, forms[i]));
    return try_sizes(s, dim);
}

/* Room for the lists of sizes and blocks on any mesh dim. */
static tsr_status make_room(search *s, int64_t **numbers)
{
    const tsr_mesh *const mesh = s->pieces->mesh;
    int64_t parts = 1, blocks = 0;
    void *memory;
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        int64_t own = 0;
        parts = larger(parts, tsr_mesh_size(mesh, dim));
        for (int i = 0; i < s->pieces->count && own <= MOST_BLOCKS; i++)
            own += count_blocks(&s->pieces->pieces[i].cuts[dim]);
        blocks = larger(blocks, own);
    }
    const bool few = blocks <= MOST_BLOCKS;
    TSR_TRY(tsr_allocate(tsr_mesh_context(mesh), (size_t)(parts + (few ? blocks : 0)) * sizeof(int64_t), &memory));
    *numbers = s->sizes = memory;
    s->blocks = few ? s->sizes + parts : NULL;
    return TSR_OK;
}

tsr_status tsr_pieces_cut(const tsr_pieces *pieces, tsr_placement *cuts, int64_t **numbers, bool *found)
{
    search s = {.pieces = pieces, .cuts = cuts};
    *numbers = NULL;
    memcpy(s.base, pieces->pieces[0].cuts, (size_t)tsr_mesh_ndim(pieces->mesh) * sizeof *s.base);
    tsr_status status = try_cut(&s, -1, tsr_shard(0));
    if (status == TSR_OK && !s.found)
        status = make_room(&s, numbers);
    for (int dim = 0; dim < tsr_mesh_ndim(pieces->mesh) && status == TSR_OK && !s.found; dim++) {
        if (is_cut(pieces->mesh, s.base, dim))
            status = try_dim(&s, dim);
    }
    *found = s.found;
    return status == TSR_OK && s.found ? tsr_cuts_simplify(pieces->mesh, pieces->size, cuts) : status;
}
