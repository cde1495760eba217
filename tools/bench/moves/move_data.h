/** The tensors of a move that is measured: what the source holds is known by its elements' global indices, and so is what the destination
 * must hold then. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVE_DATA_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVE_DATA_H

#include "place/local.h"

typedef struct move_data {
    const tsr_layout *from, *to; /**< borrowed; over a mesh with a communicator */
    local source, destination;
} move_data;

/** Collective: memory for both, the source filled; the destination holds what it must not hold after a move. Memory of the host is touched
 * first by the rank that uses it. To be freed before `comm` goes, also where this fails. */
tsr_status move_data_create(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to, move_data *out);
void move_data_free(move_data *d);

/** How many elements of this rank's destination are not what the move must give; 0 for a rank outside the mesh. */
tsr_status move_data_count_wrong(const move_data *d, int64_t *wrong);

#endif
