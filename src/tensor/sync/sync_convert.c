#include "tensor/sync/sync_convert.h"

#include <tessera/sys/status.h>

#include <stdbool.h>

/* The number of leading dims that have to be gone through one by one; `*run`: of the elements
 * behind each index there, which lie without gaps on both sides. */
static int leading_dims(const tsr_tensor *from, const tsr_tensor *to, int64_t *run)
{
    int dims = from->ndim;
    *run = 1;
    for (; dims > 0; dims--) {
        const int dim = dims - 1;
        if (from->shape[dim] != 1 && (from->strides[dim] != *run || to->strides[dim] != *run))
            break;
        *run *= from->shape[dim];
    }
    return dims;
}

static int64_t position_of(const tsr_tensor *tensor, int dims, const int64_t *index)
{
    int64_t position = 0;
    for (int dim = 0; dim < dims; dim++)
        position += index[dim] * tensor->strides[dim];
    return position;
}

/* Goes to the next index of the leading dims; false behind the last one. */
static bool advance(const tsr_tensor *tensor, int dims, int64_t *index)
{
    for (int dim = dims - 1; dim >= 0; dim--) {
        if (++index[dim] < tensor->shape[dim])
            return true;
        index[dim] = 0;
    }
    return false;
}

tsr_status tsr_sync_convert(const tsr_device_ops *ops, const tsr_tensor *from, const tsr_tensor *to, tsr_stream stream)
{
    const int64_t from_bytes = (int64_t)tsr_dtype_bytes(from->dtype), to_bytes = (int64_t)tsr_dtype_bytes(to->dtype);
    int64_t index[TSR_MAX_DIMS] = {0}, run;
    for (int dim = 0; dim < from->ndim; dim++)
        if (from->shape[dim] == 0)
            return TSR_OK;
    const int dims = leading_dims(from, to, &run);
    do {
        const char *const source = (const char *)from->data + position_of(from, dims, index) * from_bytes;
        char *const destination = (char *)to->data + position_of(to, dims, index) * to_bytes;
        TSR_TRY(ops->table->convert(ops->self, ops->index, destination, to->dtype, source, from->dtype, run, stream));
    } while (advance(from, dims, index));
    return TSR_OK;
}
