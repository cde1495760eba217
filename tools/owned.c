#include "owned.h"

#include <stdlib.h>
#include <tessera/sys/status.h>

tsr_status owned_read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *out)
{
    for (;;) {
        TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, out->at, out->capacity, &out->count));
        if (out->count <= out->capacity)
            return TSR_OK;
        tsr_interval *const more = realloc(out->at, out->count * sizeof *more);
        if (more == NULL)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu intervals", out->count);
        out->at = more;
        out->capacity = out->count;
    }
}
