#include "placement/layout.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/settings.h"
#include "mesh/mesh.h"
#include "placement/check.h"
#include "placement/placement.h"

#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

#include <string.h>

/* An upper bound of the numbers behind the struct, in its block: the lists of all placements and
 * their prefix sums. */
static size_t count_numbers(const tsr_placement *placements, int count)
{
    size_t numbers = 0;
    for (int i = 0; i < count; i++)
        if (placements[i].kind == TSR_SHARD)
            numbers += 2 * (placements[i].size_count + placements[i].block_count + 1);
    return numbers;
}

static const int64_t *copy_numbers(int64_t **free_numbers, const int64_t *numbers, size_t count)
{
    if (count == 0)
        return NULL;
    int64_t *copy = *free_numbers;
    memcpy(copy, numbers, count * sizeof *copy);
    *free_numbers += count;
    return copy;
}

static const int64_t *sum_numbers(int64_t **free_numbers, const int64_t *numbers, size_t count)
{
    if (count == 0)
        return NULL;
    int64_t *starts = *free_numbers;
    starts[0] = 0;
    for (size_t i = 0; i < count; i++)
        starts[i + 1] = starts[i] + numbers[i];
    *free_numbers += count + 1;
    return starts;
}

/* `*free_numbers` is where the next list is copied to; NULL: lists stay the caller's, and there are
 * no prefix sums. */
static void take_placement(tsr_layout *layout, int mesh_dim, const tsr_placement *given, int64_t **free_numbers)
{
    tsr_placement *p = &layout->placements[mesh_dim];
    if (given->kind != TSR_SHARD) {
        *p = given->kind == TSR_PARTIAL ? tsr_partial(given->op) : tsr_replicate();
        return;
    }
    *p = *given;
    tsr_cut *cut = &layout->cuts[mesh_dim];
    *cut = (tsr_cut){
        .parts = tsr_mesh_shape(layout->mesh)[mesh_dim],
        .balanced = p->balanced,
        .interleave = tsr_max_i64(p->interleave, 1),
        .unit = tsr_max_i64(p->unit, 1),
        .block_count = p->block_count,
    };
    if (!free_numbers)
        return;
    p->sizes = copy_numbers(free_numbers, given->sizes, given->size_count);
    p->blocks = copy_numbers(free_numbers, given->blocks, given->block_count);
    cut->size_starts = sum_numbers(free_numbers, p->sizes, p->size_count);
    cut->block_starts = sum_numbers(free_numbers, p->blocks, p->block_count);
}

static void order_cuts(tsr_layout *layout)
{
    for (int dim = 0; dim < layout->ndim; dim++) {
        int sorted[TSR_MAX_DIMS];
        const int count = tsr_placements_order(layout->placements, layout->mesh_ndim, dim, sorted, NULL);
        tsr_dim_cuts *cuts = &layout->dims[dim];
        for (int i = 0; i < count; i++)
            if (layout->cuts[sorted[i]].parts > 1)
                cuts->mesh_dim[cuts->count++] = sorted[i];
    }
}

static uint64_t hash_placement(uint64_t hash, const tsr_placement *p)
{
    hash = tsr_hash_word(hash, (uint64_t)p->kind);
    if (p->kind == TSR_PARTIAL)
        return tsr_hash_word(hash, (uint64_t)p->op);
    if (p->kind == TSR_REPLICATE)
        return hash;
    const int64_t words[] = {p->dim, p->balanced != 0, tsr_max_i64(p->interleave, 1), tsr_max_i64(p->unit, 1)};
    hash = tsr_hash_words(hash, words, sizeof words / sizeof *words);
    hash = tsr_hash_words(tsr_hash_word(hash, p->size_count), p->sizes, p->size_count);
    return tsr_hash_words(tsr_hash_word(hash, p->block_count), p->blocks, p->block_count);
}

/* Numbers the mesh dims of size > 1 and gives the others -1, so that meshes 1x4 and 4 look
 * alike. */
static void number_mesh_dims(const tsr_layout *layout, int *numbers)
{
    int next = 0;
    for (int i = 0; i < layout->mesh_ndim; i++)
        numbers[i] = tsr_mesh_shape(layout->mesh)[i] > 1 ? next++ : -1;
}

