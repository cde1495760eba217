/** Which stage works on which micro-batch in which turn: 1F1B, one forward and one backward in
 * turns after the warm-up. Pure. */
#ifndef PIPELINE_SCHEDULE_H
#define PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * In a turn a stage runs the forward of at most one micro-batch and the backward of at most one
 * other; the last stage runs both of the same. What a stage makes in a turn, its neighbour uses in
 * the next one. With `travels` it has a whole turn on the way, in which both stages compute, and is
 * used in the turn behind that one; the warm-up is then twice as long. This is the eager 1F1B of
 * Zhuang et al., arXiv 2211.05322.
 */
typedef struct schedule {
    int stages;
    int64_t micro_batches;
    bool travels;
} schedule;

/** No micro-batch. */
#define SCHEDULE_NONE (-1)

/** The number of turns of a step. */
int64_t schedule_turns(const schedule *s);

/** The micro-batch whose forward, or backward, a stage runs in a turn; SCHEDULE_NONE: it runs none.
 * On the last stage both are the same. */
int64_t schedule_forward(const schedule *s, int64_t turn, int stage);
int64_t schedule_backward(const schedule *s, int64_t turn, int stage);

/** How many tensors a stage keeps of those that it sends: until they have travelled. */
int64_t schedule_kept_sent(const schedule *s);

/** How many activations stage `stage` keeps of those that it receives: from the turn at whose end
 * they begin to travel until their backward. This, and not the number of micro-batches, is what
 * 1F1B needs. Of gradients a stage keeps as many as of tensors that it sends. */
int64_t schedule_kept(const schedule *s, int stage);

/** Prints a table of the turns. */
void schedule_print(const schedule *s);

#endif
