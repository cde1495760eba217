/**
 * The peak that moves are compared with: plain copies of as many bytes as all destination shards have, in the memory of the place.
 *
 * On the host, by as many threads as ranks but at most the cores, each an equal part; ranks that share no memory copy as many bytes as
 * their own shard. On GPUs, by one rank of each, as many bytes as the shards of the ranks there.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_PEAK_H
#define TESSERA_TOOLS_BENCH_RUN_PEAK_H

#include "bench/run/copy.h"
#include "place/place.h"

/** A rank's part of the memory: its destination, and as many bytes elsewhere. */
typedef struct peak_area {
    void *dst, *src;
    size_t bytes;
    size_t begin; /**< where they are in the payload, all destinations one after another */
} peak_area;

typedef struct peak {
    const place *place;
    int ranks, copiers;
    size_t payload;
    peak_area *areas; /**< one a rank */
} peak;

/** The bytes of every rank under a layout over an abstract mesh. Returns the tool's exit status; the caller finishes the peak in any case.
 */
int peak_create(const place *p, const tsr_layout *to, int ranks, peak *out);
void peak_finish(peak *k);

/** Copy `index`'s name, or NULL past the last; there are MAX_PLAIN_COPIES at most. */
const char *peak_name(const peak *k, int index);

/** Collective: `dst` is this rank's destination; makes memory to copy from. */
tsr_status peak_enter(peak *k, tsr_comm *comm, void *dst);
void peak_leave(peak *k, tsr_comm *comm);

/** This rank's part of copy `index`; on GPUs it is only enqueued. Ranks have entered, and met since. */
tsr_status peak_run(const peak *k, int rank, int index);

#endif
