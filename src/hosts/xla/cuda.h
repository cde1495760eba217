/* GPUs by libtessera-cuda, which is opened by the first call on a GPU and never linked: one driver
 * for all call sites of the process, and communicators over those that XLA lends. They end with the
 * last call site. */
#ifndef TSR_HOSTS_XLA_CUDA_H
#define TSR_HOSTS_XLA_CUDA_H

#include <tessera/comm.h>

struct ncclComm;

/* Opens the library and makes the driver, unless another call site has done so. */
tsr_status tsr_xla_cuda_acquire(void);

/* Gives one tsr_xla_cuda_acquire() back. */
void tsr_xla_cuda_release(void);

/* Between those two: the driver. */
const tsr_device_driver *tsr_xla_cuda_driver(void);

/* Between those two: a communicator over `lent`, which is GPU `device`'s, shared by all that ask
 * for it with the same timeout. Each gives it back by tsr_xla_cuda_close(). */
tsr_status tsr_xla_cuda_open(struct ncclComm *lent, int64_t device, int64_t timeout_ms, tsr_comm **out);

/* Gives a communicator back. `broken`: nobody gets it any more. */
void tsr_xla_cuda_close(tsr_comm *comm, int broken);

#endif
