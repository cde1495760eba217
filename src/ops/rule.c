#include "ops/rule.h"

#include "ops/rule_parse.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for placements in an error; longer texts, with lists of sizes, are cut. */
#define PLACEMENTS_TEXT 256

typedef struct application {
    const char *caller;
    const tsr_rule *rule;
    const tsr_layout *const *operands;
    tsr_rule_terms terms;
    int mesh_ndim;
    int64_t shape[TSR_RULE_FACTORS]; /* the size of each factor */
} application;

static const tsr_placement *placement_of(const application *a, int operand, int mesh_dim)
{
    return &tsr_layout_placements(a->operands[operand])[mesh_dim];
}

/* The factor that an operand's placement on a mesh dim cuts; -1: it is not a Shard. */
static int cut_factor(const application *a, int operand, int mesh_dim)
{
    const tsr_placement *p = placement_of(a, operand, mesh_dim);
    return p->kind == TSR_SHARD ? a->terms.operands[operand].factor[p->dim] : -1;
}

static bool is_linear_partial(const tsr_placement *p)
{
    return p->kind == TSR_PARTIAL && (p->op == TSR_SUM || p->op == TSR_AVG);
}

static tsr_placement cut_along(const tsr_placement *cut, int dim)
{
    tsr_placement moved = *cut;
    moved.dim = dim;
    return moved;
}

const char *tsr_rule_name_mesh_dim(const tsr_mesh *mesh, int dim, char text[TSR_RULE_MESH_DIM_TEXT])
{
    const char *name = tsr_mesh_name(mesh, dim);
    if (name)
        snprintf(text, TSR_RULE_MESH_DIM_TEXT, "%.31s", name);
    else
        snprintf(text, TSR_RULE_MESH_DIM_TEXT, "%d", dim);
    return text;
}

static const char *name_mesh_dim(const application *a, int dim, char text[TSR_RULE_MESH_DIM_TEXT])
{
    return tsr_rule_name_mesh_dim(tsr_layout_mesh(a->operands[0]), dim, text);
}

static const char *print(const tsr_placement *placements, int count, char *text)
{
    tsr_placements_print(placements, count, text, PLACEMENTS_TEXT);
    return text;
}

/*
 * Proposes placements of `operand` that fit those of `keeper`. On a mesh dim where `keeper` cuts a
 * factor of both, `operand` is cut alike. Elsewhere it keeps its own placement if `keep` is set and
 * the placement fits a replicated keeper, else it becomes Replicate. Without `keep` all own
 * placements are given up, because some cuts are only possible beside others.
 */
static void propose(const application *a, int operand, int keeper, bool keep, tsr_placement *out)
{
    for (int dim = 0; dim < a->mesh_ndim; dim++) {
        const tsr_placement *own = placement_of(a, operand, dim), *other = placement_of(a, keeper, dim);
        const int factor = cut_factor(a, keeper, dim), own_factor = cut_factor(a, operand, dim);
        const int shared = factor < 0 ? -1 : tsr_rule_dim(&a->terms.operands[operand], factor);
        const bool stays =
            own_factor >= 0 ? tsr_rule_dim(&a->terms.operands[keeper], own_factor) < 0 : is_linear_partial(own);
        out[dim] = tsr_replicate();
        if (shared >= 0)
            out[dim] = cut_along(other, shared);
        else if (keep && stays && other->kind == TSR_REPLICATE)
            out[dim] = *own;
    }
}

static tsr_status refuse_operand(const application *a, int operand, const tsr_placement *proposal, const char *why)
{
    char now[PLACEMENTS_TEXT], then[PLACEMENTS_TEXT];
    const char *name = a->rule->names[operand];
    print(tsr_layout_placements(a->operands[operand]), a->mesh_ndim, now);
    print(proposal, a->mesh_ndim, then);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s; redistribute %s from \"%s\" to \"%s\"", a->caller, why, name,
                          now, then);
}

static tsr_status refuse_beside(const application *a, int operand, int keeper, const char *why)
{
    tsr_placement proposal[TSR_MAX_DIMS];
    tsr_layout *possible;
    propose(a, operand, keeper, true, proposal);
    if (tsr_layout_with(a->operands[operand], proposal, &possible) == TSR_OK)
        tsr_layout_destroy(possible);
    else
        propose(a, operand, keeper, false, proposal);
    return refuse_operand(a, operand, proposal, why);
}

/* The multiplied operand whose placements `operand` must fit: the pivot; for the pivot, another
 * one; itself if there is no other. */
