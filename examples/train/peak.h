/** The most operations a second that ranks reach in large products. */
#ifndef TRAIN_PEAK_H
#define TRAIN_PEAK_H

#include <tessera/tessera.h>

/**
 * Collective: all ranks of the mesh multiply matrices of `dtype` at the same time, each its own, a
 * few times; `*rate` is the sum of their best rates, in multiplications and additions a second, the
 * same on every rank.
 */
tsr_status train_peak(tsr_comm *comm, const tsr_mesh *mesh, tsr_dtype dtype, double *rate);

#endif
