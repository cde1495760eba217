#include "shards/owned.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

#define FIRST_INTERVALS 1024

tsr_status owned_read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *out)
{
    for (;;) {
        TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, out->at, out->capacity, &out->count));
        if (out->count <= out->capacity)
            return TSR_OK;
        /* The library counts more intervals than it is willing to list: growing step by step lets
         * it refuse before all that memory is allocated. */
        const size_t most = 2 * out->capacity + FIRST_INTERVALS, wanted = out->count < most ? out->count : most;
        tsr_interval *const more = realloc(out->at, wanted * sizeof *more);
        if (!more)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu intervals", wanted);
        out->at = more;
        out->capacity = wanted;
    }
}
