/** Times of moves of any size, each repeated in loops that are long enough to be timed. */
#ifndef TESSERA_TOOLS_TIMED_MOVES_H
#define TESSERA_TOOLS_TIMED_MOVES_H

#include "bench.h"

typedef struct timed_move {
    move_request request;
    int64_t bytes; /**< that rank 0 receives, by its plan */
    samples loops; /**< seconds a call, of several loops */
} timed_move;

/** Returns the tool's exit status; the caller finishes the move. */
int timed_move_create(int ranks, const move_request *request, timed_move *out);
void timed_move_finish(timed_move *t);

/** Times all of them, one after the other, on so many ranks of the place: about 0.15 seconds a move, and more where one takes longer. */
int time_moves(place *p, int ranks, timed_move *moves, size_t count);

#endif
