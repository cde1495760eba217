#include "ops/eager/cache.h"

#include "ops/eager/attributes.h"
#include "ops/eager/mix.h"
#include "ops/rows/settle.h"
#include "ops/rows/table.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Answers that a mesh keeps, and calls that are recalled by their layout objects; powers of two. */
#define ANSWERS  256
#define RECALLED 64

/* An answer, in the list of its bucket. */
typedef struct answer {
    tsr_eager_answer given; /* first */
    uint64_t hash;
    const tsr_op *op;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1];
    tsr_layout *operands[TSR_OP_MOST_OPERANDS]; /* on the abstract mesh; NULL: left out */
} answer;

/* What was found for a case: layouts of results, or those to which operands must be moved. */
typedef struct finding {
    tsr_op_inferred inferred;
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS];
} finding;

/* A call of which the layouts' numbers are known. */
typedef struct recalled {
    const answer *answer; /* NULL: unused */
    uint64_t operands[TSR_OP_MOST_OPERANDS], results[TSR_OP_MOST_RESULTS];
} recalled;

struct tsr_eager_cache {
    tsr_context *context; /* borrowed: the mesh's */
    const tsr_mesh *mesh; /* borrowed: the cache goes with it */
    tsr_mesh *abstract;   /* a copy, for layouts that are kept */
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    answer *answers[ANSWERS]; /* by hash; a new answer takes the place of an old one */
    recalled recalled[RECALLED];
};

static void destroy_answer(tsr_context *context, answer *a)
{
    if (!a)
        return;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(a->operands[i]);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(a->given.fitted[i]);
    tsr_op_inferred_clear(&a->given.inferred);
    tsr_release(context, a);
}

static void destroy_cache(void *made)
{
    tsr_eager_cache *const cache = made;
    for (int i = 0; i < ANSWERS; i++)
        destroy_answer(cache->context, cache->answers[i]);
    tsr_mesh_destroy(cache->abstract);
    tsr_release(cache->context, cache);
}

static tsr_status make_cache(const tsr_mesh *mesh, void **out)
{
    void *room;
    tsr_context *const context = tsr_mesh_context(mesh);
    TSR_TRY(tsr_allocate(context, sizeof(tsr_eager_cache), &room));
    tsr_eager_cache *const cache = memset(room, 0, sizeof *cache);
    cache->context = context;
    cache->mesh = mesh;
    tsr_status status = tsr_mesh_coordinate(mesh, cache->coordinate, &cache->inside);
    if (status == TSR_OK)
        status = tsr_mesh_copy(mesh, &cache->abstract);
    if (status == TSR_OK)
        *out = cache;
    else
        destroy_cache(cache);
    return status;
}

tsr_status tsr_eager_cache_of(const tsr_mesh *mesh, tsr_eager_cache **out)
{
    static const tsr_mesh_attachment_kind kind = {make_cache, destroy_cache};
    void *made;
    TSR_TRY(tsr_mesh_attachment(mesh, &kind, &made));
    *out = made;
    return TSR_OK;
}

const int64_t *tsr_eager_coordinate(const tsr_eager_cache *cache, int *inside)
{
    *inside = cache->inside;
    return cache->coordinate;
}

/* A case's attributes are all of the row's, in its order. */
static uint64_t hash_case(const tsr_op_case *c)
{
    uint64_t hash = tsr_mix_attributes((uint64_t)(uintptr_t)c->op, c->attributes);
    for (int i = 0; c->op->operands[i]; i++)
        hash = tsr_mix(hash, c->operands[i] ? tsr_layout_hash(c->operands[i]) : 0);
    return hash;
}

bool tsr_eager_is_on(const tsr_eager_cache *cache, const tsr_layout *layout)
{
    return tsr_op_are_on_one_mesh(cache->mesh, tsr_layout_mesh(layout));
}

static bool is_for(const tsr_eager_cache *cache, const answer *a, const tsr_op_case *c, uint64_t hash)
{
    if (!a || a->hash != hash || a->op != c->op || !tsr_attributes_are_equal(a->attributes, c->attributes))
        return false;
    for (int i = 0; i < a->given.operand_count; i++) {
        if (!a->operands[i] != !c->operands[i] ||
            (a->operands[i] &&
             (!tsr_eager_is_on(cache, c->operands[i]) || !tsr_layout_equal(a->operands[i], c->operands[i]))))
            return false;
    }
    return true;
}

/* The layout on the cache's abstract mesh. */
static tsr_status keep_layout(const tsr_eager_cache *cache, const tsr_layout *layout, tsr_layout **out)
{
    return tsr_layout_create(cache->abstract, tsr_layout_placements(layout), tsr_layout_ndim(layout),
                             tsr_layout_shape(layout), tsr_layout_dtype(layout), out);
}

/* Notes which operands must be moved. */
static tsr_status keep_fitted(const tsr_eager_cache *cache, const tsr_op_case *c, tsr_layout *const *fitted, answer *a)
{
    for (int i = 0; c->op->operands[i]; i++) {
        if (!fitted[i] || tsr_layout_equal(fitted[i], c->operands[i]))
            continue;
        a->given.settles = true;
        TSR_TRY(keep_layout(cache, fitted[i], &a->given.fitted[i]));
    }
    return TSR_OK;
}

