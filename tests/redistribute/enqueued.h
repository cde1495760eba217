/**
 * A move of device memory as one rank has it, step by step in a stream, with what the oracle says must come of it. Nothing here waits for
 * the device but enqueued_finish().
 */
#ifndef TESTS_REDISTRIBUTE_ENQUEUED_H
#define TESTS_REDISTRIBUTE_ENQUEUED_H

#include "oracle_random.h"
#include <tessera/comm.h>
#include <tessera/plan.h>
#include <tessera/sys/device.h>

typedef struct enqueued_move {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
    oracle_move move;
    uint64_t seed; /**< of the values */
    bool gaps;     /**< between all elements of tensors, on every rank; else there are none */
    bool halves;   /**< tsr_plan_start() and _finish() */
} enqueued_move;

/** A move within one mesh dim of ranks 0 to ranks - 1. */
void enqueued_line(enqueued_move *m, int ranks, tsr_dtype dtype, int ndim, const int64_t *shape, tsr_placement from, tsr_placement to);

/** Names the running case. */
void enqueued_name(const enqueued_move *m);

/** Times that one may be moved with values of its own each. */
enum { ENQUEUED_ROUNDS = 2 };

typedef struct enqueued {
    tsr_comm *comm;
    const enqueued_move *move;
    tsr_device device;
    const tsr_device_table *gpu;
    void *self; /**< of `gpu` */
    tsr_stream stream;
    tsr_plan *plan;
    tsr_tensor src, dst;
    size_t src_bytes, dst_bytes, workspace_bytes;
    void *workspace;
    unsigned char *given[ENQUEUED_ROUNDS], *wanted[ENQUEUED_ROUNDS], *got[ENQUEUED_ROUNDS]; /**< on the host */
} enqueued;

/** Makes and prepares the plan, the stream and the tensors; finish is due in any case, and waits for the stream. `options` may be NULL. */
tsr_status enqueued_start(enqueued *e, tsr_comm *comm, const enqueued_move *move, tsr_device device, const tsr_plan_options *options);
void enqueued_finish(enqueued *e);

/** Round `i`'s values to the source; the move; what has come of it from the destination. */
tsr_status enqueued_put(const enqueued *e, int i);
tsr_status enqueued_execute(const enqueued *e);
tsr_status enqueued_get(const enqueued *e, int i);

/** After the stream was waited for: TSR_ERROR_INTERNAL, naming the first byte of round `i` that is wrong. */
tsr_status enqueued_compare(const enqueued *e, int i);

#endif
