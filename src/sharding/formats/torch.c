#include "sharding/formats/torch.h"

#include "base/checked.h"
#include "placement/ownership.h"
#include "sharding/form/same_cuts.h"
#include "sharding/formats/each_dim.h"

#include <tessera/sys/status.h>

#include <string.h>

/* By op: PyTorch's word. */
static const char *const ops[TSR_REDUCE_OP_END] = {
    [TSR_SUM] = "sum", [TSR_AVG] = "avg", [TSR_MAX] = "max", [TSR_MIN] = "min", [TSR_PROD] = "product"};

static tsr_status read_op(tsr_scan *scan, tsr_placement *out)
{
    *out = tsr_partial(TSR_SUM);
    if (tsr_token_accept(scan, ")"))
        return TSR_OK;
    (void)tsr_token_accept(scan, "reduce_op=");
    const char *const quote = tsr_token_accept(scan, "'") ? "'" : tsr_token_accept(scan, "\"") ? "\"" : "";
    for (tsr_reduce_op op = TSR_SUM; op < TSR_REDUCE_OP_END; op++)
        if (tsr_token_accept(scan, ops[op])) {
            out->op = op;
            TSR_TRY(tsr_token_need(scan, quote));
            return tsr_token_need(scan, ")");
        }
    return tsr_scan_expected(scan, scan->at, "sum, avg, max, min or product");
}

static tsr_status read_shard(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out)
{
    int dim;
    (void)tsr_token_accept(scan, "dim=");
    TSR_TRY(tsr_read_tensor_dim(scan, given, &dim));
    *out = tsr_shard(dim);
    return TSR_OK;
}

/* A strided shard is cut into `split_factor` blocks first, each of which all ranks share. */
static tsr_status read_strided(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out)
{
    TSR_TRY(read_shard(scan, given, out));
    TSR_TRY(tsr_token_need(scan, ","));
    (void)(tsr_token_accept(scan, "split_factor=") || tsr_token_accept(scan, "sf="));
    const size_t at = scan->at;
    TSR_TRY(tsr_token_number(scan, INT64_MAX, "a split factor", &out->interleave));
    if (out->interleave < 1)
        return tsr_scan_refuse(scan, at, "a split factor is 1 or more");
    return tsr_token_need(scan, ")");
}

static tsr_status read_word(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out)
{
    const size_t at = scan->at;
    if (tsr_token_accept(scan, "_StridedShard(") || tsr_token_accept(scan, "_S("))
        return read_strided(scan, given, out);
    if (tsr_token_accept(scan, "Shard(") || tsr_token_accept(scan, "S(")) {
        TSR_TRY(read_shard(scan, given, out));
        return tsr_token_need(scan, ")");
    }
    *out = tsr_replicate();
    if (tsr_token_accept(scan, "Replicate()") || tsr_token_accept(scan, "Replicate") || tsr_token_accept(scan, "R"))
        return TSR_OK;
    if (tsr_token_accept(scan, "Partial(") || tsr_token_accept(scan, "P("))
        return read_op(scan, out);
    if (tsr_token_accept(scan, "_MaskPartial") || tsr_token_accept(scan, "MaskP"))
        return tsr_token_unsupported(scan, at, "masked terms of an embedding have no placement; reduce them first");
    if (tsr_token_accept(scan, "_NormPartial"))
        return tsr_token_unsupported(scan, at, "terms of a norm have no placement; reduce them first");
    *out = tsr_partial(TSR_SUM);
    if (tsr_token_accept(scan, "P"))
        return TSR_OK;
    return tsr_scan_expected(scan, scan->at, "Shard(dim), Replicate(), Partial() or _StridedShard(dim, split_factor)");
}

/* Puts a mesh dim behind those of the list that cut into `factor` parts; false: none do. */
static bool insert_axis(const tsr_mesh *mesh, int mesh_dim, int64_t factor, tsr_axis_list *list)
{
    int at = 0;
    int64_t parts = 1;
    while (at < list->count && parts < factor)
        parts *= tsr_mesh_size(mesh, list->at[at++]);
    if (parts != factor)
        return false;
    memmove(&list->at[at + 1], &list->at[at], (size_t)(list->count - at) * sizeof *list->at);
    list->at[at] = mesh_dim;
    list->count++;
    return true;
}

/* Finds the order in which mesh dims cut tensor dim `dim`, outermost first, from the last one on: a
 * split factor is the parts into which later mesh dims have cut before. False: it is something
 * else. `*strided`: a mesh dim has one. */
static bool find_order(const tsr_mesh *mesh, const tsr_placement *placements, int dim, tsr_axis_list *list,
                       bool *strided)
{
    *list = (tsr_axis_list){0};
    *strided = false;
    for (int m = tsr_mesh_ndim(mesh) - 1; m >= 0; m--) {
        const tsr_placement *const p = &placements[m];
        if (p->kind != TSR_SHARD || p->dim != dim || tsr_mesh_size(mesh, m) == 1)
            continue;
        if (!insert_axis(mesh, m, p->interleave > 1 ? p->interleave : 1, list))
            return false;
        *strided = *strided || p->interleave > 1;
    }
    return true;
}

