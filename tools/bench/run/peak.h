/**
 * The peak that moves are compared with: plain copies of as many bytes as all destination shards
 * have together, in memory of the place.
 *
 * On the host, rank threads (at most one for each core) copy an equal part each; ranks that are
 * processes copy their own shard each. On GPUs one rank of each GPU copies the shards of all ranks
 * there.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_PEAK_H
#define TESSERA_TOOLS_BENCH_RUN_PEAK_H

#include "bench/run/copy.h"
#include "place/place.h"

/** The memory of a rank: its destination, and a source of as many bytes. */
typedef struct peak_area {
    void *dst, *src;
    size_t bytes;
    size_t begin; /**< offset in the payload, which is all destinations one after another */
} peak_area;

typedef struct peak {
    const place *place;
    int ranks, copiers; /**< number of ranks, and of rank threads that copy on the host */
    size_t payload;     /**< bytes of all destinations */
    peak_area *areas;   /**< one for each rank; on the heap */
} peak;

/** Computes the areas of the ranks of `to`, a layout on an abstract mesh. Returns the tool's exit
 * status; the caller calls peak_finish() in any case. */
int peak_create(const place *p, const tsr_layout *to, int ranks, peak *out);
void peak_finish(peak *k);

/** The name of copy `index`; NULL past the last. There are at most MAX_PLAIN_COPIES. */
const char *peak_name(const peak *k, int index);

/** Sets this rank's destination to `dst` and allocates its source; collective. peak_leave() frees
 * the source. */
tsr_status peak_enter(peak *k, tsr_comm *comm, void *dst);
void peak_leave(peak *k, tsr_comm *comm);

/** Does this rank's part of copy `index`; on GPUs only enqueues it. All ranks have called
 * peak_enter(), and a barrier since. */
tsr_status peak_run(const peak *k, int rank, int index);

#endif
