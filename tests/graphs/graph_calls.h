/** How streams are captured and graphs launched: by the CUDA runtime, emulated or not, or by the stand-in for it and NCCL. */
#ifndef TESTS_GRAPHS_GRAPH_CALLS_H
#define TESTS_GRAPHS_GRAPH_CALLS_H

#include <tessera/sys/comm.h>
#include <tessera/tensor.h>

/** From begin to end the calling thread's stream is captured; end gives a graph that can be launched. */
tsr_status graph_begin(tsr_stream stream);
tsr_status graph_end(tsr_stream stream, void **graph);
tsr_status graph_launch(void *graph, tsr_stream stream);
void graph_destroy(void *graph);

/** How many ranks, of `wanted`, NCCL can have here; 0, with the reason: none. */
int graph_nccl_ranks(int wanted, const char **reason);

/** Ranks over NCCL's engine, each on a thread and a GPU of its own. */
tsr_status graph_nccl_run(int nranks, tsr_rank_main *body, void *arg);

/** The calling rank's GPU. */
tsr_device graph_nccl_device(void);

#endif