/* Notes the case of an answer. */
static tsr_status keep_case(const tsr_eager_cache *cache, const tsr_op_case *c, answer *a)
{
    a->op = c->op;
    for (int i = 0; c->attributes[i].name; i++)
        a->attributes[i] = c->attributes[i];
    tsr_attributes_keep_texts(a->attributes, (char *)(a + 1));
    for (int i = 0; c->op->operands[i]; i++, a->given.operand_count++) {
        if (c->operands[i])
            TSR_TRY(keep_layout(cache, c->operands[i], &a->operands[i]));
    }
    return TSR_OK;
}

/* Fills an answer with copies of what was found. */
static tsr_status fill(const tsr_eager_cache *cache, const tsr_op_case *c, const finding *f, answer *a)
{
    TSR_TRY(keep_case(cache, c, a));
    TSR_TRY(keep_fitted(cache, c, f->fitted, a));
    if (a->given.settles)
        return TSR_OK;
    const tsr_op_inferred *const inferred = &f->inferred;
    for (int i = 0; c->op->results[i]; i++, a->given.result_count++)
        TSR_TRY(keep_layout(cache, inferred->results[i], &a->given.inferred.results[i]));
    a->given.inferred.exchanged = inferred->exchanged;
    return TSR_OK;
}

/* Drops what refers to the answer that another one replaces. */
static void forget(tsr_eager_cache *cache, answer *old)
{
    for (int i = 0; i < RECALLED; i++) {
        if (cache->recalled[i].answer == old)
            cache->recalled[i].answer = NULL;
    }
    destroy_answer(cache->context, old);
}

/* Infers, or settles by the context's policy where operands do not fit. */
static tsr_status find(const tsr_eager_cache *cache, const tsr_op_case *c, finding *out)
{
    int64_t bytes;
    *out = (finding){.fitted = {NULL}};
    const tsr_policy policy = tsr_context_policy(cache->context, &bytes);
    const tsr_status status = tsr_op_infer(c, &out->inferred);
    if (status != TSR_ERROR_ARGUMENT || policy == TSR_POLICY_FORBID)
        return status;
    return tsr_op_settle_case(c, policy, bytes, out->fitted);
}

static tsr_status infer(tsr_eager_cache *cache, const tsr_op_case *c, uint64_t hash, const tsr_eager_answer **out)
{
    void *room;
    finding f;
    TSR_TRY(find(cache, c, &f));
    tsr_status status = tsr_allocate(cache->context, sizeof(answer) + tsr_attributes_text_bytes(c->attributes), &room);
    if (status == TSR_OK) {
        answer *const made = memset(room, 0, sizeof *made), **const place = &cache->answers[hash % ANSWERS];
        made->hash = hash;
        status = fill(cache, c, &f, made);
        if (status == TSR_OK) {
            forget(cache, *place);
            *place = made;
            *out = &made->given;
        } else
            destroy_answer(cache->context, made);
    }
    tsr_op_inferred_clear(&f.inferred);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(f.fitted[i]);
    return status;
}

tsr_status tsr_eager_answer_for(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_eager_answer **out)
{
    const uint64_t hash = hash_case(c);
    answer *const found = cache->answers[hash % ANSWERS];
    if (!is_for(cache, found, c, hash))
        return infer(cache, c, hash, out);
    *out = &found->given;
    return TSR_OK;
}

static uint64_t number_of(const tsr_layout *layout)
{
    return layout ? tsr_layout_number(layout) : 0;
}

/* Where a call is recalled. */
static recalled *place_of(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_layout *const *results)
{
    uint64_t hash = tsr_mix((uint64_t)(uintptr_t)c->op, number_of(results[0]));
    for (int i = 0; c->op->operands[i]; i++)
        hash = tsr_mix(hash, number_of(c->operands[i]));
    return &cache->recalled[hash % RECALLED];
}

bool tsr_eager_recall(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_layout *const *results,
                      const tsr_eager_answer **out)
{
    const recalled *const r = place_of(cache, c, results);
    if (!r->answer || r->answer->op != c->op || !tsr_attributes_are_equal(r->answer->attributes, c->attributes))
        return false;
    for (int i = 0; i < r->answer->given.operand_count; i++) {
        if (number_of(c->operands[i]) != r->operands[i] ||
            (c->operands[i] && tsr_layout_mesh(c->operands[i]) != cache->mesh))
            return false;
    }
    for (int i = 0; i < r->answer->given.result_count; i++) {
        if (number_of(results[i]) != r->results[i] || tsr_layout_mesh(results[i]) != cache->mesh)
            return false;
    }
    *out = &r->answer->given;
    return true;
}

void tsr_eager_remember(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_layout *const *results,
                        const tsr_eager_answer *given)
{
    recalled *const r = place_of(cache, c, results);
    r->answer = (const answer *)given;
    for (int i = 0; i < given->operand_count; i++)
        r->operands[i] = number_of(c->operands[i]);
    for (int i = 0; i < given->result_count; i++)
        r->results[i] = number_of(results[i]);
}
