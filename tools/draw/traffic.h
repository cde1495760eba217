/** Tables of the bytes between each pair of ranks in each step of a move, for few enough ranks to
 * draw. */
#ifndef TESSERA_TOOLS_DRAW_TRAFFIC_H
#define TESSERA_TOOLS_DRAW_TRAFFIC_H

#include <tessera/layout.h>

#include <stdbool.h>

/** Upper bound of the ranks of each of the two meshes. */
#define TRAFFIC_RANKS 64

/** A table of bytes for each step: bytes[(step * count + from) * count + to], where `from` and `to`
 * are indices in `ranks`. */
typedef struct traffic {
    int64_t ranks[2 * TRAFFIC_RANKS];    /**< ranks of both meshes, ascending */
    bool source[2 * TRAFFIC_RANKS];      /**< for each of `ranks`: it is in the source's mesh */
    bool destination[2 * TRAFFIC_RANKS]; /**< for each of `ranks`: it is in the destination's mesh */
    size_t count, steps;
    int64_t *bytes; /**< on the heap */
} traffic;

/** True if both meshes have at most TRAFFIC_RANKS ranks. */
bool traffic_possible(const tsr_layout *from, const tsr_layout *to);

/** Makes tables of zeros for `steps` steps; the caller calls traffic_finish(). TSR_ERROR_MEMORY. */
tsr_status traffic_create(const tsr_layout *from, const tsr_layout *to, size_t steps, traffic *out);
void traffic_finish(traffic *t);

/** The index in `ranks` of a rank of either mesh. */
size_t traffic_place(const traffic *t, int64_t rank);

/** The entry of a step, from the rank at index `from` to the rank at index `to`. */
int64_t *traffic_at(const traffic *t, size_t step, size_t from, size_t to);

#endif
