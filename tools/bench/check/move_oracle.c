#include "bench/check/move_oracle.h"

#include "bench/check/terms.h"
#include "shards/owned.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* The values of a rank's elements: hashes of the global index, terms from a table, or one
 * value. */
typedef struct values {
    tsr_dtype dtype;
    size_t bytes;
    int64_t picks;
    unsigned char *table; /* terms by pick and choice; NULL: values are hashes of the index */
    bool constant;        /* all elements are `neutral` */
    bool only_own;        /* elements outside `own` are `neutral` */
    unsigned char neutral[ELEMENT_BYTES];
    owned own[TSR_MAX_DIMS]; /* intervals of the source that this rank holds, along each dim */
    int ndim;
} values;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static void value_at(const values *v, int64_t index, unsigned char out[ELEMENT_BYTES])
{
    uint64_t bits[2] = {mix((uint64_t)index + 1), 0};
    if (v->table) {
        const uint64_t pick = (bits[0] >> 8) % (uint64_t)v->picks;
        memcpy(out, v->table + (pick * TERM_CHOICES + bits[0] % TERM_CHOICES) * ELEMENT_BYTES, ELEMENT_BYTES);
        return;
    }
    bits[1] = mix(~bits[0]);
    if (v->dtype == TSR_BOOL)
        bits[0] &= 1;
    memcpy(out, bits, ELEMENT_BYTES);
}

static bool has_index(const owned *dim, int64_t index)
{
    size_t low = 0, high = dim->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (dim->at[middle].end <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < dim->count && dim->at[low].begin <= index;
}

static void free_owned(owned *dims)
{
    for (int d = 0; d < TSR_MAX_DIMS; d++)
        free(dims[d].at);
}

static tsr_status read_owned(const tsr_layout *layout, const int64_t *coordinate, owned dims[TSR_MAX_DIMS])
{
    for (int d = 0; d < tsr_layout_ndim(layout); d++)
        TSR_TRY(owned_read(layout, coordinate, d, &dims[d]));
    return TSR_OK;
}

/* Visits the elements of a shard in memory order: `index` is an element's global index along each
 * dim, `global` its row-major index in the whole tensor. */
typedef struct walk {
    const values *values;
    const owned *dims;
    const int64_t *shape;
    int ndim;
    int64_t index[TSR_MAX_DIMS];
    unsigned char *at;
    int64_t wrong;
    void (*visit)(struct walk *w, int64_t global);
} walk;

static void walk_dim(walk *w, int dim, int64_t global)
{
    if (dim == w->ndim) {
        w->visit(w, global);
        w->at += w->values->bytes;
        return;
    }
    for (size_t i = 0; i < w->dims[dim].count; i++) {
        for (int64_t x = w->dims[dim].at[i].begin; x < w->dims[dim].at[i].end; x++) {
            w->index[dim] = x;
            walk_dim(w, dim + 1, global * w->shape[dim] + x);
        }
    }
}

static void write_value(walk *w, int64_t global)
{
    unsigned char value[ELEMENT_BYTES];
    value_at(w->values, global, value);
    memcpy(w->at, value, w->values->bytes);
}

static void compare_value(walk *w, int64_t global)
{
    const values *const v = w->values;
    unsigned char value[ELEMENT_BYTES];
    bool neutral = v->constant;
    for (int d = 0; v->only_own && d < v->ndim; d++)
        neutral = neutral || !has_index(&v->own[d], w->index[d]);
    value_at(v, global, value);
    w->wrong += memcmp(w->at, neutral ? v->neutral : value, v->bytes) != 0;
}

static tsr_status walk_shard(const tsr_layout *layout, const int64_t *coordinate, walk *w)
{
    owned dims[TSR_MAX_DIMS] = {{0}};
    w->dims = dims;
    w->shape = tsr_layout_shape(layout);
    w->ndim = tsr_layout_ndim(layout);
    const tsr_status status = read_owned(layout, coordinate, dims);
    if (status == TSR_OK)
        walk_dim(w, 0, 0);
    free_owned(dims);
    return status;
}

static void finish_values(values *v)
{
    free(v->table);
    free_owned(v->own);
}

static tsr_status make_values(const tsr_layout *from, const int64_t *coordinate, const bool *reduced, values *out)
{
    const terms t = terms_of(from);
    *out =
        (values){.dtype = t.dtype, .bytes = tsr_dtype_bytes(t.dtype), .picks = t.picks, .ndim = tsr_layout_ndim(from)};
    if (t.count == 0)
        return TSR_OK;
    out->table = malloc((size_t)t.picks * TERM_CHOICES * ELEMENT_BYTES);
    if (!out->table)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the terms of %lld ranks", (long long)t.picks);
    terms_table(&t, coordinate, reduced, out->table);
    return TSR_OK;
}

tsr_status oracle_fill(const tsr_layout *from, const int64_t *coordinate, void *local)
{
    static const bool none[TSR_MAX_DIMS] = {false};
    values v;
    TSR_TRY(make_values(from, coordinate, none, &v));
    walk w = {.values = &v, .at = local, .visit = write_value};
    const tsr_status status = walk_shard(from, coordinate, &w);
    finish_values(&v);
    return status;
}

static int cut_order(const tsr_placement *placements, int mesh_dim)
{
    return placements[mesh_dim].order == TSR_ORDER_DEFAULT ? mesh_dim : placements[mesh_dim].order;
}

static bool takes_shortcut(const tsr_placement *from, const tsr_placement *to, int mesh_dim)
{
    return from[mesh_dim].kind == TSR_SHARD && to[mesh_dim].kind == TSR_PARTIAL && to[mesh_dim].op == TSR_SUM;
}

/* True if the order of the cuts of mesh dims `a` and `b` allows the shortcut: on one tensor dim a
 * kept cut comes before a removed one, and kept cuts keep their order. */
static bool order_allows(const tsr_placement *from, const tsr_placement *to, int a, int b)
{
    if (from[a].kind != TSR_SHARD || from[b].kind != TSR_SHARD || from[a].dim != from[b].dim ||
        takes_shortcut(from, to, a))
        return true;
    const bool before = cut_order(from, a) < cut_order(from, b);
    return takes_shortcut(from, to, b) ? before : before == (cut_order(to, a) < cut_order(to, b));
}

/* True for a move Shard -> Partial(sum) in which every rank just keeps its elements: all other
 * mesh dims keep their placement, and on every tensor dim removed cuts come after kept ones. */
static bool is_shortcut(const tsr_layout *from, const tsr_layout *to)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(from);
    const tsr_placement *const a = tsr_layout_placements(from), *const b = tsr_layout_placements(to);
    bool any = false;
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++) {
        if (tsr_mesh_size(mesh, d) == 1)
            continue;
        const bool takes = takes_shortcut(a, b, d);
        any = any || takes;
        if (!takes && !tsr_placement_same(&a[d], &b[d]))
            return false;
        for (int e = 0; e < tsr_mesh_ndim(mesh); e++)
            if (e != d && tsr_mesh_size(mesh, e) > 1 && !order_allows(a, b, d, e))
                return false;
    }
    return any;
}

