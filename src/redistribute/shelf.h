/**
 * Where processes show one another what they move. They share no more than what their engine allocates: a tensor in other memory is copied
 * to the group's shelf before peers read it, and from there when they have written it. Each rank decides by itself at every execution, for
 * peers go where its descriptor says. On the shelf come the views of a batch first, then the items' sources and destinations.
 */
#ifndef TSR_REDISTRIBUTE_SHELF_H
#define TSR_REDISTRIBUTE_SHELF_H

#include "redistribute/execute.h"

/** Bytes of a shelf on which all tensors of the plan that peers touch have room. */
size_t tsr_shelf_bytes(const tsr_plan *plan);

/** Lets e->bound of a direct execution be what all ranks reach. Nothing where they share all memory. */
tsr_status tsr_shelf_begin(tsr_execution *e);

/** Copies destinations to where they belong. */
tsr_status tsr_shelf_end(const tsr_execution *e);

/** What a rank shows its peers of a batch: an array of one an item that they reach. */
tsr_view *tsr_shelf_views(const tsr_execution *e);

#endif
