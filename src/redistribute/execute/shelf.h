/**
 * Where processes show one another what they move. They share no more than what their engine allocates: a tensor in other memory is copied
 * to the group's shelf before peers read it, and from there when they have written it. Each rank decides by itself at every execution, for
 * peers go where its descriptor says. On the shelf come the views of a batch first, then the items' sources and destinations.
 */
#ifndef TSR_REDISTRIBUTE_EXECUTE_SHELF_H
#define TSR_REDISTRIBUTE_EXECUTE_SHELF_H

#include "redistribute/execute/execution.h"

/** Bytes of a shelf on which all tensors of the plan that peers touch have room. */
size_t tsr_shelf_bytes(const tsr_plan *plan);

/** True of direct executions between processes, but small ones, which show peers copies in any case. */
static inline bool tsr_has_shelf(const tsr_execution *e)
{
    return e->group && tsr_holding_of(e->group)->shelf && e->plan->options.mode == TSR_MODE_DIRECT && !e->eager;
}

/** Lets e->bound of an execution with a shelf be what all ranks reach. */
tsr_status tsr_shelf_begin(tsr_execution *e);

/** Copies its destinations to where they belong. */
tsr_status tsr_shelf_end(const tsr_execution *e);

#endif
