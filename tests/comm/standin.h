/**
 * A stand-in for libnccl and libcudart: GPUs whose memory is host memory, driven by the threads that wait for them.
 *
 * It goes by NCCL's user guide, and by its strictest reading: work that is not waited for is not done; of what may run in any order some
 * order is drawn; a non-blocking communicator enqueues nothing before it has been asked how it is; memory that no GPU reaches, a
 * communicator that is not ready, finalized or gone, messages and collectives that do not match, kernels of one GPU that are not in the
 * order in which they were issued: all this is misuse, which the world remembers. There is one world at a time.
 */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include "comm/engines/nccl/api.h"
#include <stdint.h>
#include <tessera/tensor.h>

/** A world of `devices` GPUs; the seed draws orders and delays. */
void standin_begin(int devices, uint64_t seed);

/** Ends it. NULL, or the first misuse, or what has not been freed; static. */
const char *standin_end(void);

/** The first misuse so far, or NULL; it is forgotten. For tests of the stand-in itself. */
const char *standin_misuse(void);

/** The table that stands for the libraries. */
extern const tsr_nccl_api standin_api;

/** What ncclGetVersion() says. */
void standin_set_version(int version);

/** This thread's k-th call from now on fails, of those that make or do something; 0: none does. */
void standin_fail_call(int k);

/** The call of this thread that has failed so ("ncclSend"), or NULL; it is forgotten. */
const char *standin_failed_call(void);

/** Makes `comm` and its peers report an asynchronous error from now on, as a broken network does. */
void standin_break_network(ncclComm_t comm, ncclResult_t error);

/** How many communicators were aborted, and how many kernels begun, in this world so far. */
int standin_aborted(void);
int standin_kernels(void);

/** What this thread has done so far: kernels of NCCL's that it issued, times that it waited for a GPU or asked whether it is done, and
 * memory that it allocated. */
typedef struct standin_tally {
    int kernels, waits, allocations;
} standin_tally;

standin_tally standin_tally_of_thread(void);

/**
 * Graphs, of one stream each: what the stream is given between begin and end is recorded and not done, and is enqueued, kernels of NCCL's
 * too, whenever the graph is launched. To wait for the GPU meanwhile, to allocate there, or to record or await an event in the stream is
 * misuse.
 */
typedef struct standin_graph standin_graph;
void standin_capture_begin(cudaStream_t stream);
standin_graph *standin_capture_end(cudaStream_t stream);
void standin_graph_launch(const standin_graph *graph, cudaStream_t stream);
void standin_graph_destroy(standin_graph *graph);

/** A driver of the world's GPUs, whose tensors NCCL sends: everything is done in stream order, later. Freed by
 * tsr_device_driver_destroy(). */
tsr_status standin_driver_create(tsr_device_driver **out);

#endif
