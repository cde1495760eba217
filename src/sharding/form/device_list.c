#include "sharding/form/device_list.h"

#include "sharding/form/device_grid.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <stdio.h>

tsr_status tsr_device_list_read(tsr_scan *scan, int64_t count, int64_t *device)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        if (i > 0)
            TSR_TRY(tsr_token_need(scan, ","));
        TSR_TRY(tsr_token_number(scan, INT_MAX, "a device", &value));
        if (device)
            device[i] = value;
    }
    return TSR_OK;
}

static tsr_status read_order(tsr_scan *scan, int ndim, int *order)
{
    int64_t numbers[TSR_GRID_MOST];
    int count = 0;
    bool seen[TSR_GRID_MOST] = {false};
    const size_t at = scan->at;
    TSR_TRY(tsr_token_numbers(scan, ndim - 1, numbers, ndim, &count));
    for (int d = 0; d < count; d++) {
        if (seen[numbers[d]])
            return tsr_scan_refuse(scan, at, "this order of dims has one twice");
        seen[numbers[d]] = true;
        order[d] = (int)numbers[d];
    }
    if (count != ndim)
        return tsr_scan_refuse(scan, at, "this order of dims is not as long as the list before it");
    return tsr_token_need(scan, ")");
}

tsr_status tsr_device_list_read_short(tsr_scan *scan, int64_t count, const char *whole, int64_t *device)
{
    int64_t shape[TSR_GRID_MOST];
    int ndim = 0, order[TSR_GRID_MOST];
    const size_t at = scan->at;
    TSR_TRY(tsr_token_numbers(scan, INT_MAX, shape, TSR_GRID_MOST, &ndim));
    if (tsr_device_grid_count(shape, ndim) != count) {
        char reason[96];
        snprintf(reason, sizeof reason, "these dims have another number of devices than the %s", whole);
        return tsr_scan_refuse(scan, at, reason);
    }
    TSR_TRY(tsr_token_need(scan, "]"));
    const bool ordered = tsr_token_accept(scan, "T(");
    if (ordered)
        TSR_TRY(read_order(scan, ndim, order));
    if (device)
        tsr_device_grid_list(ndim, shape, ordered ? order : NULL, device);
    return TSR_OK;
}