static int companion_of(const application *a, int operand)
{
    if (operand != a->rule->pivot)
        return a->rule->pivot;
    for (int i = 0; i < a->terms.count && !a->terms.operands[i].added; i++) {
        if (i != operand)
            return i;
    }
    return operand;
}

/* Refuses two operands that do not fit, and proposes to change one that is not the pivot. */
static tsr_status refuse_pair(const application *a, int first, int second, const char *why)
{
    return first == a->rule->pivot ? refuse_beside(a, second, first, why) : refuse_beside(a, first, second, why);
}

bool tsr_rule_same_shape(const tsr_layout *a, const tsr_layout *b)
{
    bool same = tsr_layout_ndim(a) == tsr_layout_ndim(b);
    for (int dim = 0; same && dim < tsr_layout_ndim(a); dim++)
        same = tsr_layout_shape(a)[dim] == tsr_layout_shape(b)[dim];
    return same;
}

bool tsr_rule_is_of_one_comm(const tsr_mesh *a, const tsr_mesh *b)
{
    const tsr_comm *first = tsr_mesh_comm(a), *second = tsr_mesh_comm(b);
    return first == second || !first || !second;
}

static tsr_status refuse_mesh(const char *caller, const char *first_name, const tsr_mesh *first, const char *name,
                              const tsr_mesh *other)
{
    char ours[PLACEMENTS_TEXT], theirs[PLACEMENTS_TEXT];
    tsr_mesh_print(first, ours, sizeof ours);
    tsr_mesh_print(other, theirs, sizeof theirs);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is on mesh %s but %s on mesh %s; both must be on one mesh",
                          caller, first_name, ours, name, theirs);
}

static tsr_status refuse_comm(const char *caller, const char *first_name, const tsr_mesh *first, const char *name,
                              const tsr_mesh *other)
{
    char mesh[PLACEMENTS_TEXT];
    tsr_mesh_print(first, mesh, sizeof mesh);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the communicators differ: %s and %s are on mesh %s, but over two communicators, of %d "
                          "and of %d ranks; both "
                          "must be over one",
                          caller, first_name, name, mesh, tsr_comm_size(tsr_mesh_comm(first)),
                          tsr_comm_size(tsr_mesh_comm(other)));
}

tsr_status tsr_rule_check_mesh(const char *caller, const char *first_name, const tsr_layout *first, const char *name,
                               const tsr_layout *other)
{
    const tsr_mesh *a = tsr_layout_mesh(first), *b = tsr_layout_mesh(other);
    if (!tsr_mesh_equal(a, b))
        return refuse_mesh(caller, first_name, a, name, b);
    return tsr_rule_is_of_one_comm(a, b) ? TSR_OK : refuse_comm(caller, first_name, a, name, b);
}

/* True if both meshes have the same dims, also those of size 1, because an operand has one
 * placement per mesh dim. */
static bool has_shape_of(const tsr_mesh *a, const tsr_mesh *b)
{
    bool same = tsr_mesh_ndim(a) == tsr_mesh_ndim(b);
    for (int dim = 0; same && dim < tsr_mesh_ndim(a); dim++)
        same = tsr_mesh_size(a, dim) == tsr_mesh_size(b, dim);
    return same;
}

tsr_status tsr_rule_check_mesh_dims(const char *caller, const char *first_name, const tsr_layout *first,
                                    const char *name, const tsr_layout *other)
{
    const tsr_mesh *a = tsr_layout_mesh(first), *b = tsr_layout_mesh(other);
    TSR_TRY(tsr_rule_check_mesh(caller, first_name, first, name, other));
    return has_shape_of(a, b) ? TSR_OK : refuse_mesh(caller, first_name, a, name, b);
}

static tsr_status check_meshes(const application *a)
{
    for (int i = 1; i < a->terms.count; i++)
        TSR_TRY(
            tsr_rule_check_mesh_dims(a->caller, a->rule->names[0], a->operands[0], a->rule->names[i], a->operands[i]));
    return TSR_OK;
}

