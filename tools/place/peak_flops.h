/** What a core can do at most, to compare products with. */
#ifndef TESSERA_TOOLS_PEAK_FLOPS_H
#define TESSERA_TOOLS_PEAK_FLOPS_H

/** Fused multiply-adds of f32 a second, each counted as two, of this thread, by the widest vectors that this processor runs; from a loop
 * of some milliseconds. Times are the thread's own. 0: it has
 * none that are known here. */
double peak_flops_measure(void);

/** What this thread has computed so far: time in which others have its core does not count. */
double thread_seconds(void);

#endif
