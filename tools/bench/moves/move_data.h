/** The tensors of a move that is measured. Source and expected result follow from global indices
 * (bench/check/move_check.h). */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVE_DATA_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVE_DATA_H

#include "place/local.h"

typedef struct move_data {
    const tsr_layout *from, *to; /**< borrowed; over a mesh with a communicator */
    local source, destination;
} move_data;

/** Makes both tensors, fills the source, and sets the destination to a pattern that no move gives;
 * collective. Each rank touches its own host memory first. The caller calls move_data_free() before
 * `comm` goes, also after a failure. */
tsr_status move_data_create(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to,
                            move_data *out);
/** move_data_create() for a move that is timed and not checked: every byte of the source is the
 * same, a pattern that makes normal numbers in every dtype. */
tsr_status move_data_create_plain(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to,
                                  move_data *out);
/** Frees both tensors; zeroed data are fine. */
void move_data_free(move_data *d);

/** Counts the wrong elements of this rank's destination; 0 for a rank outside the mesh. */
tsr_status move_data_count_wrong(const move_data *d, int64_t *wrong);

#endif
