/** The table: a learned row of features for each node, with an optimizer of its own. */
#ifndef ROWS_TABLE_H
#define ROWS_TABLE_H

#include "graph.h"

#include <tessera/dtensor.h>
#include <tessera/rows.h>
#include <tessera/sparse.h>

typedef struct table {
    tsr_dtensor *rows; /**< (nodes, WIDTH), cut by rows: each rank has whole communities */
    tsr_rows_plan *plan;
    tsr_sparse_optimizer *optimizer;
} table;

/** Collective: rows by chance, for calls with at most `capacity` ids of a rank. The caller calls
 * table_destroy(), also after a failure. `out` is all zero before. */
tsr_status table_create(const tsr_mesh *mesh, const graph *g, uint64_t seed, double rate, int64_t capacity, table *out);

void table_destroy(table *t);

/** Collective: writes the rows of `ids` (n) to `rows` (n, WIDTH). */
tsr_status table_gather(table *t, const tsr_tensor *ids, const tsr_tensor *rows);

/** Collective: a step of Adagrad by the gradients of these rows; those of equal ids are added. */
tsr_status table_change(table *t, const tsr_tensor *ids, const tsr_tensor *gradients);

#endif
