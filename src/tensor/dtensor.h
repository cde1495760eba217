/** The dtensor, for the files of src/tensor. */
#ifndef TSR_TENSOR_DTENSOR_H
#define TSR_TENSOR_DTENSOR_H

#include "base/references.h"

#include <tessera/dtensor.h>

struct tsr_dtensor {
    tsr_references references;
    tsr_layout *layout; /**< one reference; its context is the dtensor's */
    tsr_comm *comm;     /**< the communicator of the layout's mesh, borrowed from the mesh */
    tsr_tensor local;
    size_t owned_bytes; /**< bytes of local.data if this dtensor allocated it; 0: borrowed or empty */
};

/** TSR_ERROR_ARGUMENT if `mesh` is NULL or abstract, or the status of tsr_comm_check_open() of its
 * communicator. `call` begins the sentence. */
tsr_status tsr_check_communicates(const tsr_mesh *mesh, const char *call);

/** Returns `status`; after a failure its sentence then begins with `call`. */
tsr_status tsr_name_call(const char *call, tsr_status status);

#endif