static uint64_t hash_layout(const tsr_layout *layout)
{
    int numbers[TSR_MAX_DIMS];
    number_mesh_dims(layout, numbers);
    uint64_t hash = tsr_hash_word(tsr_mesh_hash(layout->mesh), (uint64_t)layout->dtype);
    hash = tsr_hash_words(tsr_hash_word(hash, (uint64_t)layout->ndim), layout->shape, (size_t)layout->ndim);
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (numbers[i] >= 0)
            hash = hash_placement(hash, &layout->placements[i]);
    for (int dim = 0; dim < layout->ndim; dim++)
        for (int i = 0; i < layout->dims[dim].count; i++)
            hash = tsr_hash_word(hash, (uint64_t)numbers[layout->dims[dim].mesh_dim[i]]);
    return hash;
}

static size_t layout_bytes(const tsr_placement *placements, int count)
{
    return sizeof(tsr_layout) + count_numbers(placements, count) * sizeof(int64_t);
}

/* Writes a layout of checked arguments into `layout`, which is all zero. `has_room`: there is
 * layout_bytes() of memory, else only the struct. Retains nothing. */
static tsr_status init_layout(tsr_layout *layout, const tsr_mesh *mesh, const tsr_placement *placements, int ndim,
                              const int64_t *shape, tsr_dtype dtype, bool has_room)
{
    layout->references = 1;
    layout->context = tsr_mesh_context(mesh);
    layout->mesh = (tsr_mesh *)mesh;
    layout->mesh_ndim = tsr_mesh_ndim(mesh);
    layout->ndim = ndim;
    if (ndim > 0)
        memcpy(layout->shape, shape, (size_t)ndim * sizeof *shape);
    layout->dtype = dtype;
    layout->element_bytes = tsr_dtype_bytes(dtype);
    int64_t *free_numbers = (int64_t *)(layout + 1);
    for (int i = 0; i < layout->mesh_ndim; i++)
        take_placement(layout, i, &placements[i], has_room ? &free_numbers : NULL);
    order_cuts(layout);
    if (has_room)
        TSR_TRY(tsr_layout_check_pieces(layout));
    layout->hash = hash_layout(layout);
    return TSR_OK;
}

tsr_status tsr_layout_create(const tsr_mesh *mesh, const tsr_placement *placements, int ndim, const int64_t *shape,
                             tsr_dtype dtype, tsr_layout **out)
{
    TSR_TRY(tsr_layout_check(mesh, placements, ndim, shape, dtype, out != NULL));
    tsr_context *context = tsr_mesh_context(mesh);
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(context, layout_bytes(placements, tsr_mesh_ndim(mesh)), &memory));
    const tsr_status status = init_layout(memory, mesh, placements, ndim, shape, dtype, true);
    if (status != TSR_OK) {
        tsr_release(context, memory);
        return status;
    }
    tsr_mesh_retain((tsr_mesh *)mesh);
    *out = memory;
    return TSR_OK;
}

tsr_status tsr_layout_probe_init(tsr_layout_probe *probe, const tsr_layout *like, const tsr_placement *placements)
{
    TSR_TRY(tsr_layout_check(like->mesh, placements, like->ndim, like->shape, like->dtype, true));
    const bool has_room = layout_bytes(placements, like->mesh_ndim) <= sizeof *probe;
    memset(&probe->layout, 0, sizeof probe->layout);
    return init_layout(&probe->layout, like->mesh, placements, like->ndim, like->shape, like->dtype, has_room);
}

/* The place in `to` of a list that lies behind `from`; NULL for NULL. */
static const int64_t *follow_list(const int64_t *numbers, const tsr_layout *from, const tsr_layout *to)
{
    return numbers ? (const int64_t *)(to + 1) + (numbers - (const int64_t *)(from + 1)) : NULL;
}

/* Copies the probe without checking and hashing it again; only the addresses of its lists
 * differ. */
