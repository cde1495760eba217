/** Elements of dtensors by their global indices, for tensors whose shards are intervals. */
#ifndef TESSERA_TOOLS_BENCH_CHECK_ELEMENTS_H
#define TESSERA_TOOLS_BENCH_CHECK_ELEMENTS_H

#include <tessera/tessera.h>

/** The row-major global index of a local element, by its local one; `shape` and `offset` are the
 * shard's (tsr_layout_local()). */
int64_t element_index(const tsr_layout *layout, const int64_t *shape, const int64_t *offset, int64_t local);

/** The value of an element. */
typedef double element_value(const void *arg, int64_t index);

/** Fills this rank's elements, of f32 or i64. */
tsr_status elements_fill(const tsr_dtensor *x, element_value *value, const void *arg);

#endif
