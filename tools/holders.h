/** Which ranks of a mesh hold anything before or after a move: the others receive nothing. */
#ifndef TESSERA_TOOLS_HOLDERS_H
#define TESSERA_TOOLS_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/layout.h>

/** Two layouts on one mesh whose ranks are in row-major order. */
typedef struct holders {
    const tsr_mesh *mesh;
    const tsr_layout *from, *to;
} holders;

/** Whether the rank holds an element in either layout. */
bool holders_include(const holders *h, int64_t rank);

/** How many ranks do; -1 where that is not to be had without asking each: of cuts in another order than that of the mesh dims, of given
 * sizes, and of too many rows. */
int64_t holders_count(const holders *h);

/** `wanted` of the `count` that do, evenly from the first to the last, ascending; no more than `count`. */
void holders_spread(const holders *h, int64_t count, int64_t wanted, int64_t *ranks);

#endif
