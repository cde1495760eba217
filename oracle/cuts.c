/* Ownership of indices, of which each passes one cut after the other. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

int64_t oracle_mesh_count(const oracle_mesh *mesh)
{
    int64_t count = 1;
    for (int d = 0; d < mesh->ndim; d++)
        count *= mesh->shape[d];
    return count;
}

void oracle_mesh_coordinate(const oracle_mesh *mesh, int64_t position, int64_t *coordinate)
{
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coordinate[d] = position % mesh->shape[d];
        position /= mesh->shape[d];
    }
}

int64_t oracle_mesh_position(const oracle_mesh *mesh, int64_t rank)
{
    const int64_t count = oracle_mesh_count(mesh);
    if (count > ORACLE_MAX_RANKS)
        return rank < count ? rank : -1;
    for (int64_t p = 0; p < count; p++)
        if (mesh->ranks[p] == rank)
            return p;
    return -1;
}

oracle_mesh oracle_mesh_make(int ndim, const int64_t *shape, int64_t first)
{
    oracle_mesh mesh = {.ndim = ndim};
    memcpy(mesh.shape, shape, (size_t)ndim * sizeof *shape);
    const int64_t count = oracle_mesh_count(&mesh);
    for (int64_t p = 0; p < count && p < ORACLE_MAX_RANKS; p++)
        mesh.ranks[p] = first + p;
    return mesh;
}

/* A cut on its way along a piece: it says of one position after the other whether the part has it.
 * A cut by sizes has one block, the piece; else each block is divided into units, which are dealt
 * out. */
typedef struct sieve {
    const tsr_placement *placement;
    int64_t parts, part, length;
    int64_t position, end; /* the next position, and the end of its block */
    size_t block;          /* the next block */
    int64_t first, last;   /* in this block the part has the positions [first, last) */
} sieve;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0 ? 1 : 0);
}

static int64_t at_most(int64_t a, int64_t bound)
{
    return a < bound ? a : bound;
}

/* The first of `length` items that is dealt to part `part` or to a later part. */
static int64_t deal(bool balanced, int64_t length, int64_t parts, int64_t part)
{
    if (balanced)
        return part * (length / parts) + at_most(part, length % parts);
    return at_most(part * ceil_div(length, parts), length);
}

static void begin_sizes(sieve *s)
{
    for (int64_t p = 0; p < s->part; p++)
        s->first += s->placement->sizes[p];
    s->last = s->first + s->placement->sizes[s->part];
    s->end = s->length;
}

static void begin_block(sieve *s)
{
    const tsr_placement *const p = s->placement;
    const int64_t begin = s->end, unit = p->unit > 0 ? p->unit : 1;
    const int64_t length = p->blocks
                               ? p->blocks[s->block]
                               : at_most(ceil_div(s->length, p->interleave > 0 ? p->interleave : 1), s->length - begin);
    const int64_t units = ceil_div(length, unit);
    s->block++;
    s->end = begin + length;
    s->first = begin + deal(p->balanced, units, s->parts, s->part) * unit;
    s->last = begin + deal(p->balanced, units, s->parts, s->part + 1) * unit;
}

static sieve sieve_make(const tsr_placement *placement, int64_t parts, int64_t part, int64_t length)
{
    sieve s = {.placement = placement, .parts = parts, .part = part, .length = length};
    if (placement->sizes)
        begin_sizes(&s);
    return s;
}

/* Whether the part has the next position, and the `*same` positions from there; the piece has one.
 * The caller advances the position. */
static bool sieve_keeps(sieve *s, int64_t *same)
{
    while (s->position == s->end)
        begin_block(s);
    const int64_t at = s->position;
    const bool keeps = s->first <= at && at < s->last;
    *same = at_most(keeps ? s->last : at < s->first ? s->first : s->end, s->end) - at;
    return keeps;
}

int64_t oracle_cut(const tsr_placement *placement, int64_t parts, int64_t part, const int64_t *piece, int64_t count,
                   int64_t *out)
{
    sieve s = sieve_make(placement, parts, part, count);
    int64_t kept = 0, same;
    for (; s.position < count; s.position++)
        if (sieve_keeps(&s, &same))
            out[kept++] = piece[s.position];
    return kept;
}

static int order_of(const oracle_layout *layout, int mesh_dim)
{
    const int order = layout->placements[mesh_dim].order;
    return order == TSR_ORDER_DEFAULT ? mesh_dim : order;
}

int oracle_cuts_of(const oracle_layout *layout, int dim, int *mesh_dims)
{
    int count = 0;
    for (int m = 0; m < layout->mesh.ndim; m++) {
        if (layout->placements[m].kind != TSR_SHARD || layout->placements[m].dim != dim)
            continue;
        int at = count++;
        for (; at > 0 && order_of(layout, mesh_dims[at - 1]) > order_of(layout, m); at--)
            mesh_dims[at] = mesh_dims[at - 1];
        mesh_dims[at] = m;
    }
    return count;
}

/* The indices of a dim that pass one cut after the other. */
typedef struct chain {
    int64_t next, length;
    int count;
    sieve cuts[TSR_MAX_DIMS];
} chain;