/* Replaces split factors that say in which order mesh dims cut, and no more; `*some`: there are
 * some. */
static void take_orders(const tsr_sharding_case *given, tsr_placement *placements, bool *some)
{
    *some = false;
    for (int dim = 0; dim < given->ndim; dim++) {
        tsr_axis_list list;
        bool strided;
        if (!find_order(given->mesh, placements, dim, &list, &strided) || !strided)
            continue;
        for (int i = 0; i < list.count; i++) {
            placements[list.at[i]] = tsr_shard(dim);
            placements[list.at[i]].order = i;
        }
        *some = true;
    }
}

/* Whether both layouts give each rank the same; else they cut tensor dim `*dim` otherwise. */
static tsr_status compare(const tsr_layout *a, const tsr_layout *b, bool *same, int *dim)
{
    *same = true;
    for (int d = 0; d < a->ndim && *same; d++) {
        TSR_TRY(tsr_same_cuts(a, b, d, same));
        *dim = d;
    }
    return TSR_OK;
}

/* The layout by orders of cuts in place of strides, if that is the same: then it is the one that
 * other formats give. Frees what is not `*out`. */
static tsr_status prefer_orders(tsr_layout *strided, const tsr_placement *placements, tsr_layout **out)
{
    tsr_layout *ordered = NULL;
    bool same = false;
    int dim;
    tsr_status status = tsr_layout_with(strided, placements, &ordered);
    if (status == TSR_OK)
        status = compare(strided, ordered, &same, &dim);
    tsr_layout_destroy(status == TSR_OK && !same ? NULL : strided);
    tsr_layout_destroy(status == TSR_OK && same ? NULL : ordered);
    if (status == TSR_OK)
        *out = same ? ordered : strided;
    return status;
}

tsr_status tsr_read_torch(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    bool orders;
    TSR_TRY(tsr_read_each_dim(scan, given, read_word, placements));
    TSR_TRY(tsr_layout_create(given->mesh, placements, given->ndim, given->shape, given->dtype, &layout));
    take_orders(given, placements, &orders);
    if (orders)
        return prefer_orders(layout, placements, out);
    *out = layout;
    return TSR_OK;
}

/* The blocks into which mesh dims behind `mesh_dim` have cut its tensor dim before it. */
static int64_t cuts_before(const tsr_layout *layout, int mesh_dim)
{
    const tsr_dim_cuts *const cuts = &layout->dims[layout->placements[mesh_dim].dim];
    int64_t blocks = 1;
    for (int i = 0; cuts->mesh_dim[i] != mesh_dim; i++)
        if (cuts->mesh_dim[i] > mesh_dim)
            blocks *= tsr_mesh_size(layout->mesh, cuts->mesh_dim[i]);
    return blocks;
}

/* PyTorch's placements for a layout: it cuts by mesh dims in their order, so that a mesh dim that
 * cuts after a later one is strided. */
static void place(const tsr_layout *layout, tsr_placement *placements)
{
    for (int m = 0; m < layout->mesh_ndim; m++) {
        const tsr_placement *const has = &layout->placements[m];
        const tsr_placement_kind kind = tsr_layout_kind(layout, m);
        placements[m] = kind == TSR_PARTIAL ? *has : kind == TSR_SHARD ? tsr_shard(has->dim) : tsr_replicate();
        if (kind != TSR_SHARD)
            continue;
        const int64_t blocks = cuts_before(layout, m);
        placements[m].interleave = blocks > 1 ? blocks : has->interleave;
    }
}

/* Tries PyTorch's placements: ranks must have the same under them. */
static tsr_status check(const tsr_layout *layout, const tsr_placement *placements)
{
    tsr_layout *theirs;
    bool same = true;
    int dim = 0;
    TSR_TRY(tsr_layout_with(layout, placements, &theirs));
    const tsr_status status = compare(layout, theirs, &same, &dim);
    tsr_layout_destroy(theirs);
    if (status != TSR_OK || same)
        return status;
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "PyTorch has no word for how tensor dim %d is cut: it knows chunks of ceil(L / n), by one mesh "
        "dim after the other, and these strided",
        dim);
}

tsr_status tsr_write_torch(const tsr_layout *layout, tsr_text *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    place(layout, placements);
    TSR_TRY(check(layout, placements));
    tsr_text_append(out, "(");
    for (int m = 0; m < layout->mesh_ndim; m++) {
        const tsr_placement *const p = &placements[m];
        tsr_text_append(out, m ? ", " : "");
        if (p->kind == TSR_REPLICATE)
            tsr_text_append(out, "Replicate()");
        else if (p->kind == TSR_PARTIAL)
            tsr_text_append(out, "Partial(%s)", ops[p->op]);
        else if (p->interleave > 1)
            tsr_text_append(out, "_StridedShard(dim=%d, sf=%lld)", p->dim, (long long)p->interleave);
        else
            tsr_text_append(out, "Shard(dim=%d)", p->dim);
    }
    tsr_text_append(out, layout->mesh_ndim == 1 ? ",)" : ")");
    return TSR_OK;
}
