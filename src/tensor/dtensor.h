/** A dtensor as the files of src/tensor see it. */
#ifndef TSR_TENSOR_DTENSOR_H
#define TSR_TENSOR_DTENSOR_H

#include "base/references.h"
#include <stdbool.h>
#include <tessera/dtensor.h>

struct tsr_dtensor {
    tsr_references references;
    tsr_layout *layout; /**< its context is the dtensor's */
    tsr_comm *comm;     /**< the layout's mesh's, which keeps it */
    tsr_tensor local;
    size_t owned_bytes; /**< of local.data, if this dtensor allocated it; 0 where it is borrowed or empty */
};

/** TSR_ERROR_ARGUMENT if `mesh` is NULL or abstract; `call` is who asks. */
tsr_status tsr_check_communicates(const tsr_mesh *mesh, const char *call);

/** Passes a status on; the sentence of a failure names the call. */
tsr_status tsr_name_call(const char *call, tsr_status status);

#endif
