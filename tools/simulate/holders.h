/** Which ranks of a mesh hold anything before or after a move: the others receive nothing. */
#ifndef TESSERA_TOOLS_SIMULATE_HOLDERS_H
#define TESSERA_TOOLS_SIMULATE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/layout.h>

/** Two layouts on one mesh, or one of them twice. */
typedef struct holders {
    const tsr_mesh *mesh;
    const tsr_layout *from, *to;
} holders;

/** Whether the rank holds an element in either layout. */
bool holders_include(const holders *h, int64_t rank);

/** How many ranks do; -1 where that is not to be had without asking each: of two layouts whose cuts are in orders that exclude each other,
 * or one of which has given sizes, and of more than 2^20 rows. One layout is counted whatever its cuts are, but for its rows. */
int64_t holders_count(const holders *h);

/** `wanted` of the `count` that do, the middle one of each of as many equal stretches, in no order; no more than `count`. */
void holders_spread(const holders *h, int64_t count, int64_t wanted, int64_t *ranks);

/** Most ranks that holders_edges() finds. */
#define HOLDERS_EDGES (2 * (4 * TSR_MAX_DIMS + 1))

/** Ranks that are likely to differ from all others: along every mesh dim the first and the last that hold anything, and both sides of where
 * parts first are of another size, or the largest of given sizes; and the last along all. In no order, some more than once. Returns how
 * many. */
int holders_edges(const holders *h, int64_t ranks[HOLDERS_EDGES]);

#endif
