#include "refused.h"

#include "elements.h"
#include "place.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Draws of values under the same placements, shapes and attributes. */
#define SALTS 12

/* R, four Partials, and for each dim the sizes that ranks have, and the modifiers of each operand. */
#define CUTS       (1 + OPERANDS)
#define CANDIDATES (5 + TSR_MAX_DIMS * CUTS)

/* What this rank computed of its shards, and of whole tensors. */
typedef struct attempt {
    tsr_dtensor *memory[OPERANDS], *operands[OPERANDS], *own[OPERANDS], *results[TSR_OP_MOST_RESULTS];
    tsr_dtensor *whole_memory[OPERANDS], *whole[OPERANDS], *wanted[TSR_OP_MOST_RESULTS];
} attempt;

static void destroy_attempt(attempt *a)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++) {
        tsr_dtensor_destroy(a->results[i]);
        tsr_dtensor_destroy(a->wanted[i]);
    }
    for (int i = 0; i < OPERANDS; i++) {
        tsr_dtensor_destroy(a->own[i]);
        tsr_dtensor_destroy(a->operands[i]);
        tsr_dtensor_destroy(a->memory[i]);
        tsr_dtensor_destroy(a->whole[i]);
        tsr_dtensor_destroy(a->whole_memory[i]);
    }
}

/* Numbers, dims of size 1, and ranks without elements, make many placements right. */
static bool is_small(const proof *p)
{
    for (int i = 0; i < p->operand_count; i++) {
        const whole *const w = &p->operands[i];
        const tsr_placement *const at = &p->placements[i][0];
        if (w->dtype != TSR_DTYPE_NONE && w->ndim == 0)
            return true;
        for (int dim = 0; dim < w->ndim && w->dtype != TSR_DTYPE_NONE; dim++) {
            const bool cut = at->kind == TSR_SHARD && at->dim == dim;
            if (w->shape[dim] < 2 || (cut && at->sizes) || (cut && w->shape[dim] < 2 * tsr_mesh_size(p->mesh, 0)))
                return true;
        }
    }
    return false;
}

/* A dtensor of this rank alone over its shard of another one. */
static tsr_status take_shard(const proof *p, const tsr_dtensor *x, tsr_dtensor **out)
{
    static const tsr_placement replicated[1];
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_layout *layout;
    TSR_TRY(tsr_layout_create(p->alone, replicated, local.ndim, local.shape, local.dtype, &layout));
    const tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, out);
    tsr_layout_destroy(layout);
    return status;
}

/* `*ran` false: some rank's op refuses its shards. */
static tsr_status make_attempt(const proof *p, uint64_t salt, attempt *a, bool *ran)
{
    static const tsr_placement replicated[TSR_MAX_DIMS];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    for (int i = 0; i < p->operand_count; i++) {
        const whole *const w = &p->operands[i];
        if (w->dtype == TSR_DTYPE_NONE)
            continue;
        const uint64_t seed = p->seed + (uint64_t)(100 * i) + (salt << 20);
        TSR_TRY(place_whole(p, p->mesh, p->placements[i], w, seed, &a->memory[i], &a->operands[i]));
        TSR_TRY(take_shard(p, a->operands[i], &a->own[i]));
        TSR_TRY(place_whole(p, p->alone, replicated, w, seed, &a->whole_memory[i], &a->whole[i]));
    }
    attributes_on(p, p->alone, attributes);
    TSR_TRY(tsr_op_call(p->op, (size_t)p->attribute_count, attributes, (const tsr_dtensor *const *)a->whole, a->wanted));
    int64_t ok = tsr_op_call(p->op, (size_t)p->attribute_count, attributes, (const tsr_dtensor *const *)a->own,
                             a->results) == TSR_OK;
    TSR_TRY(tsr_mesh_all_reduce_i64(p->mesh, NULL, &ok, TSR_MIN));
    *ran = ok;
    return TSR_OK;
}

/* The candidate as a placement of a result; false: there is none of that number. `sizes` has those
 * of the result's dims on each rank. */
static bool get_candidate(const proof *p, int number, const tsr_tensor *local, int64_t (*sizes)[8], tsr_placement *out)
{
    static const tsr_reduce_op ops[] = {TSR_SUM, TSR_AVG, TSR_MAX, TSR_MIN};
    const int dim = (number - 5) / CUTS, operand = (number - 5) % CUTS - 1;
    *out = number == 0 ? tsr_replicate() : number < 5 ? tsr_partial(ops[number - 1]) : tsr_shard(dim);
    if (number < 5)
        return true;
    if (dim >= local->ndim)
        return false;
    if (operand < 0) {
        out->sizes = sizes[dim];
        out->size_count = (size_t)tsr_mesh_size(p->mesh, 0);
        return true;
    }
    if (operand >= p->operand_count || p->placements[operand][0].kind != TSR_SHARD)
        return false;
    *out = p->placements[operand][0];
    out->dim = dim;
    return true;
}

/* Collective: the sizes of a result's dims on all ranks. */
static tsr_status gather_sizes(const proof *p, const tsr_tensor *local, int64_t (*sizes)[8])
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    tsr_mesh_coordinate(p->mesh, coordinate, &inside);
    memset(sizes, 0, sizeof *sizes * TSR_MAX_DIMS);
    for (int dim = 0; dim < local->ndim; dim++)
        sizes[dim][coordinate[0]] = local->shape[dim];
    return tsr_mesh_all_reduce(p->mesh, NULL, sizes, sizes, (int64_t)8 * TSR_MAX_DIMS, TSR_I64, TSR_SUM,
                               tsr_device_host(), NULL);
}