tsr_status tsr_layout_keep(const tsr_layout_probe *probe, tsr_layout **out)
{
    const tsr_layout *from = &probe->layout;
    const size_t bytes = layout_bytes(from->placements, from->mesh_ndim);
    if (bytes > sizeof *probe)
        return tsr_layout_with(from, from->placements, out);
    void *memory;
    TSR_TRY(tsr_allocate(from->context, bytes, &memory));
    tsr_layout *layout = memcpy(memory, probe, bytes);
    for (int i = 0; i < layout->mesh_ndim; i++) {
        tsr_placement *p = &layout->placements[i];
        tsr_cut *cut = &layout->cuts[i];
        p->sizes = follow_list(p->sizes, from, layout);
        p->blocks = follow_list(p->blocks, from, layout);
        cut->size_starts = follow_list(cut->size_starts, from, layout);
        cut->block_starts = follow_list(cut->block_starts, from, layout);
    }
    tsr_mesh_retain(layout->mesh);
    *out = layout;
    return TSR_OK;
}

uint64_t tsr_layout_hash(const tsr_layout *layout)
{
    return layout->hash;
}

uint64_t tsr_layout_number(const tsr_layout *numbered)
{
    /* const protects the value of a layout, and its number is not part of it; every layout lies in
     * allocated, writable memory. */
    tsr_layout *const layout = (tsr_layout *)numbered;
    uint64_t id = atomic_load_explicit(&layout->id, memory_order_relaxed);
    if (id != 0)
        return id;
    const uint64_t next = tsr_context_number(layout->context);
    return atomic_compare_exchange_strong_explicit(&layout->id, &id, next, memory_order_relaxed, memory_order_relaxed)
               ? next
               : id;
}

tsr_status tsr_placements_parse_for(const tsr_mesh *mesh, const char *text, tsr_placement *out, int64_t *numbers,
                                    size_t capacity)
{
    const int wanted = tsr_mesh_ndim(mesh);
    int count = 0;
    TSR_TRY(tsr_placements_parse(text, out, TSR_MAX_DIMS, &count, numbers, capacity, NULL));
    if (count == wanted)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "placements \"%.200s\" has %d placement%s, but the mesh has %d dim%s: one each is needed",
                          text, count, count == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s");
}

tsr_status tsr_layout_parse(const tsr_mesh *mesh, const char *text, int ndim, const int64_t *shape, tsr_dtype dtype,
                            tsr_layout **out)
{
    if (!mesh || !text || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_parse: %s is NULL",
                              !mesh   ? "mesh"
                              : !text ? "placements"
                                      : "out");
    tsr_context *context = tsr_mesh_context(mesh);
    const size_t capacity = strlen(text);
    void *numbers;
    TSR_TRY(tsr_allocate_array(context, capacity, sizeof(int64_t), &numbers));
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_status status = tsr_placements_parse_for(mesh, text, placements, numbers, capacity);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, placements, ndim, shape, dtype, out);
    tsr_release(context, numbers);
    return status;
}

tsr_layout *tsr_layout_retain(tsr_layout *layout)
{
    if (layout)
        tsr_references_add(&layout->references);
    return layout;
}

void tsr_layout_destroy(tsr_layout *layout)
{
    if (!layout || !tsr_references_drop(&layout->references))
        return;
    tsr_mesh *mesh = layout->mesh;
    tsr_release(layout->context, layout);
    tsr_mesh_destroy(mesh);
}

const tsr_mesh *tsr_layout_mesh(const tsr_layout *layout)
{
    return layout->mesh;
}

int tsr_layout_ndim(const tsr_layout *layout)
{
    return layout->ndim;
}

const int64_t *tsr_layout_shape(const tsr_layout *layout)
{
    return layout->shape;
}

tsr_dtype tsr_layout_dtype(const tsr_layout *layout)
{
    return layout->dtype;
}

const tsr_placement *tsr_layout_placements(const tsr_layout *layout)
{
    return layout->placements;
}

/* Compares the mesh dims that cut each tensor dim, in their order; mesh dims of size 1 are not
 * counted. */
