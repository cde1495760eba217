/** Moves of tensors between layouts among the ranks of one process: planned once, run many times,
 * for all ranks in one call or by a thread for each rank. */
#ifndef TSR_HOSTS_TVM_MOVES_H
#define TSR_HOSTS_TVM_MOVES_H

#include "hosts/tvm/call.h"

/** move(ranks, source, destination) -> tessera.Move */
tsr_status tsr_tvm_move(tsr_tvm_call *call);

/** load_move(ranks, bytes) -> tessera.Move: of a plan that save_plan() saved */
tsr_status tsr_tvm_load_move(tsr_tvm_call *call);

/** run(move, sources, destinations): a tensor for each rank */
tsr_status tsr_tvm_run(tsr_tvm_call *call);

/** run_rank(move, rank, source, destination): called for every rank, each by a thread of its own.
 * The rank may also be a tensor of one i32 or i64, as compiled code has it. */
tsr_status tsr_tvm_run_rank(tsr_tvm_call *call);

/** bind(move) -> Function: run_rank() of that move, as a function of the rank and two tensors */
tsr_status tsr_tvm_bind(tsr_tvm_call *call);

/** redistribute(ranks, source, destination, sources, destinations): move() and run() */
tsr_status tsr_tvm_redistribute(tsr_tvm_call *call);

#endif
