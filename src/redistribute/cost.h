/** How long a plan takes by the model of tessera/cost.h. Pure. */
#ifndef TSR_REDISTRIBUTE_COST_H
#define TSR_REDISTRIBUTE_COST_H

#include <tessera/cost.h>

/** What links of one kind carry while a plan runs. A node's bytes may be beyond an int64_t, hence double. */
typedef struct tsr_load {
    int steps;    /**< in which anybody uses them; 0: they take no part */
    double bytes; /**< into the rank (inside: from anywhere) or the node (between: from other nodes) that gets most, in all steps */
} tsr_load;

/**
 * Seconds: of the slower kind of link, steps * latency + bytes / bandwidth.
 *
 * Counted so, a move without Partial takes no longer than two moves that go through another layout, whatever the profile. What a rank
 * receives is C without A, for going from A to C, which is no more than B without A and C without B; so is what a node receives, where each
 * piece crosses into it once. And where sharing a piece out takes a second step inside, two moves that both receive something have two as
 * well; where one of them receives nothing, the other alone receives no less than the direct one, in whichever way that is made.
 */
double tsr_cost_seconds(const tsr_cost_profile *profile, tsr_load inside, tsr_load between);

/** tsr_cost_seconds() of one step: links without bytes take no part. */
double tsr_cost_step(const tsr_cost_profile *profile, double inside_bytes, double between_bytes);

#endif
