/** Random moves: meshes, layouts, and how they are executed. */
#ifndef TESTS_DRAW_MOVES_H
#define TESTS_DRAW_MOVES_H

#include "drill.h"
#include "rules.h"

#include <tessera/plan.h>

enum { DRAWN_ITEMS = 3 };

typedef enum drawn_way {
    BY_PLAN,     /**< plan, prepare, execute twice */
    BY_HALVES,   /**< tsr_plan_start() and tsr_plan_finish() */
    BY_SAVED,    /**< a plan that was saved and loaded */
    BY_DTENSORS, /**< tsr_redistribute_into(), or a batch of them */
    BY_NEW,      /**< tsr_redistribute() */
    IN_PLACE,    /**< tsr_redistribute_in_place(), if the rules allow it */
    DRAWN_WAYS
} drawn_way;

/** A case, equal on all ranks. `slice`: the meshes are slices (bit d: mesh dim d stays) through
 * each rank's coordinate. */
typedef struct drawn_moves {
    drawn_way way;
    tsr_plan_options options;
    bool strided;
    int slice;
    rule_mesh meshes[2]; /**< of the source and the destination; the whole meshes, if slices are taken */
    bool one_mesh;
    size_t count;
    rule_layout src[DRAWN_ITEMS], dst[DRAWN_ITEMS];
    rule_values values;
} drawn_moves;

/** Draws a case for a communicator of `ranks` ranks. */
void draw_moves(drill_draws *draws, int ranks, drawn_moves *out);

/** The slice of `mesh` through the coordinate of `rank`, or through coordinate 0 if the rank is
 * outside. */
void rule_mesh_slice(const rule_mesh *mesh, int slice, int64_t rank, rule_mesh *out);

#endif
