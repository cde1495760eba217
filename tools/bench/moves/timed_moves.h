/** Times and checks several moves, each repeated in loops that are long enough to be timed. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_TIMED_MOVES_H
#define TESSERA_TOOLS_BENCH_MOVES_TIMED_MOVES_H

#include "bench/run/bench.h"

#include <tessera/explain.h>

typedef struct timed_move {
    move_request request;
    tsr_plan_survey *figures; /**< set by the caller: where rank 0 writes the survey of its plan; NULL: nowhere */
    spread seconds;           /**< of a call */
    int64_t wrong;            /**< number of wrong elements on all ranks */
    int ranks;
    struct timed_row {
        int64_t node;     /**< node of the rank; -1 on all ranks if unknown */
        int64_t received; /**< bytes that the rank receives, by its plan */
        int64_t crossed;  /**< bytes that the rank receives from other nodes */
    } * rows;             /**< one for each rank; on the heap */
} timed_move;

/** The usual settings: about 0.15 seconds for a move, or more if one call takes longer, and a
 * warm-up before the first that outlasts the spinning of idle threads of a BLAS that was just
 * loaded. */
extern const bench_settings usual_timing;

/** Allocates the rows of a move over `ranks` ranks; the texts of `request` are borrowed. Returns
 * the tool's exit status; the caller calls timed_move_finish() in any case. */
int timed_move_create(int ranks, const move_request *request, timed_move *out);
void timed_move_finish(timed_move *t);

/** Times `count` moves, one after the other, on `ranks` ranks of the place, and gives all processes
 * the results. `status` is this process's exit status so far; returns the tool's exit status. */
int time_moves(place *p, int ranks, const bench_settings *settings, int status, timed_move *const *moves, size_t count);

/** Complains and returns EXIT_REFUSED if `wrong` elements are more than 0. */
int timed_moves_judge(int64_t wrong);

/** Bytes that the busiest of all ranks receives. */
int64_t timed_move_received(const timed_move *t);

/** Bytes that the busiest node receives from other nodes. */
int64_t timed_move_crossed(const timed_move *t);

#endif