static bool is_mixed_in_f32(tsr_dtype dtype)
{
    return dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

/* The result's dtype: the one that all operands have; f32 for a mixture of f32, f16 and bf16. */
static tsr_status join_dtypes(const application *a, tsr_dtype *joined)
{
    const tsr_dtype first = tsr_layout_dtype(a->operands[0]);
    *joined = first;
    for (int i = 1; i < a->terms.count; i++) {
        const tsr_dtype dtype = tsr_layout_dtype(a->operands[i]);
        if (dtype == first)
            continue;
        if (!is_mixed_in_f32(first) || !is_mixed_in_f32(dtype))
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "%s: %s is %s but %s is %s; all operands must have one dtype, or each be f32, f16 or bf16", a->caller,
                a->rule->names[0], tsr_dtype_name(first), a->rule->names[i], tsr_dtype_name(dtype));
        *joined = TSR_F32;
    }
    return TSR_OK;
}

const char *tsr_rule_print_shape(const tsr_layout *layout, char text[TSR_RULE_SHAPE_TEXT])
{
    const int ndim = tsr_layout_ndim(layout);
    size_t length = 0;
    if (ndim == 0)
        snprintf(text, TSR_RULE_SHAPE_TEXT, "scalar");
    for (int dim = 0; dim < ndim; dim++)
        length += (size_t)snprintf(text + length, TSR_RULE_SHAPE_TEXT - length, "%s%lld", dim ? "x" : "",
                                   (long long)tsr_layout_shape(layout)[dim]);
    return text;
}

/* True if `operand` is the pivot, has two dims, and its other dim has the size `wanted` that its
 * dim `dim` should have. */
static bool looks_transposed(const application *a, int operand, int dim, int64_t wanted)
{
    return operand == a->rule->pivot && a->rule->pivot_form && tsr_layout_ndim(a->operands[operand]) == 2 &&
           tsr_layout_shape(a->operands[operand])[1 - dim] == wanted;
}

/* Refuses the size of dim `dim` of an operand beside that of dim `other_dim` of operand `other`. */
static tsr_status refuse_size(const application *a, int operand, int dim, int other, int other_dim)
{
    const int64_t size = tsr_layout_shape(a->operands[operand])[dim];
    const int64_t wanted = tsr_layout_shape(a->operands[other])[other_dim];
    char hint[PLACEMENTS_TEXT + TSR_RULE_SHAPE_TEXT] = "", shape[TSR_RULE_SHAPE_TEXT];
    if (looks_transposed(a, operand, dim, wanted))
        snprintf(hint, sizeof hint, "; %s, and this one, %s, looks transposed", a->rule->pivot_form,
                 tsr_rule_print_shape(a->operands[operand], shape));
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim %d of %s has size %lld, but dim %d of %s has %lld; \"%s\" wants them equal%s",
                          a->caller, dim, a->rule->names[operand], (long long)size, other_dim, a->rule->names[other],
                          (long long)wanted, a->rule->factors, hint);
}

/* Sets the size of every factor; all operands that have a factor must agree on its size. */
static tsr_status check_sizes(application *a)
{
    int owner[TSR_RULE_FACTORS], owner_dim[TSR_RULE_FACTORS];
    memset(owner, -1, sizeof owner);
    for (int i = 0; i < a->terms.count; i++) {
        for (int dim = 0; dim < a->terms.operands[i].ndim; dim++) {
            const int factor = a->terms.operands[i].factor[dim];
            const int64_t size = tsr_layout_shape(a->operands[i])[dim];
            if (owner[factor] >= 0 && a->shape[factor] != size)
                return refuse_size(a, i, dim, owner[factor], owner_dim[factor]);
            owner[factor] = i;
            owner_dim[factor] = dim;
            a->shape[factor] = size;
        }
    }
    return TSR_OK;
}

/* A layout of a tensor with only this dim, cut as `operand` cuts `factor`: comparing layouts tells
 * whether two operands cut alike. */
static tsr_status create_factor_layout(const application *a, int operand, int factor, tsr_layout **out)
{
    tsr_placement cuts[TSR_MAX_DIMS];
    for (int dim = 0; dim < a->mesh_ndim; dim++)
        cuts[dim] =
            cut_factor(a, operand, dim) == factor ? cut_along(placement_of(a, operand, dim), 0) : tsr_replicate();
    return tsr_layout_create(tsr_layout_mesh(a->operands[0]), cuts, 1, &a->shape[factor],
                             tsr_layout_dtype(a->operands[0]), out);
}

static tsr_status cuts_alike(const application *a, int first, int second, int factor, bool *alike)
{
    tsr_layout *ours, *theirs;
    TSR_TRY(create_factor_layout(a, first, factor, &ours));
    const tsr_status status = create_factor_layout(a, second, factor, &theirs);
    if (status == TSR_OK) {
        *alike = tsr_layout_equal(ours, theirs);
        tsr_layout_destroy(theirs);
    }
    tsr_layout_destroy(ours);
    return status;
}

