#include "redistribute/schedule/sizes.h"

size_t tsr_item_shard_bytes(const tsr_item *item)
{
    size_t bytes = item->dst->element_bytes;
    for (int dim = 0; dim < item->dst->ndim; dim++)
        bytes *= (size_t)tsr_layout_largest_length(item->dst, dim);
    return bytes;
}
