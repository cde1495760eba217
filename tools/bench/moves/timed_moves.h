/** Times of moves of any size, each repeated in loops that are long enough to be timed, and checked. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_TIMED_MOVES_H
#define TESSERA_TOOLS_BENCH_MOVES_TIMED_MOVES_H

#include "bench/run/bench.h"

#include <tessera/explain.h>

typedef struct timed_move {
    move_request request;
    tsr_plan_survey *figures; /**< where rank 0 writes those of the plan that runs; NULL where nobody asks */
    samples loops;            /**< seconds a call, of several loops */
    struct timed_row {
        int64_t wrong;    /**< elements that are not what the move must give */
        int64_t node;     /**< the rank's; -1 for all where it is not known */
        int64_t received; /**< bytes, by the rank's plan; */
        int64_t crossed;  /**< of them from other nodes */
    } * rows;             /**< one a rank */
} timed_move;

/** About 0.15 seconds a move, and more where one takes longer; and before the first as long as a BLAS that was just loaded lets its idle
 * threads spin. */
extern const bench_settings usual_timing;

/** Returns the tool's exit status; the caller finishes the move in any case. */
int timed_move_create(int ranks, const bench_settings *settings, const move_request *request, timed_move *out);
void timed_move_finish(timed_move *t);

/** Times all of them, one after the other, on so many ranks of the place. `status` is what came of this process so far; returns the tool's
 * exit status. */
int time_moves(place *p, int ranks, const bench_settings *settings, int status, timed_move *const *moves, size_t count);

/** Elements that are not what the move must give, on any rank. */
int64_t timed_move_wrong(const timed_move *t);

/** Refuses so many wrong elements; of 0 all is well. Returns the tool's exit status. */
int timed_moves_judge(int64_t wrong);

/** Bytes that the busiest rank receives: any of them, for rank 0 need not take part. */
int64_t timed_move_received(const timed_move *t);

/** Bytes that the busiest node receives from others. */
int64_t timed_move_crossed(const timed_move *t);

#endif
