/** Capturing streams and launching graphs, by the CUDA runtime, emulated or real, or by the
 * stand-in for CUDA and NCCL. */
#ifndef TESTS_GRAPHS_GRAPH_CALLS_H
#define TESTS_GRAPHS_GRAPH_CALLS_H

#include <tessera/sys/comm.h>
#include <tessera/tensor.h>

/** graph_begin() captures a stream until graph_end(), which returns a graph that can be launched.
 * Meanwhile no thread may make a call that captures forbid; after graph_begin_apart() only the
 * calling thread may not, so that threads capture apart from each other. */
tsr_status graph_begin(tsr_stream stream);
tsr_status graph_begin_apart(tsr_stream stream);
tsr_status graph_end(tsr_stream stream, void **graph);
tsr_status graph_launch(void *graph, tsr_stream stream);
void graph_destroy(void *graph);

/** The number of ranks, at most `wanted`, that NCCL can have here; 0, with the reason, for none. */
int graph_nccl_ranks(int wanted, const char **reason);

/** Runs ranks over the NCCL engine, each on its own thread and GPU. */
tsr_status graph_nccl_run(int nranks, tsr_rank_main *body, void *arg);

/** The calling rank's GPU. */
tsr_device graph_nccl_device(void);

#endif
