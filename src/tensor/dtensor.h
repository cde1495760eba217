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
    /** what calls by id know of its layout, owned; NULL before the first such call. Changed only
     * within a call of the communicator's handle */
    struct tsr_row_table *row_table;
    tsr_dtensor *base; /**< of a view: the dtensor whose memory it is, an owned reference; else NULL */
};

/** A dtensor over memory that it does not own, checked by the caller: that of `base`, which it
 * retains, or (NULL) of somebody else. */
tsr_status tsr_dtensor_wrap(const tsr_layout *layout, const tsr_tensor *local, const tsr_dtensor *base,
                            tsr_dtensor **out);

/** TSR_ERROR_ARGUMENT if `mesh` is NULL or abstract, or the status of tsr_comm_check_open() of its
 * communicator. `call` begins the sentence. */
tsr_status tsr_check_communicates(const tsr_mesh *mesh, const char *call);

/** Returns `status`; after a failure its sentence then begins with `call`. */
tsr_status tsr_name_call(const char *call, tsr_status status);

#endif