/* The next indices that pass all cuts, as far as all cuts treat them alike. */
static bool chain_next(chain *c, oracle_run *out)
{
    while (c->next < c->length) {
        bool kept = true;
        int asked = 0;
        int64_t step = c->length - c->next, same;
        while (asked < c->count && kept) {
            kept = sieve_keeps(&c->cuts[asked++], &same);
            step = at_most(same, step);
        }
        for (int i = 0; i < asked; i++)
            c->cuts[i].position += step;
        *out = (oracle_run){c->next, c->next + step};
        c->next += step;
        if (kept)
            return true;
    }
    return false;
}

/* The number of indices that pass all cuts. */
static int64_t chain_count(chain c)
{
    int64_t count = 0;
    oracle_run run;
    while (chain_next(&c, &run))
        count += run.end - run.begin;
    return count;
}

/* Each cut divides what the cuts before it leave. */
static chain chain_make(const oracle_layout *layout, const int64_t *coordinate, int dim)
{
    int mesh_dims[TSR_MAX_DIMS];
    const int count = oracle_cuts_of(layout, dim, mesh_dims);
    chain c = {.length = layout->shape[dim]};
    for (int i = 0; i < count; i++) {
        const int m = mesh_dims[i];
        c.cuts[i] = sieve_make(&layout->placements[m], layout->mesh.shape[m], coordinate[m], chain_count(c));
        c.count++;
    }
    return c;
}

int64_t oracle_owned(const oracle_layout *layout, const int64_t *coordinate, int dim, int64_t *out)
{
    chain c = chain_make(layout, coordinate, dim);
    int64_t count = 0;
    oracle_run run;
    while (chain_next(&c, &run))
        for (int64_t i = run.begin; i < run.end; i++)
            out[count++] = i;
    return count;
}

static bool add_run(oracle_runs *runs, size_t *room, oracle_run run)
{
    if (runs->count == *room) {
        const size_t more = 2 * *room + 16;
        oracle_run *const at = realloc(runs->at, more * sizeof *at);
        if (!at)
            return false;
        runs->at = at;
        *room = more;
    }
    runs->at[runs->count++] = run;
    return true;
}

bool oracle_runs_create(const oracle_layout *layout, const int64_t *coordinate, int dim, oracle_runs *out)
{
    chain c = chain_make(layout, coordinate, dim);
    size_t room = 0;
    oracle_run run;
    *out = (oracle_runs){.at = NULL};
    while (chain_next(&c, &run)) {
        if (out->count > 0 && out->at[out->count - 1].end == run.begin)
            out->at[out->count - 1].end = run.end;
        else if (!add_run(out, &room, run)) {
            oracle_runs_destroy(out);
            return false;
        }
        out->length += run.end - run.begin;
    }
    return true;
}

void oracle_runs_destroy(oracle_runs *runs)
{
    free(runs->at);
    *runs = (oracle_runs){.at = NULL};
}

bool oracle_runs_have(const oracle_runs *runs, int64_t index)
{
    size_t low = 0, high = runs->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (runs->at[middle].end <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < runs->count && runs->at[low].begin <= index;
}

void oracle_shard_create(const oracle_layout *layout, int64_t rank, oracle_shard *out)
{
    const int64_t position = oracle_mesh_position(&layout->mesh, rank);
    int64_t coordinate[TSR_MAX_DIMS];
    if (position >= 0)
        oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    *out = (oracle_shard){.ndim = layout->ndim, .count = position >= 0 ? 1 : 0};
    for (int d = 0; d < layout->ndim; d++) {
        out->global_shape[d] = layout->shape[d];
        out->index[d] = calloc((size_t)layout->shape[d] + 1, sizeof(int64_t));
        out->shape[d] = position >= 0 ? oracle_owned(layout, coordinate, d, out->index[d]) : 0;
        out->count *= out->shape[d];
    }
}

void oracle_shard_destroy(oracle_shard *shard)
{
    for (int d = 0; d < shard->ndim; d++)
        free(shard->index[d]);
}

int64_t oracle_shard_global(const oracle_shard *shard, int64_t local)
{
    int64_t global = 0, weight = 1;
    for (int d = shard->ndim - 1; d >= 0; d--) {
        global += shard->index[d][local % shard->shape[d]] * weight;
        local /= shard->shape[d];
        weight *= shard->global_shape[d];
    }
    return global;
}

int64_t oracle_count(const oracle_layout *layout)
{
    int64_t count = 1;
    for (int d = 0; d < layout->ndim; d++)
        count *= layout->shape[d];
    return count;
}

void oracle_mark(const oracle_layout *layout, int64_t rank, bool *held)
{
    oracle_shard shard;
    oracle_shard_create(layout, rank, &shard);
    for (int64_t i = 0; i < shard.count; i++)
        held[oracle_shard_global(&shard, i)] = true;
    oracle_shard_destroy(&shard);
}

bool oracle_are_replicas(const oracle_layout *layout, int64_t p, int64_t q)
{
    int64_t a[TSR_MAX_DIMS], b[TSR_MAX_DIMS];
    oracle_mesh_coordinate(&layout->mesh, p, a);
    oracle_mesh_coordinate(&layout->mesh, q, b);
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].kind != TSR_REPLICATE && a[m] != b[m])
            return false;
    return true;
}
