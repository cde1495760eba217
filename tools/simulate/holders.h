/** Finds the holders of a move: the ranks of a mesh that hold an element before or after it. Other
 * ranks receive nothing. */
#ifndef TESSERA_TOOLS_SIMULATE_HOLDERS_H
#define TESSERA_TOOLS_SIMULATE_HOLDERS_H

#include <tessera/layout.h>

#include <stdbool.h>
#include <stddef.h>

/** The layouts before and after a move, on one mesh. For the holders of one layout both are that
 * layout. */
typedef struct holders {
    const tsr_mesh *mesh;
    const tsr_layout *from, *to;
} holders;

/** True if the rank holds an element in either layout. */
bool holders_include(const holders *h, int64_t rank);

/** The number of holders; -1 if it could only be found by asking each rank: for two different
 * layouts whose orders of cuts conflict or of which one has given sizes, and for more than 2^20
 * rows of the mesh. A single layout is always counted, up to that number of rows. */
int64_t holders_count(const holders *h);

/** Writes `wanted` of the `count` holders, in no order: the middle one of each of `wanted` equal
 * stretches. `wanted` is at most `count`. */
void holders_spread(const holders *h, int64_t count, int64_t wanted, int64_t *ranks);

/** Upper bound of the ranks that holders_edges() finds. */
#define HOLDERS_EDGES (2 * (4 * TSR_MAX_DIMS + 1))

/** Finds holders that are likely to differ from the others, for each layout: along every mesh dim
 * the first and the last holder, and the two ranks where the size of parts first changes, or the
 * largest of given sizes and the one after it; and the last holder along all dims. In no order,
 * with repeats. Returns their number. */
int holders_edges(const holders *h, int64_t ranks[HOLDERS_EDGES]);

#endif
