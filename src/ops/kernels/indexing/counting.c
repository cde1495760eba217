#include "ops/kernels/indexing/counting.h"

#include "ops/kernels/indexing/ids.h"

#include <tessera/sys/status.h>

/* Reads up to a chunk of ids from `done` on; returns their number in `*n`. */
static tsr_status read_chunk(const tsr_ids *ids, int64_t all, int64_t done, int64_t *n, int64_t found[TSR_IDS_CHUNK])
{
    *n = all - done < TSR_IDS_CHUNK ? all - done : TSR_IDS_CHUNK;
    return tsr_ids_read(ids, done, *n, found);
}

/* The first element of the row of an id, counted in row-major order. */
static int64_t *row_of(const tsr_tensor *out, int64_t id)
{
    int64_t offset = 0;
    for (int dim = out->ndim - 2; dim >= 0; dim--) {
        offset += id % out->shape[dim] * out->strides[dim];
        id /= out->shape[dim];
    }
    return (int64_t *)out->data + offset;
}

tsr_status tsr_counting_mark(const tsr_kernel_call *call)
{
    int64_t found[TSR_IDS_CHUNK], n;
    const tsr_tensor *const out = &call->outputs[0];
    const int64_t classes = out->shape[out->ndim - 1], stride = out->strides[out->ndim - 1];
    const tsr_ids ids = tsr_ids_below(call, 0, "ids", classes);
    const int64_t all = tsr_ids_count(&ids);
    for (int64_t done = 0; done < all; done += n) {
        TSR_TRY(read_chunk(&ids, all, done, &n, found));
        for (int64_t i = 0; i < n; i++) {
            int64_t *const row = row_of(out, done + i);
            for (int64_t class = 0; class < classes; class ++)
                row[class * stride] = class == found[i];
        }
    }
    return TSR_OK;
}

tsr_status tsr_counting_count(const tsr_kernel_call *call)
{
    int64_t found[TSR_IDS_CHUNK], n;
    const tsr_tensor *const out = &call->outputs[0];
    int64_t *const counts = out->data;
    const tsr_ids ids = tsr_ids_below(call, 0, "ids", out->shape[0]);
    const int64_t all = tsr_ids_count(&ids);
    for (int64_t i = 0; i < out->shape[0]; i++)
        counts[i * out->strides[0]] = 0;
    for (int64_t done = 0; done < all; done += n) {
        TSR_TRY(read_chunk(&ids, all, done, &n, found));
        for (int64_t i = 0; i < n; i++)
            counts[found[i] * out->strides[0]]++;
    }
    return TSR_OK;
}
