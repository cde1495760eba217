/** How long a plan takes by the model of tessera/cost.h. Pure. */
#ifndef TSR_REDISTRIBUTE_MATCH_COST_H
#define TSR_REDISTRIBUTE_MATCH_COST_H

#include <tessera/cost.h>

/** What links of one kind carry while a plan runs. A node's bytes may be beyond an int64_t, hence double. */
typedef struct tsr_load {
    int steps;    /**< in which anybody uses them; 0: they take no part */
    double bytes; /**< into the rank (inside: from anywhere) or the node (between: from other nodes) that gets most, in all steps */
} tsr_load;

/** Adds what one step brings to a rank or a node: bytes, and a step if there are any. */
void tsr_load_add(tsr_load *load, double bytes);

/**
 * Seconds: of the slower kind of link, steps * latency + bytes / bandwidth.
 *
 * Counted so, a move without Partial takes no longer than two moves by way of another layout, where a latency inside is no greater than one
 * between. What a rank receives is C without A, for going from A to C, which is no more than B without A and C without B; so is what a node
 * receives, where each piece crosses into it once. Sharing a piece out within a node takes a second step inside, but two moves of which
 * both receive something have two as well. A node takes pieces more than once only where that costs less than such a step (variant.c).
 */
double tsr_cost_seconds(const tsr_cost_profile *profile, tsr_load inside, tsr_load between);

#endif
