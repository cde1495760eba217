/** Which moves are one collective, written from the documented rule and apart from the library: piece lengths are counted rank by rank. */
#ifndef TESTS_REDISTRIBUTE_COLLECTIVE_ORACLE_H
#define TESTS_REDISTRIBUTE_COLLECTIVE_ORACLE_H

#include "message_engine.h"
#include "oracle.h"
#include <tessera/plan.h>

typedef enum collective { NO_COLLECTIVE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST } collective;

/** What the move is, as far as layouts and the order of reductions say it. */
collective oracle_collective(const oracle_move *move, tsr_reduction_order order);

/** How often one execution calls each on this rank: not where the shards of its group are empty. */
message_engine_tally oracle_collective_calls(const oracle_move *move, tsr_reduction_order order, int64_t rank);

const char *collective_name(collective kind);

#endif
