#include "comm/engines/mpi/world.h"

void tsr_mpi_world_note_loss(tsr_mpi_world *world)
{
    tsr_mpi_losses *const losses = atomic_load(&world->losses);
    if (losses)
        atomic_store(&losses->missed, true);
}

void tsr_mpi_world_abort(tsr_mpi_world *world, int who)
{
    int nobody = 0;
    atomic_compare_exchange_strong(&world->aborter, &nobody, who + 1);
    if (world->node)
        tsr_mpi_node_abort(world->node, who);
}

int tsr_mpi_world_aborter(const tsr_mpi_world *world)
{
    const int aborter = atomic_load(&world->aborter) - 1;
    return aborter < 0 && world->node ? tsr_mpi_node_aborter(world->node) : aborter;
}

bool tsr_mpi_world_is_mate(const tsr_mpi_world *world, int rank)
{
    return world->node && world->first[rank] == world->first[world->rank];
}

bool tsr_mpi_world_slot_is_free(const tsr_mpi_world *world, int slot)
{
    return !(atomic_load(&world->taken[slot / 64]) >> slot % 64 & 1);
}

void tsr_mpi_world_take_slot(tsr_mpi_world *world, int slot)
{
    atomic_fetch_or(&world->taken[slot / 64], UINT64_C(1) << slot % 64);
}

void tsr_mpi_world_free_slot(tsr_mpi_world *world, int slot)
{
    if (slot >= 0)
        atomic_fetch_and(&world->taken[slot / 64], ~(UINT64_C(1) << slot % 64));
}
