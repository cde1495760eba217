/** Objects that hold a tensor of DLPack. */
#ifndef TSR_TENSOR_DLPACK_OBJECT_H
#define TSR_TENSOR_DLPACK_OBJECT_H

#include "tensor/dlpack/abi.h"

#include <tessera/dlpack.h>

/** The object's tensor, whose shape and strides are the object's. */
const tsr_dl_tensor *tsr_dl_object_tensor(const tsr_dlpack_object *object);

/** Lends the object's tensor: the managed tensor holds a reference to the object. */
tsr_status tsr_dl_object_lend(tsr_dlpack_object *object, struct DLManagedTensorVersioned **out);

#endif
