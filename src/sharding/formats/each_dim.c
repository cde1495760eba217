#include "sharding/formats/each_dim.h"

#include <tessera/sys/status.h>

#include <stdio.h>

static tsr_status refuse_count(tsr_scan *scan, const tsr_sharding_case *given, int count)
{
    char reason[96];
    snprintf(reason, sizeof reason, "the text has %s%d words, but the mesh has %d dims",
             count > tsr_mesh_ndim(given->mesh) ? "more than " : "",
             count > tsr_mesh_ndim(given->mesh) ? count - 1 : count, tsr_mesh_ndim(given->mesh));
    return tsr_scan_refuse(scan, scan->at, reason);
}

tsr_status tsr_read_each_dim(tsr_scan *scan, const tsr_sharding_case *given, tsr_read_word *read,
                             tsr_placement *placements)
{
    const int ndim = tsr_mesh_ndim(given->mesh);
    const char *const end = tsr_token_accept(scan, "(") ? ")" : tsr_token_accept(scan, "[") ? "]" : NULL;
    int count = 0;
    do {
        if (count > 0 && end && tsr_token_accept(scan, end)) /* `(x,)` */
            return count == ndim ? tsr_token_end(scan) : refuse_count(scan, given, count);
        if (count == ndim)
            return refuse_count(scan, given, count + 1);
        TSR_TRY(read(scan, given, &placements[count++]));
    } while (tsr_token_accept(scan, ","));
    if (end)
        TSR_TRY(tsr_token_need(scan, end));
    TSR_TRY(tsr_token_end(scan));
    return count == ndim ? TSR_OK : refuse_count(scan, given, count);
}

tsr_status tsr_read_tensor_dim(tsr_scan *scan, const tsr_sharding_case *given, int *dim)
{
    const bool from_end = tsr_token_accept(scan, "-");
    const size_t at = scan->at;
    int64_t number;
    TSR_TRY(tsr_token_number(scan, TSR_MAX_DIMS, "a tensor dim", &number));
    if (from_end ? number < 1 || number > given->ndim : number >= given->ndim) {
        char reason[64];
        snprintf(reason, sizeof reason, "the tensor has %d dims", given->ndim);
        return tsr_scan_refuse(scan, at, reason);
    }
    *dim = from_end ? given->ndim - (int)number : (int)number;
    return TSR_OK;
}
