#include "ops/layer_rule.h"

#include "ops/rules/linear.h"
#include "ops/rules/propagate.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for placements in an error; longer texts, with lists of sizes, are cut. */
#define PLACEMENTS_TEXT 256

const char *tsr_layer_name_mesh_dim(const tsr_mesh *mesh, int dim, char text[TSR_LAYER_MESH_DIM_TEXT])
{
    const char *name = tsr_mesh_name(mesh, dim);
    if (name)
        snprintf(text, TSR_LAYER_MESH_DIM_TEXT, "%.31s", name);
    else
        snprintf(text, TSR_LAYER_MESH_DIM_TEXT, "%d", dim);
    return text;
}

bool tsr_layer_same_shape(const tsr_layout *a, const tsr_layout *b)
{
    bool same = tsr_layout_ndim(a) == tsr_layout_ndim(b);
    for (int dim = 0; same && dim < tsr_layout_ndim(a); dim++)
        same = tsr_layout_shape(a)[dim] == tsr_layout_shape(b)[dim];
    return same;
}

bool tsr_layer_is_of_one_comm(const tsr_mesh *a, const tsr_mesh *b)
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

tsr_status tsr_layer_check_mesh(const char *caller, const char *first_name, const tsr_layout *first, const char *name,
                               const tsr_layout *other)
{
    const tsr_mesh *a = tsr_layout_mesh(first), *b = tsr_layout_mesh(other);
    if (!tsr_mesh_equal(a, b))
        return refuse_mesh(caller, first_name, a, name, b);
    return tsr_layer_is_of_one_comm(a, b) ? TSR_OK : refuse_comm(caller, first_name, a, name, b);
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

tsr_status tsr_layer_check_mesh_dims(const char *caller, const char *first_name, const tsr_layout *first,
                                    const char *name, const tsr_layout *other)
{
    const tsr_mesh *a = tsr_layout_mesh(first), *b = tsr_layout_mesh(other);
    TSR_TRY(tsr_layer_check_mesh(caller, first_name, first, name, other));
    return has_shape_of(a, b) ? TSR_OK : refuse_mesh(caller, first_name, a, name, b);
}

const char *tsr_layer_print_shape(const tsr_layout *layout, char text[TSR_LAYER_SHAPE_TEXT])
{
    const int ndim = tsr_layout_ndim(layout);
    size_t length = 0;
    if (ndim == 0)
        snprintf(text, TSR_LAYER_SHAPE_TEXT, "scalar");
    for (int dim = 0; dim < ndim; dim++)
        length += (size_t)snprintf(text + length, TSR_LAYER_SHAPE_TEXT - length, "%s%lld", dim ? "x" : "",
                                   (long long)tsr_layout_shape(layout)[dim]);
    return text;
}

static bool is_mixed_in_f32(tsr_dtype dtype)
{
    return dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

/* The dtype that all operands have; f32 for a mixture of f32, f16 and bf16. */
static tsr_status join_dtypes(const tsr_op_names *names, const tsr_layout *const *operands, int count,
                              tsr_dtype *joined)
{
    const tsr_dtype first = tsr_layout_dtype(operands[0]);
    *joined = first;
    for (int i = 1; i < count; i++) {
        const tsr_dtype dtype = operands[i] ? tsr_layout_dtype(operands[i]) : first;
        if (dtype == first)
            continue;
        if (!is_mixed_in_f32(first) || !is_mixed_in_f32(dtype))
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "%s: %s is %s but %s is %s; all operands must have one dtype, or each be f32, f16 or bf16",
                names->caller, names->operands[0], tsr_dtype_name(first), names->operands[i], tsr_dtype_name(dtype));
        *joined = TSR_F32;
    }
    return TSR_OK;
}

/* Applies a rule to operands of which the third may be NULL. `dtype` NULL: the operands'. */
static tsr_status apply(const tsr_op_names *names, const tsr_layout *const *operands, const tsr_dtype *dtype,
                        tsr_layout **out)
{
    tsr_op_rule rule;
    tsr_op_inferred found;
    tsr_dtype joined;
    TSR_TRY(tsr_op_rule_parse(names->rule, &rule));
    for (int i = 1; i < rule.operand_count; i++) {
        if (operands[i])
            TSR_TRY(tsr_layer_check_mesh_dims(names->caller, names->operands[0], operands[0], names->operands[i],
                                              operands[i]));
    }
    TSR_TRY(join_dtypes(names, operands, rule.operand_count, &joined));
    const tsr_op_shaping shaping = {.optional = 1u << 2, .dtypes = dtype ? dtype : &joined};
    TSR_TRY(tsr_op_propagate_rule(&rule, names, &shaping, operands, &found));
    *out = found.results[0];
    return TSR_OK;
}

/* Refuses a weight whose two dims look swapped. */
static tsr_status check_form(const char *caller, const tsr_layout *x, const tsr_layout *w)
{
    const int ndim = tsr_layout_ndim(x);
    if (ndim == 0 || tsr_layout_ndim(w) != 2)
        return TSR_OK;
    const int64_t features = tsr_layout_shape(x)[ndim - 1], *const shape = tsr_layout_shape(w);
    char text[TSR_LAYER_SHAPE_TEXT];
    if (shape[1] == features || shape[0] != features)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim 1 of w has size %lld, but dim %d of x has %lld; \"%s\" wants them equal; a weight is "
                          "(out_features, in_features), and this one, %s, looks transposed",
                          caller, (long long)shape[1], ndim - 1, (long long)features, TSR_RULE_LINEAR,
                          tsr_layer_print_shape(w, text));
}

