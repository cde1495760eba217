/** The peak rate of a core in multiply-adds, to compare products with. */
#ifndef TESSERA_TOOLS_PEAK_FLOPS_H
#define TESSERA_TOOLS_PEAK_FLOPS_H

/** Measures the peak rate of this thread, in floating-point operations a second: fused
 * multiply-adds of f32 on the widest vectors of this processor, two operations each, in a loop of
 * some milliseconds of thread time. 0 on a processor without a known instruction set. */
double peak_flops_measure(void);

/** Processor time of this thread in seconds. */
double thread_seconds(void);

#endif
