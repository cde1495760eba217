/** How long a step of a plan takes by the model of tessera/cost.h. Pure. */
#ifndef TSR_REDISTRIBUTE_COST_H
#define TSR_REDISTRIBUTE_COST_H

#include <stdint.h>
#include <tessera/cost.h>

/** Seconds of a step in which the busiest rank receives so many bytes from its own node, and the busiest node from other nodes: the slower
 * kind of link, latency + bytes / bandwidth each. Links without bytes take no part; a step without any takes no time. */
double tsr_cost_step(const tsr_cost_profile *profile, int64_t inside_bytes, int64_t between_bytes);

#endif
