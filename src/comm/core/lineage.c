#include "comm/core/lineage.h"

#include "comm/core/object.h"

static bool descends(const tsr_comm *comm, const tsr_comm *ancestor)
{
    while (comm && comm != ancestor)
        comm = comm->parent;
    return comm != NULL;
}

tsr_comm *tsr_comm_common(tsr_comm *a, tsr_comm *b)
{
    while (a && !descends(b, a))
        a = a->parent;
    return a;
}

int tsr_comm_rank_in(const tsr_comm *comm, int rank, const tsr_comm *ancestor)
{
    for (; comm != ancestor; comm = comm->parent)
        rank = comm->ranks_in_parent[rank];
    return rank;
}

uint64_t tsr_comm_number(const tsr_comm *comm)
{
    return comm->number + 1;
}

void tsr_comm_be_numbered(tsr_comm *made)
{
    tsr_comm *eldest = made;
    while (eldest->parent)
        eldest = eldest->parent;
    made->number = __atomic_add_fetch(&eldest->descendants, 1, __ATOMIC_RELAXED);
}

int tsr_comm_congruent(const tsr_comm *a, const tsr_comm *b)
{
    if (a == b)
        return 1;
    if (!a || !b || a->size != b->size)
        return 0;
    const tsr_comm *const common = tsr_comm_common((tsr_comm *)a, (tsr_comm *)b);
    if (!common)
        return 0;
    for (int r = 0; r < a->size; r++)
        if (tsr_comm_rank_in(a, r, common) != tsr_comm_rank_in(b, r, common))
            return 0;
    return 1;
}
