/**
 * One rank's side of a move of device memory, step by step in a stream, checked against the oracle.
 * Only enqueued_finish() waits for the device.
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
    uint64_t seed; /**< seed of the values */
    bool gaps;     /**< every rank's tensors have gaps between all elements */
    bool halves;   /**< the move is executed by tsr_plan_start() and _finish() */
} enqueued_move;

/** Makes a move on a mesh of one dim with ranks 0 to ranks - 1. */
void enqueued_line(enqueued_move *m, int ranks, tsr_dtype dtype, int ndim, const int64_t *shape, tsr_placement from,
                   tsr_placement to);

/** Names the case for failures. */
void enqueued_name(const enqueued_move *m);

/** Upper bound of the rounds of a move, each with its own values. */
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

/** Makes the plan, prepared, the stream and the tensors. The caller calls enqueued_finish() in any
 * case, which waits for the stream. `options` may be NULL. */
tsr_status enqueued_start(enqueued *e, tsr_comm *comm, const enqueued_move *move, tsr_device device,
                          const tsr_plan_options *options);
void enqueued_finish(enqueued *e);

/** Enqueue the values of round `i` to the source, the move, and the copy of the destination to the
 * host. */
tsr_status enqueued_put(const enqueued *e, int i);
tsr_status enqueued_execute(const enqueued *e);
tsr_status enqueued_get(const enqueued *e, int i);

/** Compares the results of round `i`, after a wait for the stream: TSR_ERROR_INTERNAL names the
 * first wrong byte. */
tsr_status enqueued_compare(const enqueued *e, int i);

#endif
