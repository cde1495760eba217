/** Who sends how many bytes to whom in each step of a move, between few enough ranks to be drawn. */
#ifndef TESSERA_TOOLS_DRAW_TRAFFIC_H
#define TESSERA_TOOLS_DRAW_TRAFFIC_H

#include <stdbool.h>
#include <tessera/layout.h>

/** Of each of the two meshes. */
#define TRAFFIC_RANKS 64

/** A table of bytes for each step: `bytes[(step * count + from) * count + to]`, ranks by their place in `ranks`. */
typedef struct traffic {
    int64_t ranks[2 * TRAFFIC_RANKS];    /**< of both meshes, ascending */
    bool source[2 * TRAFFIC_RANKS];      /**< whether the rank at that place is in the source's mesh, */
    bool destination[2 * TRAFFIC_RANKS]; /**< and in the destination's */
    size_t count, steps;
    int64_t *bytes; /**< on the heap */
} traffic;

/** Whether both meshes are small enough. */
bool traffic_possible(const tsr_layout *from, const tsr_layout *to);

/** Empty tables of `steps` steps; the caller finishes them. */
tsr_status traffic_create(const tsr_layout *from, const tsr_layout *to, size_t steps, traffic *out);
void traffic_finish(traffic *t);

/** The place of a rank of either mesh. */
size_t traffic_place(const traffic *t, int64_t rank);

/** The entry of a step, from one place to another. */
int64_t *traffic_at(const traffic *t, size_t step, size_t from, size_t to);

#endif
