/* The three functions by which ggml's meta device sums tensors over the devices that it splits a
 * model among, over Tessera's communicator of threads. The thread that calls for all devices only
 * gives work to their workers. */
#ifndef TSR_HOSTS_GGML_COMM_H
#define TSR_HOSTS_GGML_COMM_H

#include <ggml-backend-impl.h>

/* A communicator of the backends, in the order of ranks. NULL: they are not all this library's, one
 * is there twice, or there is not enough memory; the log says the latter two. ggml then sums in its
 * own way. */
void *tsr_ggml_comm_init(ggml_backend_t *backends, size_t count);

/* Waits for the work of the backends, which are still there, and ends the communicator. NULL is
 * fine. */
void tsr_ggml_comm_free(void *comm);

/*
 * Adds one tensor of each backend, in place, in the order of ranks. It happens in the order of each
 * backend's graphs, maybe after the call has returned. A tensor that is not computed
 * (GGML_TENSOR_FLAG_COMPUTE) counts as zeros. False: nothing has happened, and ggml sums in its own
 * way: the tensors differ in dtype or size, have gaps or a dtype that cannot be added, are not in
 * memory that the host reads, or an earlier sum has failed.
 *
 * A sum that fails afterwards fills the tensors with NaN, and the next graph of the first backend
 * returns GGML_STATUS_FAILED.
 */
bool tsr_ggml_comm_allreduce_tensor(void *comm, struct ggml_tensor **tensors);

#endif
