/** Dtypes in DLPack's words. */
#ifndef TSR_TENSOR_DLPACK_DTYPES_H
#define TSR_TENSOR_DLPACK_DTYPES_H

#include "tensor/dlpack/abi.h"

#include <tessera/dtype.h>

#include <stdbool.h>

/** Writes the code and the bits of a dtype. */
void tsr_dl_dtype_write(tsr_dtype dtype, tsr_dl_tensor *out);

/** The dtype of that code and bits; false: there is none. */
bool tsr_dl_dtype_read(const tsr_dl_tensor *from, tsr_dtype *out);

#endif
