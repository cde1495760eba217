/** How long a plan takes by the model of tessera/cost.h. Pure. */
#ifndef TSR_REDISTRIBUTE_MATCH_COST_H
#define TSR_REDISTRIBUTE_MATCH_COST_H

#include <tessera/cost.h>

/** What the links of one kind carry while a plan runs. Bytes are a double because a node's may
 * exceed an int64_t. */
typedef struct tsr_load {
    int steps; /**< steps in which some rank uses these links; 0: no step does */
    /** Over all steps, into the rank that receives most (inside: from any rank), or the node that
     * does (between: from other nodes). */
    double bytes;
} tsr_load;

/** Adds what one step brings to a rank or a node: bytes, and a step if there are any. */
void tsr_load_add(tsr_load *load, double bytes);

/**
 * Returns the seconds that the slower kind of link takes: steps * latency + bytes / bandwidth.
 *
 * By this count a move without Partial takes no longer than two moves by way of another layout, if
 * a latency inside is no greater than one between. A rank that goes from A to C receives C without
 * A, which is no more than B without A plus C without B; this holds for a node too, if each piece
 * crosses into it once. Sharing a piece out within a node takes a second step inside, but two moves
 * that both receive something take two steps as well. A node receives a piece more than once only
 * where that costs less than a second step (variant.c).
 */
double tsr_cost_seconds(const tsr_cost_profile *profile, tsr_load inside, tsr_load between);

#endif
