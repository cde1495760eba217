#include "ops/layer_cache.h"

#include "ops/layer_rule.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

/* Layouts that a mesh keeps; a power of two. */
#define KEPT 64
/* The number of y, behind those of the gradients. */
#define Y 3

/* What is asked for: y, or the gradient of one of the operands. */
typedef struct question {
    const char *caller;
    int which;
    tsr_dtype dtype; /* of a gradient */
    const tsr_layout *operands[3], *dy;
} question;

/* An answer; its layouts are on the abstract mesh. */
typedef struct kept {
    tsr_layout *out; /* NULL: unused */
    uint64_t hash;
    int which;
    tsr_dtype dtype;
    tsr_layout *operands[3];
} kept;

typedef struct layer_cache {
    tsr_context *context; /* borrowed: the mesh's */
    tsr_mesh *abstract;   /* a copy, for layouts that are kept */
    kept kept[KEPT];      /* by hash; a new one takes the place of an old one */
} layer_cache;

static void drop(kept *k)
{
    for (int i = 0; i < 3; i++)
        tsr_layout_destroy(k->operands[i]);
    tsr_layout_destroy(k->out);
    memset(k, 0, sizeof *k);
}

static void destroy_cache(void *made)
{
    layer_cache *const cache = made;
    for (int i = 0; i < KEPT; i++)
        drop(&cache->kept[i]);
    tsr_mesh_destroy(cache->abstract);
    tsr_release(cache->context, cache);
}

static tsr_status make_cache(const tsr_mesh *mesh, void **out)
{
    void *room;
    tsr_context *const context = tsr_mesh_context(mesh);
    TSR_TRY(tsr_allocate(context, sizeof(layer_cache), &room));
    layer_cache *const cache = memset(room, 0, sizeof *cache);
    cache->context = context;
    const tsr_status status = tsr_mesh_copy(mesh, &cache->abstract);
    if (status == TSR_OK)
        *out = cache;
    else
        destroy_cache(cache);
    return status;
}

static tsr_status infer(const question *q, tsr_layout **out)
{
    if (q->which == Y)
        return tsr_layer_rule_y(q->caller, q->operands[0], q->operands[1], q->operands[2], out);
    const tsr_layout *const other = q->which < 2 ? q->operands[1 - q->which] : NULL;
    return tsr_layer_rule_gradient(q->caller, q->which, q->dy, other, q->dtype, out);
}

/* True if all operands are on one mesh object, which has a communicator. */
static bool is_kept_by_mesh(const question *q)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(q->operands[0]);
    bool same = tsr_mesh_comm(mesh) != NULL;
    for (int i = 1; i < 3; i++)
        same = same && (!q->operands[i] || tsr_layout_mesh(q->operands[i]) == mesh);
    return same;
}

static uint64_t hash_question(const question *q)
{
    uint64_t hash = (uint64_t)q->which * 256 + (uint64_t)q->dtype;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ (q->operands[i] ? tsr_layout_hash(q->operands[i]) : 0)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool answers(const kept *k, const question *q, uint64_t hash)
{
    bool same = k->out && k->hash == hash && k->which == q->which && k->dtype == q->dtype;
    for (int i = 0; same && i < 3; i++)
        same = !k->operands[i] == !q->operands[i] &&
               (!k->operands[i] || tsr_layout_equal(k->operands[i], q->operands[i]));
    return same;
}

/* A copy of a layout on another mesh of the same dims. */
static tsr_status copy(const tsr_mesh *mesh, const tsr_layout *layout, tsr_layout **out)
{
    return tsr_layout_create(mesh, tsr_layout_placements(layout), tsr_layout_ndim(layout), tsr_layout_shape(layout),
                             tsr_layout_dtype(layout), out);
}

static tsr_status keep(const layer_cache *cache, const question *q, uint64_t hash, const tsr_layout *out, kept *place)
{
    kept made = {.hash = hash, .which = q->which, .dtype = q->dtype};
    tsr_status status = copy(cache->abstract, out, &made.out);
    for (int i = 0; i < 3 && status == TSR_OK; i++) {
        if (q->operands[i])
            status = copy(cache->abstract, q->operands[i], &made.operands[i]);
    }
    drop(status == TSR_OK ? place : &made);
    if (status == TSR_OK)
        *place = made;
    return status;
}

static tsr_status recall(const question *q, tsr_layout **out)
{
    static const tsr_mesh_attachment_kind kind = {make_cache, destroy_cache};
    const tsr_mesh *const mesh = tsr_layout_mesh(q->operands[0]);
    void *made;
    tsr_layout *found;
    if (!is_kept_by_mesh(q))
        return infer(q, out);
    TSR_TRY(tsr_mesh_attachment(mesh, &kind, &made));
    layer_cache *const cache = made;
    const uint64_t hash = hash_question(q);
    kept *const place = &cache->kept[hash % KEPT];
    if (answers(place, q, hash))
        return copy(mesh, place->out, out);
    TSR_TRY(infer(q, &found));
    const tsr_status status = keep(cache, q, hash, found, place);
    if (status == TSR_OK)
        *out = found;
    else
        tsr_layout_destroy(found);
    return status;
}

tsr_status tsr_layer_recall_y(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                              tsr_layout **y)
{
    return recall(&(question){.caller = caller, .which = Y, .operands = {x, w, b}}, y);
}

tsr_status tsr_layer_recall_gradient(const char *caller, int which, const tsr_layout *const operands[3],
                                     const tsr_layout *dy, tsr_dtype dtype, tsr_layout **out)
{
    const question q = {caller, which, dtype, {operands[0], operands[1], operands[2]}, dy};
    return recall(&q, out);
}
