/** An oracle of which moves are one collective, by the documented rule and independent of the
 * library: it counts piece lengths rank by rank. */
#ifndef TESTS_REDISTRIBUTE_COLLECTIVE_ORACLE_H
#define TESTS_REDISTRIBUTE_COLLECTIVE_ORACLE_H

#include "message_engine.h"
#include "oracle.h"

#include <tessera/plan.h>

typedef enum collective { NO_COLLECTIVE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST } collective;

/** The collective that a move is, by its layouts and the order of reductions. */
collective oracle_collective(const oracle_move *move, tsr_reduction_order order);

/** How often one execution calls each collective on a rank; not at all if the shards of its group
 * are empty. */
message_engine_tally oracle_collective_calls(const oracle_move *move, tsr_reduction_order order, int64_t rank);

const char *collective_name(collective kind);

#endif