/* True if a mesh dim cuts dim 0 of x as data parallelism does: dim 0 is a batch dim. On a mesh dim
 * named tp or sp the cut is taken for one of a sequence. */
static bool is_data_parallel(const tsr_layout *x, int mesh_dim)
{
    const tsr_placement *const p = &tsr_layout_placements(x)[mesh_dim];
    const char *const name = tsr_mesh_name(tsr_layout_mesh(x), mesh_dim);
    return p->kind == TSR_SHARD && p->dim == 0 && tsr_layout_ndim(x) > 1 &&
           !(name && (strcmp(name, "tp") == 0 || strcmp(name, "sp") == 0));
}

/* What w would be beside x: cut alike where x cuts the features of both. Where x is Replicate w
 * keeps its own placement if `keep` is set; else it becomes Replicate, because some cuts are only
 * possible beside others. */
static void propose_weight(const tsr_layout *x, const tsr_layout *w, bool keep, tsr_placement *out)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(x)); k++) {
        const tsr_placement *const ours = &tsr_layout_placements(x)[k], *const own = &tsr_layout_placements(w)[k];
        const bool stays = own->kind == TSR_SHARD ? own->dim == 0 : own->op == TSR_SUM || own->op == TSR_AVG;
        out[k] = tsr_replicate();
        if (ours->kind == TSR_SHARD && ours->dim == tsr_layout_ndim(x) - 1) {
            out[k] = *ours;
            out[k].dim = 1;
        } else if (keep && stays && own->kind != TSR_REPLICATE && ours->kind == TSR_REPLICATE)
            out[k] = *own;
    }
}

/* Refuses a weight that is cut on a mesh dim where x is data-parallel, and proposes to gather the
 * weight: the batch is cut on purpose, and the weight to store less of it on each rank. */
static tsr_status check_stored_cut(const char *caller, const tsr_layout *x, const tsr_layout *w)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(x);
    int k = 0;
    while (k < tsr_mesh_ndim(mesh) && (tsr_mesh_size(mesh, k) == 1 || tsr_layout_placements(w)[k].kind != TSR_SHARD ||
                                       !is_data_parallel(x, k)))
        k++;
    if (k == tsr_mesh_ndim(mesh))
        return TSR_OK;
    char name[TSR_LAYER_MESH_DIM_TEXT], now[PLACEMENTS_TEXT], then[PLACEMENTS_TEXT];
    tsr_placement proposal[TSR_MAX_DIMS];
    tsr_layout *possible;
    tsr_layer_name_mesh_dim(mesh, k, name);
    propose_weight(x, w, true, proposal);
    if (tsr_layout_with(w, proposal, &possible) == TSR_OK)
        tsr_layout_destroy(possible);
    else
        propose_weight(x, w, false, proposal);
    tsr_placements_print(tsr_layout_placements(w), tsr_mesh_ndim(mesh), now, sizeof now);
    tsr_placements_print(proposal, tsr_mesh_ndim(mesh), then, sizeof then);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: x is data-parallel on mesh dim %s, which cuts its dim 0, so w must be Replicate on mesh "
                          "dim %s, not cut there as FSDP stores it; redistribute w from \"%s\" to \"%s\"",
                          caller, name, name, now, then);
}

tsr_status tsr_layer_rule_y(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                            tsr_layout **y)
{
    const tsr_op_names names = {.caller = caller,
                                .op = "linear",
                                .rule = TSR_RULE_LINEAR,
                                .operands = {"x", "w", "b"},
                                .kept = 1u << 1};
    const tsr_layout *const operands[] = {x, w, b};
    TSR_TRY(tsr_layer_check_mesh_dims(caller, "x", x, "w", w));
    TSR_TRY(check_form(caller, x, w));
    TSR_TRY(check_stored_cut(caller, x, w));
    return apply(&names, operands, NULL, y);
}

tsr_status tsr_layer_rule_gradient(const char *caller, int which, const tsr_layout *dy, const tsr_layout *other,
                                   tsr_dtype dtype, tsr_layout **out)
{
    static const tsr_op_names all[] = {
        {.op = "dx", .rule = TSR_RULE_LINEAR_X, .operands = {"dy", "w"}, .kept = 1u << 1},
        {.op = "dw", .rule = TSR_RULE_LINEAR_W, .operands = {"dy", "x"}, .kept = 1u << 1},
        {.op = "db", .rule = TSR_RULE_LINEAR_B, .operands = {"dy"}}};
    tsr_op_names names = all[which];
    names.caller = caller;
    return apply(&names, (const tsr_layout *const[]){dy, other}, &dtype, out);
}