/* The layout of a candidate, if this rank's result has its local shape. */
static bool fits(const proof *p, const tsr_placement *candidate, const tsr_tensor *local, const tsr_dtensor *wanted,
                 tsr_layout **out)
{
    const tsr_layout *const global = tsr_dtensor_layout(wanted);
    int64_t shape[TSR_MAX_DIMS];
    if (tsr_layout_create(p->mesh, candidate, tsr_layout_ndim(global), tsr_layout_shape(global), local->dtype, out) !=
        TSR_OK)
        return false;
    bool same = local->ndim == tsr_layout_ndim(global) && tsr_layout_local(*out, NULL, shape, NULL) == TSR_OK;
    for (int dim = 0; dim < local->ndim && same; dim++)
        same = shape[dim] == local->shape[dim];
    if (!same)
        tsr_layout_destroy(*out);
    return same;
}

static bool is_equal(const proof *p, const tsr_dtensor *got, const tsr_dtensor *wanted)
{
    const tsr_tensor a = tsr_dtensor_to_local(got), b = tsr_dtensor_to_local(wanted);
    int64_t count = 0;
    bool equal = tsr_tensor_count(&b, &count) == TSR_OK;
    for (int64_t i = 0; i < count && equal; i++) {
        const double x = element_get(a.data, a.dtype, element_place(&a, i)),
                     y = element_get(b.data, b.dtype, element_place(&b, i));
        equal = x == y || (x != x && y != y) || (!p->line->exact && element_near(x, y, b.dtype));
    }
    return equal;
}

/* Collective: whether a result is right under a candidate. */
static tsr_status try_candidate(const proof *p, const tsr_placement *candidate, const tsr_dtensor *result,
                                const tsr_dtensor *wanted, bool *shaped, bool *right)
{
    const tsr_tensor local = tsr_dtensor_to_local(result);
    tsr_layout *layout = NULL;
    tsr_dtensor *placed = NULL, *full = NULL;
    const bool own = fits(p, candidate, &local, wanted, &layout);
    int64_t all = own;
    TSR_TRY(tsr_mesh_all_reduce_i64(p->mesh, NULL, &all, TSR_MIN));
    *shaped |= all;
    if (all && candidate->kind == TSR_REPLICATE)
        all = is_equal(p, result, wanted);
    else if (all) {
        TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &placed));
        all = tsr_full_tensor(placed, &full) == TSR_OK && is_equal(p, full, wanted);
    }
    tsr_dtensor_destroy(full);
    tsr_dtensor_destroy(placed);
    if (own)
        tsr_layout_destroy(layout);
    TSR_TRY(tsr_mesh_all_reduce_i64(p->mesh, NULL, &all, TSR_MIN));
    *right = all;
    return TSR_OK;
}

/* Takes from `right` the candidates under which a result of an attempt is not. */
static tsr_status try_candidates(const proof *p, const attempt *a, int result, bool right[CANDIDATES], bool *shaped,
                                 char what[64])
{
    int64_t sizes[TSR_MAX_DIMS][8];
    const tsr_tensor local = tsr_dtensor_to_local(a->results[result]);
    *shaped = false;
    TSR_TRY(gather_sizes(p, &local, sizes));
    for (int c = 0; c < CANDIDATES; c++) {
        tsr_placement candidate;
        right[c] = right[c] && get_candidate(p, c, &local, sizes, &candidate);
        if (!right[c])
            continue;
        TSR_TRY(try_candidate(p, &candidate, a->results[result], a->wanted[result], shaped, &right[c]));
        if (right[c])
            tsr_placements_print(&candidate, 1, what, 64);
    }
    return TSR_OK;
}

/* Such as that of topk with k = 0, which is right under any placement. */
static bool has_empty_result(const proof *p, const attempt *a)
{
    for (int i = 0; p->info.results[i]; i++) {
        const tsr_layout *const layout = tsr_dtensor_layout(a->wanted[i]);
        for (int dim = 0; dim < tsr_layout_ndim(layout); dim++) {
            if (tsr_layout_shape(layout)[dim] == 0)
                return true;
        }
    }
    return false;
}

static tsr_status judge_values(const proof *p, uint64_t salt, bool (*right)[CANDIDATES], refusal *out, char what[64])
{
    attempt a = {{NULL}};
    bool ran = false;
    tsr_status status = make_attempt(p, salt, &a, &ran);
    *out = ran ? REFUSAL_STRICT : REFUSAL_IMPOSSIBLE;
    if (status == TSR_OK && ran && has_empty_result(p, &a))
        *out = REFUSAL_UNJUDGED;
    for (int i = 0; p->info.results[i] && status == TSR_OK && *out == REFUSAL_STRICT; i++) {
        bool shaped, any = false;
        status = try_candidates(p, &a, i, right[i], &shaped, what);
        for (int c = 0; c < CANDIDATES; c++)
            any |= right[i][c];
        *out = any ? REFUSAL_STRICT : shaped ? REFUSAL_WRONG : REFUSAL_IMPOSSIBLE;
    }
    destroy_attempt(&a);
    return status;
}

tsr_status judge_refusal(proof *p, refusal *out, char what[64])
{
    bool right[TSR_OP_MOST_RESULTS][CANDIDATES];
    tsr_status status = TSR_OK;
    memset(right, true, sizeof right);
    *out = is_small(p) ? REFUSAL_UNJUDGED : REFUSAL_STRICT;
    for (uint64_t salt = 0; salt < SALTS && status == TSR_OK && *out == REFUSAL_STRICT; salt++) {
        draw_case(p, salt);
        status = judge_values(p, salt, right, out, what);
    }
    draw_case(p, 0);
    return status;
}
