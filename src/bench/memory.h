/** Memory of a rank's device, and copies between its tensors and contiguous host memory. */
#ifndef TSR_BENCH_MEMORY_H
#define TSR_BENCH_MEMORY_H

#include "bench/rank.h"

/** Collective on the host, where peers may access the memory: `bytes`, aligned to 64. A rank that
 * failed before, in `o`, takes part and gets none. Failures go to `o`. */
void tsr_bench_allocate(const tsr_bench_rank *r, size_t bytes, void **out, tsr_bench_outcome *o);

/** Frees memory of tsr_bench_allocate(); NULL is fine. */
void tsr_bench_release(const tsr_bench_rank *r, void *memory, size_t bytes);

/** `bytes` rounded up to the alignment. */
size_t tsr_bench_round_up(size_t bytes);

/** A tensor's bytes without gaps; 0 for one that is not valid. */
size_t tsr_bench_tensor_bytes(const tsr_tensor *t);

/** Contiguous host memory of a tensor's size: the tensor's own where it is that, else a new buffer.
 * tsr_bench_unstage() frees it. */
tsr_status tsr_bench_stage(const tsr_bench_rank *r, const tsr_tensor *t, void **out);
void tsr_bench_unstage(const tsr_bench_rank *r, const tsr_tensor *t, void *staged);

/** Copies staged memory to the tensor (push) or back (pull); complete on return. */
tsr_status tsr_bench_push(const tsr_bench_rank *r, const tsr_tensor *t, void *staged);
tsr_status tsr_bench_pull(const tsr_bench_rank *r, const tsr_tensor *t, void *staged);

#endif
