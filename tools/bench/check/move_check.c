#include "bench/check/move_check.h"

#include "bench/check/terms.h"
#include "oracle.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define ELEMENT_BYTES 16

/* A move, and a rank's place in it. Mesh dims of size 1 are left out of both. */
typedef struct check {
    oracle_move move;
    int64_t coordinate[TSR_MAX_DIMS];
    size_t bytes; /* of an element */
    int64_t patterns;
    unsigned char *table; /* the value of each pattern; NULL: values are hashes of the index */
    bool constant;        /* all elements are `neutral` */
    bool only_own;        /* elements outside of `own` are `neutral` */
    unsigned char neutral[ELEMENT_BYTES];
    oracle_runs own[TSR_MAX_DIMS]; /* what this rank has of the source, along each dim */
} check;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static void value_at(const check *c, int64_t index, unsigned char out[ELEMENT_BYTES])
{
    uint64_t bits[2] = {mix((uint64_t)index + 1), 0};
    if (c->table) {
        const uint64_t picks = (uint64_t)(c->patterns / TERM_CHOICES), pick = (bits[0] >> 8) % picks;
        memcpy(out, c->table + (pick * TERM_CHOICES + bits[0] % TERM_CHOICES) * ELEMENT_BYTES, ELEMENT_BYTES);
        return;
    }
    bits[1] = mix(~bits[0]);
    if (c->move.src.dtype == TSR_BOOL)
        bits[0] &= 1;
    memcpy(out, bits, ELEMENT_BYTES);
}

static oracle_layout model_of(const tsr_layout *layout)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int64_t shape[TSR_MAX_DIMS];
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        shape[d] = tsr_mesh_size(mesh, d);
    oracle_layout model = {.mesh = oracle_mesh_make(tsr_mesh_ndim(mesh), shape, 0),
                           .ndim = tsr_layout_ndim(layout),
                           .dtype = tsr_layout_dtype(layout)};
    for (int d = 0; d < model.mesh.ndim; d++)
        model.placements[d] = tsr_layout_placements(layout)[d];
    for (int d = 0; d < model.ndim; d++)
        model.shape[d] = tsr_layout_shape(layout)[d];
    return model;
}

static void check_make(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate, check *out)
{
    const oracle_layout src = model_of(from), dst = model_of(to);
    *out = (check){.bytes = oracle_bytes(src.dtype)};
    oracle_move_make(&src, &dst, &out->move);
    out->patterns = terms_patterns(&out->move);
    int left = 0;
    for (int d = 0; d < src.mesh.ndim; d++)
        if (src.mesh.shape[d] > 1)
            out->coordinate[left++] = coordinate[d];
}

static void check_finish(check *c)
{
    free(c->table);
    for (int d = 0; d < TSR_MAX_DIMS; d++)
        oracle_runs_destroy(&c->own[d]);
}

/* Makes the table of the source's values (`reduced` is false) or of the result's. */
static tsr_status make_table(check *c, bool reduced)
{
    if (c->patterns == 0)
        return TSR_OK;
    c->table = malloc((size_t)c->patterns * ELEMENT_BYTES);
    if (!c->table)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the terms of %lld ranks",
                              (long long)(c->patterns / TERM_CHOICES));
    for (int64_t p = 0; p < c->patterns; p++) {
        unsigned char *const value = c->table + (size_t)p * ELEMENT_BYTES;
        if (reduced)
            oracle_reduced_value(&c->move, terms_draw, NULL, c->coordinate, p, value);
        else
            terms_draw(&c->move, NULL, c->coordinate, p, value);
    }
    return TSR_OK;
}

static tsr_status find_runs(const oracle_layout *layout, const int64_t *coordinate, oracle_runs runs[TSR_MAX_DIMS])
{
    for (int d = 0; d < layout->ndim; d++)
        if (!oracle_runs_create(layout, coordinate, d, &runs[d]))
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the elements of tensor dim %d", d);
    return TSR_OK;
}

