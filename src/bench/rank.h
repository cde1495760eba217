/** One rank's side of a measurement: its options, and its device. */
#ifndef TSR_BENCH_RANK_H
#define TSR_BENCH_RANK_H

#include "bench/agree.h"

#include <tessera/bench.h>
#include <tessera/sys/device.h>

#include <stdbool.h>

typedef struct tsr_bench_rank {
    tsr_comm *comm;
    tsr_bench_options options;
    const tsr_device_table *table; /**< of options.device */
    void *self;                    /**< for the table */
} tsr_bench_rank;

/** Reads and checks this rank's options, and says so in `o` if they are bad; `call` is the name of
 * the public function. Afterwards `out` can take part in collective calls in any case. */
void tsr_bench_rank_read(const char *call, tsr_comm *comm, const tsr_bench_options *options, tsr_bench_rank *out,
                         tsr_bench_outcome *o);

/** Collective: compares the options, and the numbers of `subjects`, with those of rank 0, and tells
 * all ranks what is wrong on any of them, or was in `o` before. */
tsr_status tsr_bench_rank_agree(const tsr_bench_rank *r, const tsr_bench_subject *subjects, int count,
                                tsr_bench_outcome *o);

/** True if tensors are in memory of a device. */
bool tsr_bench_rank_has_device(const tsr_bench_rank *r);

/** Waits until the rank's stream is idle; returns at once where there are no streams. */
tsr_status tsr_bench_rank_wait(const tsr_bench_rank *r);

#endif
