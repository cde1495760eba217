/** All that training goes on from, in one safetensors file that does not depend on the ranks. */
#ifndef ROWS_CHECKPOINT_H
#define ROWS_CHECKPOINT_H

#include "graph.h"
#include "model.h"
#include "table.h"

/** Collective: writes a checkpoint after `epoch`; the file appears when it is complete. */
tsr_status checkpoint_save(const char *path, const graph *g, const table *t, const model *m, int64_t epoch);

/** Collective: reads a checkpoint of the same graph into the table, the weights and the sums of
 * both, and sets `*epoch`. */
tsr_status checkpoint_load(const char *path, const graph *g, const table *t, const model *m, int64_t *epoch);

#endif
