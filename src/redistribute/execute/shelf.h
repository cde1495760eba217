/**
 * The shelf: where processes show one another what they move. Processes share only memory that
 * their engine allocates. A tensor in other memory is copied to the group's shelf before peers read
 * it, and from the shelf after peers have written it. Each rank decides by itself at every
 * execution, because peers go where its views say. The shelf holds the views first, then each
 * item's source and destination.
 */
#ifndef TSR_REDISTRIBUTE_EXECUTE_SHELF_H
#define TSR_REDISTRIBUTE_EXECUTE_SHELF_H

#include "redistribute/execute/execution.h"

/** Bytes of a shelf with room for all tensors of the plan that peers touch; 0 if no shelf is
 * needed. */
size_t tsr_shelf_bytes(const tsr_plan *plan);

/** True for direct executions between processes, except eager ones, which show peers copies in any
 * case. */
static inline bool tsr_has_shelf(const tsr_execution *e)
{
    return e->group && tsr_holding_of(e->group)->shelf && e->plan->options.mode == TSR_MODE_DIRECT && !e->eager;
}

/** Makes e->bound memory that all ranks reach: sources are copied to the shelf, and destinations
 * will be written there. Only where there is a shelf. */
tsr_status tsr_shelf_begin(tsr_execution *e);

/** Copies destinations from the shelf to the caller's tensors. */
tsr_status tsr_shelf_end(const tsr_execution *e);

#endif
