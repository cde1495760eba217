/* Copies of graphs. ggml's callers may change a graph and its tensors as soon as a computation has
 * begun; only the elements of tensors stay. */
#ifndef TSR_HOSTS_GGML_SNAPSHOT_H
#define TSR_HOSTS_GGML_SNAPSHOT_H

struct ggml_cgraph;

/* A copy of the graph with copies of its nodes and of the tensors that they refer to, in one block
 * of memory, which free() frees. NULL: there is not enough memory. */
struct ggml_cgraph *tsr_ggml_snapshot(const struct ggml_cgraph *graph);

#endif
