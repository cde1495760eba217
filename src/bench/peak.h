/**
 * The peak that calls are compared with: plain copies of as many bytes as all results have
 * together.
 *
 * On the host, rank threads (at most one for each core) copy an equal part each; ranks that may be
 * processes copy their own part each. On devices each rank copies its own part, but of rank threads
 * that share a device the first copies for all of them.
 */
#ifndef TSR_BENCH_PEAK_H
#define TSR_BENCH_PEAK_H

#include "bench/rank.h"

/** The most plain copies. */
#define TSR_BENCH_MOST_COPIES 4

/** The memory of a rank: its result, and a source of as many bytes. */
typedef struct tsr_bench_area {
    void *dst, *src;
    size_t bytes;
    size_t begin; /**< offset in the payload, which is all results one after another */
    tsr_device device;
} tsr_bench_area;

typedef struct tsr_bench_peak {
    const tsr_bench_rank *rank;
    bool together;                                 /**< all ranks are threads of this process */
    int copiers;                                   /**< number of rank threads that copy on the host */
    int count;                                     /**< number of copies that all ranks can run */
    tsr_bench_copier *copy[TSR_BENCH_MOST_COPIES]; /**< on the host */
    size_t payload;
    tsr_bench_area own;
    tsr_bench_area *areas; /**< one for each rank; on the heap */
    void *memory;          /**< of the source, and of the result where the caller has none */
    size_t memory_bytes;
} tsr_bench_peak;

/** Collective: gets memory for copies of `bytes` on this rank into `result`, or into memory of the
 * peak's own if that is NULL. The caller calls tsr_bench_peak_leave() in any case, after all ranks
 * have copied. */
tsr_status tsr_bench_peak_enter(const tsr_bench_rank *r, size_t bytes, void *result, tsr_bench_peak *out);
void tsr_bench_peak_leave(tsr_bench_peak *k);

/** The name of copy `index`, below k->count. Static. */
const char *tsr_bench_peak_name(const tsr_bench_peak *k, int index);

/** Does this rank's part of copy `index`; on devices with streams only enqueues it. All ranks have
 * called tsr_bench_peak_enter(), and a barrier since. */
tsr_status tsr_bench_peak_run(const tsr_bench_peak *k, int index);

#endif