static bool cuts_equal(const tsr_layout *a, const tsr_layout *b)
{
    int a_numbers[TSR_MAX_DIMS], b_numbers[TSR_MAX_DIMS];
    number_mesh_dims(a, a_numbers);
    number_mesh_dims(b, b_numbers);
    for (int dim = 0; dim < a->ndim; dim++) {
        if (a->dims[dim].count != b->dims[dim].count)
            return false;
        for (int i = 0; i < a->dims[dim].count; i++)
            if (a_numbers[a->dims[dim].mesh_dim[i]] != b_numbers[b->dims[dim].mesh_dim[i]])
                return false;
    }
    return true;
}

static bool placements_equal(const tsr_layout *a, const tsr_layout *b)
{
    int i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->mesh_ndim && tsr_mesh_shape(a->mesh)[i] == 1)
            i++;
        while (j < b->mesh_ndim && tsr_mesh_shape(b->mesh)[j] == 1)
            j++;
        if (i == a->mesh_ndim || j == b->mesh_ndim)
            return i == a->mesh_ndim && j == b->mesh_ndim;
        if (!tsr_placement_same(&a->placements[i], &b->placements[j]))
            return false;
    }
}

bool tsr_layout_same_tensor(const tsr_layout *a, const tsr_layout *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

bool tsr_layout_alike(const tsr_layout *a, const tsr_layout *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof a->shape) == 0 && tsr_mesh_equal(a->mesh, b->mesh) &&
           placements_equal(a, b) && cuts_equal(a, b);
}

int tsr_layout_equal(const tsr_layout *a, const tsr_layout *b)
{
    if (a == b)
        return 1;
    if (!a || !b || a->hash != b->hash)
        return 0;
    return a->dtype == b->dtype && tsr_layout_alike(a, b);
}

tsr_status tsr_layout_with(const tsr_layout *layout, const tsr_placement *placements, tsr_layout **out)
{
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_with: layout is NULL");
    return tsr_layout_create(layout->mesh, placements, layout->ndim, layout->shape, layout->dtype, out);
}

void tsr_placements_on(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out)
{
    const int64_t *have = tsr_mesh_shape(layout->mesh), *want = tsr_mesh_shape(mesh);
    const int ndim = tsr_mesh_ndim(mesh);
    if (ndim == layout->mesh_ndim && memcmp(have, want, (size_t)ndim * sizeof *have) == 0) {
        memcpy(out, layout->placements, (size_t)ndim * sizeof *out);
        return;
    }
    for (int i = 0, from = 0; i < ndim; i++) {
        out[i] = tsr_replicate();
        if (want[i] == 1)
            continue;
        while (have[from] == 1)
            from++;
        out[i] = layout->placements[from];
        out[i].order = tsr_placement_order(layout->placements, from++);
    }
}

tsr_status tsr_gradient_placements(const tsr_layout *layout, const tsr_mesh *mesh, tsr_placement *out)
{
    tsr_placements_on(layout, mesh, out);
    for (int i = 0; i < tsr_mesh_ndim(mesh); i++) {
        const tsr_placement *p = &out[i];
        if (p->kind == TSR_PARTIAL && p->op != TSR_SUM && p->op != TSR_AVG)
            return tsr_status_set(
                TSR_ERROR_UNSUPPORTED,
                "P(%s) has no gradient layout: only the terms of sum and avg have gradients of their own",
                tsr_reduce_op_name(p->op));
        if (p->kind == TSR_PARTIAL)
            out[i] = tsr_replicate();
    }
    return TSR_OK;
}

tsr_status tsr_layout_gradient(const tsr_layout *layout, tsr_layout **out)
{
    if (!layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_gradient: %s is NULL", !layout ? "layout" : "out");
    tsr_placement placements[TSR_MAX_DIMS];
    TSR_TRY(tsr_gradient_placements(layout, layout->mesh, placements));
    return tsr_layout_with(layout, placements, out);
}

int64_t tsr_layout_largest_length(const tsr_layout *layout, int dim)
{
    int64_t length = layout->shape[dim];
    for (int i = 0; i < layout->dims[dim].count; i++)
        length = tsr_cut_most(&layout->cuts[layout->dims[dim].mesh_dim[i]], length);
    return length;
}
