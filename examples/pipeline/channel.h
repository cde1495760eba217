/** A way for tensors of (rows, width) from the mesh of one stage to that of another, with memory
 * for several of them. It has a communicator of its own, which may be in the middle of a move while
 * other channels, and the stages themselves, use theirs. */
#ifndef PIPELINE_CHANNEL_H
#define PIPELINE_CHANNEL_H

#include <tessera/sync.h>

#include <stdbool.h>

typedef struct channel {
    tsr_comm *comm;
    tsr_mesh *from, *to; /**< over `comm` */
    tsr_sync *sync;
    int64_t sent_count, received_count;
    tsr_dtensor **sent, **received; /**< of micro-batch m: the ones at m % count */
    bool started;
    int64_t micro_batch; /**< whose tensor was started last */
} channel;

/** Where a channel begins or ends. */
typedef struct channel_end {
    const char *mesh; /**< as text, with the ranks of the communicator that the channel is made of */
    int64_t count;    /**< how many tensors are kept there */
} channel_end;

/** What moves on a channel: f32 tensors of (rows, width). */
typedef struct channel_load {
    int64_t rows, width;
    tsr_mode mode; /**< as in tsr_plan_options */
} channel_load;

/** Collective over `comm`: makes a channel. The caller calls channel_destroy(), also after a
 * failure. `out` is all zero before. */
tsr_status channel_create(tsr_comm *comm, channel_end from, channel_end to, const channel_load *load, channel *out);

/** Finishes what was started, whose memory others may be reading, and frees the channel. */
void channel_destroy(channel *c);

/** This rank's part of a micro-batch's tensor, at the beginning and at the end. */
tsr_tensor channel_sent(const channel *c, int64_t micro_batch);
tsr_tensor channel_received(const channel *c, int64_t micro_batch);

/** Collective: starts to move a micro-batch's tensor. Until channel_finish() the sender must not
 * write it, and the receiver not read it. */
tsr_status channel_start(channel *c, int64_t micro_batch);

/** Collective: finishes what was started, if anything was. */
tsr_status channel_finish(channel *c);

#endif
