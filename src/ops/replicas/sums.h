/** Adds what replicas made, in the order of ranks. */
#ifndef TSR_OPS_REPLICAS_SUMS_H
#define TSR_OPS_REPLICAS_SUMS_H

#include "ops/replicas/replicas.h"

/** A rank's job: adds the gradients that it has made to those of its earlier batches, where they
 * count by `rows`; or begins the sum. */
void tsr_replica_keep(tsr_replica *replica, int64_t rows, bool begins);

/** A job: writes this rank's share of all sums, of gradients and of outputs without rows. */
void tsr_replica_sum(tsr_replica *replica);

/** Fills a tensor, which is contiguous and of floats, with zeros. */
void tsr_replica_zero(const tsr_tensor *tensor);

#endif