/* Marks in `reduced` the Partial dims that `to` does not keep, and sets in `v` which elements of a
 * new Partial dim are neutral on this rank. */
static void apply_partials(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate, bool *reduced,
                           values *v)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(to);
    const tsr_placement *const a = tsr_layout_placements(from), *const b = tsr_layout_placements(to);
    const bool shortcut = is_shortcut(from, to);
    const terms t = terms_of(from);
    for (int i = 0; i < t.count; i++)
        reduced[i] = !tsr_placement_same(&a[t.mesh_dim[i]], &b[t.mesh_dim[i]]);
    v->only_own = shortcut;
    if (shortcut)
        encode_neutral(t.dtype, TSR_SUM, v->neutral);
    for (int d = 0; d < tsr_mesh_ndim(mesh) && !shortcut; d++) {
        const bool fills = b[d].kind == TSR_PARTIAL && (b[d].op == TSR_SUM || b[d].op == TSR_PROD);
        if (!fills || tsr_placement_same(&a[d], &b[d]) || coordinate[d] == 0)
            continue;
        v->constant = true;
        encode_neutral(t.dtype, b[d].op, v->neutral);
    }
}

tsr_status oracle_count_wrong(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate,
                              const void *local, int64_t *wrong)
{
    bool reduced[TSR_MAX_DIMS] = {false};
    values rules = {0}, v;
    apply_partials(from, to, coordinate, reduced, &rules);
    tsr_status status = make_values(from, coordinate, reduced, &v);
    v.constant = rules.constant;
    v.only_own = rules.only_own;
    memcpy(v.neutral, rules.neutral, sizeof v.neutral);
    if (status == TSR_OK && v.only_own)
        status = read_owned(from, coordinate, v.own);
    walk w = {.values = &v, .at = (unsigned char *)local, .visit = compare_value};
    if (status == TSR_OK)
        status = walk_shard(to, coordinate, &w);
    finish_values(&v);
    if (status == TSR_OK)
        *wrong = w.wrong;
    return status;
}
