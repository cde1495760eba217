/** How long a step of a plan takes by the model of tessera/cost.h. Pure. */
#ifndef TSR_REDISTRIBUTE_COST_H
#define TSR_REDISTRIBUTE_COST_H

#include <tessera/cost.h>

/** Seconds of a step in which the busiest rank receives so many bytes from its own node, and the busiest node from other nodes: the slower
 * kind of link, latency + bytes / bandwidth each. Links without bytes take no part; a step without any takes no time. Bytes of a whole node
 * may be beyond an int64_t, hence double. */
double tsr_cost_step(const tsr_cost_profile *profile, double inside_bytes, double between_bytes);

#endif