/* True if a mesh dim cuts dim 0 of an operand as data parallelism does: dim 0 is a batch dim that
 * the pivot lacks. On a mesh dim named tp or sp the cut is taken for one of a sequence. */
static bool is_data_parallel(const application *a, int operand, int mesh_dim)
{
    const tsr_placement *p = placement_of(a, operand, mesh_dim);
    const char *name = tsr_mesh_name(tsr_layout_mesh(a->operands[operand]), mesh_dim);
    if (p->kind != TSR_SHARD || p->dim != 0 || (name && (strcmp(name, "tp") == 0 || strcmp(name, "sp") == 0)))
        return false;
    const int factor = a->terms.operands[operand].factor[0];
    return factor < TSR_MAX_DIMS && tsr_rule_dim(&a->terms.operands[a->rule->pivot], factor) < 0;
}

/* Refuses a pivot that is cut on a mesh dim where another operand is data-parallel, and proposes to
 * gather the pivot: the batch is cut on purpose, and the pivot to store less of it on each rank. */
static tsr_status check_stored_cut(const application *a, int operand)
{
    const int pivot = a->rule->pivot;
    for (int dim = 0; dim < a->mesh_ndim && operand != pivot; dim++) {
        const tsr_mesh *mesh = tsr_layout_mesh(a->operands[operand]);
        if (tsr_mesh_size(mesh, dim) == 1 || placement_of(a, pivot, dim)->kind != TSR_SHARD ||
            !is_data_parallel(a, operand, dim))
            continue;
        char why[PLACEMENTS_TEXT], name[TSR_RULE_MESH_DIM_TEXT];
        name_mesh_dim(a, dim, name);
        snprintf(why, sizeof why,
                 "%s is data-parallel on mesh dim %s, which cuts its dim 0, so %s must be Replicate on mesh dim %s, "
                 "not cut there as FSDP stores it",
                 a->rule->names[operand], name, a->rule->names[pivot], name);
        return refuse_beside(a, pivot, operand, why);
    }
    return TSR_OK;
}

/* Checks that two multiplied operands cut all their common factors alike. */
static tsr_status check_shared_factors(const application *a, int first, int second)
{
    const tsr_rule_term *ours = &a->terms.operands[first], *theirs = &a->terms.operands[second];
    for (int dim = 0; dim < ours->ndim; dim++) {
        const int other = tsr_rule_dim(theirs, ours->factor[dim]);
        bool alike = true;
        if (other >= 0)
            TSR_TRY(cuts_alike(a, first, second, ours->factor[dim], &alike));
        if (alike)
            continue;
        char why[128];
        snprintf(why, sizeof why, "dim %d of %s and dim %d of %s are not cut alike", dim, a->rule->names[first], other,
                 a->rule->names[second]);
        return refuse_pair(a, first, second, why);
    }
    return TSR_OK;
}

/* Checks that on a mesh dim two operands cut the same factor, and that beside a Partial the other
 * operand is Replicate. */
static tsr_status check_mesh_dim(const application *a, int first, int second, int dim)
{
    const tsr_placement *ours = placement_of(a, first, dim), *theirs = placement_of(a, second, dim);
    char why[160], name[TSR_RULE_MESH_DIM_TEXT];
    name_mesh_dim(a, dim, name);
    if (ours->kind == TSR_REPLICATE || theirs->kind == TSR_REPLICATE)
        return TSR_OK;
    if (ours->kind == TSR_SHARD && theirs->kind == TSR_SHARD) {
        if (cut_factor(a, first, dim) == cut_factor(a, second, dim))
            return TSR_OK;
        snprintf(why, sizeof why, "mesh dim %s cuts dim %d of %s and dim %d of %s, which are different factors", name,
                 ours->dim, a->rule->names[first], theirs->dim, a->rule->names[second]);
    } else {
        const bool partial_first = ours->kind == TSR_PARTIAL;
        snprintf(why, sizeof why, "%s is Partial on mesh dim %s, and %s not Replicate there",
                 a->rule->names[partial_first ? first : second], name, a->rule->names[partial_first ? second : first]);
    }
    return refuse_pair(a, first, second, why);
}

