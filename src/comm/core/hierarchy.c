#include "comm/core/hierarchy.h"

#include "base/memory/memory.h"

/* Numbers nodes in the order of their lowest ranks, into node[rank], and returns how many there
 * are. `names` is scratch with one element per rank. */
static int number_nodes(const tsr_comm *comm, int *node, int *names)
{
    int count = 0;
    for (int r = 0; r < comm->size; r++) {
        const int name = comm->engine.nodes.node_of(comm->self, r);
        node[r] = 0;
        while (node[r] < count && names[node[r]] != name)
            node[r]++;
        if (node[r] == count)
            names[count++] = name;
    }
    return count;
}

static void list_members(tsr_hierarchy *h, const tsr_comm *comm)
{
    int at = 0;
    for (int k = 0; k < h->count; k++) {
        h->starts[k] = at;
        for (int r = 0; r < comm->size; r++) {
            if (h->node[r] != k)
                continue;
            if (r == comm->rank)
                h->place = at - h->starts[k];
            h->members[at++] = r;
        }
        h->most = at - h->starts[k] > h->most ? at - h->starts[k] : h->most;
    }
    h->starts[h->count] = at;
    h->own = h->node[comm->rank];
}

tsr_status tsr_hierarchy_create(const tsr_comm *comm, tsr_hierarchy **out)
{
    const size_t n = (size_t)comm->size;
    void *memory;
    *out = NULL;
    if (!comm->engine.nodes.node_of || comm->slots || comm->size < 3)
        return TSR_OK;
    TSR_TRY(tsr_allocate_zeroed(comm->context,
                                sizeof(tsr_hierarchy) + 2 * TSR_HIERARCHY_LIST * n * sizeof(tsr_message) +
                                    (n + 1) * sizeof(int64_t) + (3 * n + 1) * sizeof(int),
                                &memory));
    tsr_hierarchy *h = memory;
    h->messages = (tsr_message *)(h + 1);
    h->bounds = (int64_t *)(h->messages + 2 * TSR_HIERARCHY_LIST * n);
    h->node = (int *)(h->bounds + n + 1);
    h->members = h->node + n;
    h->starts = h->members + n;
    h->count = number_nodes(comm, h->node, h->starts);
    list_members(h, comm);
    if (h->count == 1 || h->most == 1)
        tsr_release(comm->context, h);
    else
        *out = h;
    return TSR_OK;
}

void tsr_hierarchy_destroy(tsr_context *context, tsr_hierarchy *h)
{
    if (!h)
        return;
    tsr_release(context, h->scratch);
    tsr_release(context, h);
}

tsr_status tsr_hierarchy_reserve(tsr_context *context, tsr_hierarchy *h, size_t bytes)
{
    void *scratch;
    if (bytes <= h->scratch_bytes)
        return TSR_OK;
    TSR_TRY(tsr_allocate(context, bytes, &scratch));
    tsr_release(context, h->scratch);
    h->scratch = scratch;
    h->scratch_bytes = bytes;
    return TSR_OK;
}