/* Visits the elements of a shard in memory order: `index` is an element's global index along each
 * dim, `global` its row-major index in the whole tensor. */
typedef struct walk {
    const check *check;
    const int64_t *shape;
    int ndim;
    oracle_runs runs[TSR_MAX_DIMS];
    int64_t index[TSR_MAX_DIMS];
    unsigned char *at;
    int64_t wrong;
    void (*visit)(struct walk *w, int64_t global);
} walk;

static void walk_dim(walk *w, int dim, int64_t global)
{
    if (dim == w->ndim) {
        w->visit(w, global);
        w->at += w->check->bytes;
        return;
    }
    for (size_t i = 0; i < w->runs[dim].count; i++) {
        for (int64_t x = w->runs[dim].at[i].begin; x < w->runs[dim].at[i].end; x++) {
            w->index[dim] = x;
            walk_dim(w, dim + 1, global * w->shape[dim] + x);
        }
    }
}

static void write_value(walk *w, int64_t global)
{
    unsigned char value[ELEMENT_BYTES];
    value_at(w->check, global, value);
    memcpy(w->at, value, w->check->bytes);
}

static void compare_value(walk *w, int64_t global)
{
    const check *const c = w->check;
    unsigned char value[ELEMENT_BYTES];
    bool neutral = c->constant;
    for (int d = 0; c->only_own && d < w->ndim; d++)
        neutral = neutral || !oracle_runs_have(&c->own[d], w->index[d]);
    value_at(c, global, value);
    w->wrong += memcmp(w->at, neutral ? c->neutral : value, c->bytes) != 0;
}

static tsr_status check_size(const walk *w, size_t bytes)
{
    int64_t count = 1;
    for (int d = 0; d < w->ndim; d++)
        count *= w->runs[d].length;
    if ((size_t)count * w->check->bytes == bytes)
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_INTERNAL,
        "a shard has %lld elements by the rules of layouts, but memory of %zu bytes; please report it",
        (long long)count, bytes);
}

/* Walks over this rank's elements of the move's source or destination. */
static tsr_status walk_shard(const oracle_layout *layout, walk *w, size_t bytes)
{
    w->shape = layout->shape;
    w->ndim = layout->ndim;
    tsr_status status = find_runs(layout, w->check->coordinate, w->runs);
    if (status == TSR_OK)
        status = check_size(w, bytes);
    if (status == TSR_OK)
        walk_dim(w, 0, 0);
    for (int d = 0; d < w->ndim; d++)
        oracle_runs_destroy(&w->runs[d]);
    return status;
}

tsr_status check_fill(const tsr_layout *from, const int64_t *coordinate, void *local, size_t bytes)
{
    check c;
    check_make(from, from, coordinate, &c);
    walk w = {.check = &c, .at = local, .visit = write_value};
    tsr_status status = make_table(&c, false);
    if (status == TSR_OK)
        status = walk_shard(&c.move.src, &w, bytes);
    check_finish(&c);
    return status;
}

/* Finds out which elements of the result are neutral. */
static tsr_status find_neutral(check *c)
{
    const tsr_placement *const fill = oracle_filled_by(&c->move, c->coordinate);
    c->only_own = c->move.shortcut;
    c->constant = fill && !c->only_own;
    if (c->only_own || c->constant)
        oracle_identity(c->move.src.dtype, c->only_own ? TSR_SUM : fill->op, c->neutral);
    return c->only_own ? find_runs(&c->move.src, c->coordinate, c->own) : TSR_OK;
}

tsr_status check_count_wrong(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate, const void *local,
                             size_t bytes, int64_t *wrong)
{
    check c;
    check_make(from, to, coordinate, &c);
    walk w = {.check = &c, .at = (unsigned char *)local, .visit = compare_value};
    tsr_status status = make_table(&c, true);
    if (status == TSR_OK)
        status = find_neutral(&c);
    if (status == TSR_OK)
        status = walk_shard(&c.move.dst, &w, bytes);
    check_finish(&c);
    if (status == TSR_OK)
        *wrong = w.wrong;
    return status;
}