static tsr_status check_partials(const application *a, int operand)
{
    for (int dim = 0; dim < a->mesh_ndim; dim++) {
        const tsr_placement *p = placement_of(a, operand, dim);
        if (p->kind != TSR_PARTIAL || is_linear_partial(p) || tsr_mesh_size(tsr_layout_mesh(a->operands[0]), dim) == 1)
            continue;
        char why[160], name[TSR_RULE_MESH_DIM_TEXT];
        snprintf(why, sizeof why, "%s is Partial(%s) on mesh dim %s, which no product passes on",
                 a->rule->names[operand], tsr_reduce_op_name(p->op), name_mesh_dim(a, dim, name));
        return refuse_beside(a, operand, companion_of(a, operand), why);
    }
    return TSR_OK;
}

static tsr_status check_products(const application *a)
{
    for (int i = 0; i < a->terms.count && !a->terms.operands[i].added; i++) {
        TSR_TRY(check_partials(a, i));
        for (int j = 0; j < i; j++) {
            TSR_TRY(check_stored_cut(a, i == a->rule->pivot ? j : i));
            TSR_TRY(check_shared_factors(a, j, i));
            for (int dim = 0; dim < a->mesh_ndim; dim++) {
                if (tsr_mesh_size(tsr_layout_mesh(a->operands[0]), dim) > 1)
                    TSR_TRY(check_mesh_dim(a, j, i, dim));
            }
        }
    }
    return TSR_OK;
}

/* The result's placement on a mesh dim, by the first multiplied operand that is not Replicate
 * there. Other operands agree with it, or the mesh dim has size 1. */
static tsr_placement result_placement(const application *a, int dim)
{
    for (int i = 0; i < a->terms.count && !a->terms.operands[i].added; i++) {
        const tsr_placement *p = placement_of(a, i, dim);
        if (is_linear_partial(p))
            return *p;
        if (p->kind != TSR_SHARD)
            continue;
        const int result_dim = tsr_rule_dim(&a->terms.result, cut_factor(a, i, dim));
        return result_dim < 0 ? tsr_partial(TSR_SUM) : cut_along(p, result_dim);
    }
    return tsr_replicate();
}

/* Checks that an added operand is cut like the result along its own dims, and replicated elsewhere.
 * Mesh dims of size 1 do not matter. */
static tsr_status check_added(const application *a, int operand, const tsr_placement *result)
{
    tsr_placement wanted[TSR_MAX_DIMS];
    for (int dim = 0; dim < a->mesh_ndim; dim++) {
        const int factor = result[dim].kind == TSR_SHARD ? a->terms.result.factor[result[dim].dim] : -1;
        const int own = factor < 0 ? -1 : tsr_rule_dim(&a->terms.operands[operand], factor);
        wanted[dim] = own < 0 ? tsr_replicate() : cut_along(&result[dim], own);
    }
    tsr_layout *twin;
    TSR_TRY(tsr_layout_with(a->operands[operand], wanted, &twin));
    const bool alike = tsr_layout_equal(a->operands[operand], twin);
    tsr_layout_destroy(twin);
    if (alike)
        return TSR_OK;
    char why[PLACEMENTS_TEXT + 64], text[PLACEMENTS_TEXT];
    snprintf(why, sizeof why, "%s is added to \"%s\"", a->rule->names[operand], print(result, a->mesh_ndim, text));
    return refuse_operand(a, operand, wanted, why);
}

static tsr_status create_result(const application *a, tsr_dtype dtype, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    for (int dim = 0; dim < a->mesh_ndim; dim++)
        placements[dim] = result_placement(a, dim);
    for (int i = 0; i < a->terms.count; i++) {
        if (a->terms.operands[i].added)
            TSR_TRY(check_added(a, i, placements));
    }
    for (int dim = 0; dim < a->terms.result.ndim; dim++)
        shape[dim] = a->shape[a->terms.result.factor[dim]];
    return tsr_layout_create(tsr_layout_mesh(a->operands[0]), placements, a->terms.result.ndim, shape, dtype, out);
}

tsr_status tsr_rule_apply(const char *caller, const tsr_rule *rule, const tsr_layout *const *operands,
                          const tsr_dtype *dtype, tsr_layout **out)
{
    application a = {
        .caller = caller, .rule = rule, .operands = operands, .mesh_ndim = tsr_mesh_ndim(tsr_layout_mesh(operands[0]))};
    tsr_dtype joined;
    TSR_TRY(tsr_rule_parse(caller, rule, operands, &a.terms));
    TSR_TRY(check_meshes(&a));
    TSR_TRY(join_dtypes(&a, &joined));
    TSR_TRY(check_sizes(&a));
    TSR_TRY(check_products(&a));
    return create_result(&a, dtype ? *dtype : joined, out);
}
