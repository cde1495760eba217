#include "tensor/replicas.h"

#include "mesh/mesh.h"
#include "placement/ownership.h"

tsr_replica tsr_replica_at(const tsr_layout *layout, const int64_t *coordinate)
{
    tsr_replica replica = {0, 1};
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const int64_t size = tsr_mesh_shape(layout->mesh)[i];
        if (tsr_layout_kind(layout, i) == TSR_SHARD)
            continue;
        replica.number = replica.number * size + coordinate[i];
        replica.count *= size;
    }
    return replica;
}

void tsr_replica_share(tsr_replica replica, int64_t elements, int64_t *first, int64_t *end)
{
    const int64_t each = elements / replica.count, more = elements % replica.count;
    *first = each * replica.number + (replica.number < more ? replica.number : more);
    *end = *first + each + (replica.number < more);
}
