/** Tensors that hosts pass: objects of TVM-FFI, or DLTensors that are lent for the call. */
#ifndef TSR_HOSTS_TVM_TENSORS_H
#define TSR_HOSTS_TVM_TENSORS_H

#include "hosts/tvm/call.h"

#include <tessera/tensor.h>

/** A view of a tensor in host memory; `*given` is false for None. Sentences call it `what`. */
tsr_status tsr_tvm_tensor_of(tsr_tvm_call *call, const TVMFFIAny *value, const char *what, bool *given,
                             tsr_tensor *out);

/** tsr_tvm_tensor_of() for argument `index`. A missing argument counts as None. */
tsr_status tsr_tvm_tensor(tsr_tvm_call *call, int32_t index, const char *what, bool *given, tsr_tensor *out);

#endif
