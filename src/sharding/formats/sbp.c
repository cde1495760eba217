#include "sharding/formats/sbp.h"

#include "placement/layout.h"
#include "sharding/formats/each_dim.h"

#include <tessera/sys/status.h>

static tsr_status read_split(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out)
{
    int dim;
    (void)(tsr_token_accept(scan, "dim=") || tsr_token_accept(scan, "axis="));
    TSR_TRY(tsr_read_tensor_dim(scan, given, &dim));
    *out = tsr_shard(dim);
    return tsr_token_need(scan, ")");
}

static tsr_status read_word(tsr_scan *scan, const tsr_sharding_case *given, tsr_placement *out)
{
    (void)(tsr_token_accept(scan, "oneflow.") || tsr_token_accept(scan, "flow."));
    (void)tsr_token_accept(scan, "sbp.");
    if (tsr_token_accept(scan, "split(") || tsr_token_accept(scan, "S("))
        return read_split(scan, given, out);
    *out = tsr_replicate();
    if (tsr_token_accept(scan, "broadcast()") || tsr_token_accept(scan, "broadcast") || tsr_token_accept(scan, "B"))
        return TSR_OK;
    *out = tsr_partial(TSR_SUM);
    if (tsr_token_accept(scan, "partial_sum()") || tsr_token_accept(scan, "partial_sum") || tsr_token_accept(scan, "P"))
        return TSR_OK;
    return tsr_scan_expected(scan, scan->at, "split(dim), broadcast or partial_sum");
}

/* OneFlow's parts differ by at most one, the longer ones first. */
tsr_status tsr_read_sbp(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_sharding_form form;
    TSR_TRY(tsr_read_each_dim(scan, given, read_word, placements));
    tsr_form_init(&form, given->mesh, given->ndim, given->shape);
    for (int m = 0; m < tsr_mesh_ndim(given->mesh); m++)
        if (placements[m].kind != TSR_REPLICATE)
            tsr_form_add(&form, placements[m].kind == TSR_SHARD ? &form.cuts[placements[m].dim] : &form.summed, m);
    return tsr_form_layout(&form, TSR_CUT_BALANCED, given->dtype, out);
}

static tsr_status check_order(const tsr_sharding_form *form)
{
    for (int d = 0; d < form->ndim; d++)
        for (int i = 1; i < form->cuts[d].count; i++)
            if (form->cuts[d].at[i] < form->cuts[d].at[i - 1])
                return tsr_status_set(
                    TSR_ERROR_UNSUPPORTED,
                    "OneFlow has no word for the order in which tensor dim %d is cut: it cuts by mesh "
                    "dims in their order",
                    d);
    return TSR_OK;
}

tsr_status tsr_write_sbp(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_of(layout, TSR_CUT_BALANCED, "OneFlow", &form));
    TSR_TRY(check_order(&form));
    tsr_text_append(out, "(");
    for (int m = 0; m < layout->mesh_ndim; m++) {
        const tsr_placement *const p = &layout->placements[m];
        const bool alone = tsr_mesh_size(layout->mesh, m) == 1;
        tsr_text_append(out, m ? ", oneflow.sbp." : "oneflow.sbp.");
        if (alone || p->kind == TSR_REPLICATE)
            tsr_text_append(out, "broadcast");
        else if (p->kind == TSR_PARTIAL)
            tsr_text_append(out, "partial_sum");
        else
            tsr_text_append(out, "split(dim=%d)", p->dim);
    }
    tsr_text_append(out, layout->mesh_ndim == 1 ? ",)" : ")");
    return TSR_OK;
}
