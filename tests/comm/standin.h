/**
 * A stand-in for libnccl and libcudart: GPUs whose memory is host memory, and whose work is done by
 * the threads that wait for them.
 *
 * It follows the strictest reading of NCCL's user guide: work that no thread waits for is not done;
 * an order that the guide leaves open is drawn at random; a non-blocking communicator enqueues
 * nothing before its state is asked. These are misuse, which the world remembers: memory that the
 * GPU cannot reach; a communicator that is not ready, finalized or destroyed; messages and
 * collectives that do not match; kernels of a GPU that do not run in the order of issue. There is
 * one world at a time.
 */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include "comm/engines/nccl/api.h"

#include <tessera/tensor.h>

#include <stdint.h>

/** Begins a world of `devices` GPUs; random orders and delays follow from the seed. */
void standin_begin(int devices, uint64_t seed);

/** Ends the world. Returns the first misuse, else what was not freed, else NULL; static. */
const char *standin_end(void);

/** Returns the first misuse so far, or NULL, and forgets it. For tests of the stand-in itself. */
const char *standin_misuse(void);

/** The table of the libraries' functions. */
extern const tsr_nccl_api standin_api;

/** Sets the result of ncclGetVersion(). */
void standin_set_version(int version);

/** Makes this thread's k-th call from now on fail, counting calls that make or do something; 0:
 * none fails. */
void standin_fail_call(int k);

/** Returns the name of the call of this thread that standin_fail_call() made fail, as "ncclSend",
 * or NULL, and forgets it. */
const char *standin_failed_call(void);

/** Makes `comm` and its peers report an asynchronous error henceforth, as a broken network does. */
void standin_break_network(ncclComm_t comm, ncclResult_t error);

/** The number of communicators aborted, and of kernels begun, in this world so far. */
int standin_aborted(void);
int standin_kernels(void);

/** Counts of this thread: NCCL kernels issued, waits for a GPU and queries whether it is done, and
 * allocations. */
typedef struct standin_tally {
    int kernels, waits, allocations;
} standin_tally;

standin_tally standin_tally_of_thread(void);

/**
 * Graphs of one stream each: work given to the stream between begin and end, NCCL kernels included,
 * is recorded instead of done, and enqueued at each launch of the graph. Waiting for the GPU
 * meanwhile, allocating on it, and recording or awaiting an event in the stream are misuse.
 */
typedef struct standin_graph standin_graph;
void standin_capture_begin(cudaStream_t stream);
standin_graph *standin_capture_end(cudaStream_t stream);
void standin_graph_launch(const standin_graph *graph, cudaStream_t stream);
void standin_graph_destroy(standin_graph *graph);

/** A driver of the world's GPUs, from whose memory NCCL sends directly; all work is done later, in
 * stream order. Freed by tsr_device_driver_destroy(). */
tsr_status standin_driver_create(tsr_device_driver **out);

#endif
