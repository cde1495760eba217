#include "tensor/dlpack/dtypes.h"

/* By dtype: its code. Bits are those of its elements. */
static const uint8_t codes[TSR_DTYPE_END] = {[TSR_F64] = DL_FLOAT,
                                             [TSR_F32] = DL_FLOAT,
                                             [TSR_F16] = DL_FLOAT,
                                             [TSR_BF16] = DL_BFLOAT,
                                             [TSR_F8E4M3] = DL_FLOAT8_E4M3FN,
                                             [TSR_F8E5M2] = DL_FLOAT8_E5M2,
                                             [TSR_I64] = DL_INT,
                                             [TSR_I32] = DL_INT,
                                             [TSR_I16] = DL_INT,
                                             [TSR_I8] = DL_INT,
                                             [TSR_U64] = DL_UINT,
                                             [TSR_U32] = DL_UINT,
                                             [TSR_U16] = DL_UINT,
                                             [TSR_U8] = DL_UINT,
                                             [TSR_BOOL] = DL_BOOL,
                                             [TSR_C64] = DL_COMPLEX,
                                             [TSR_C128] = DL_COMPLEX};

void tsr_dl_dtype_write(tsr_dtype dtype, tsr_dl_tensor *out)
{
    out->code = codes[dtype];
    out->bits = (uint8_t)(8 * tsr_dtype_bytes(dtype));
    out->lanes = 1;
}

bool tsr_dl_dtype_read(const tsr_dl_tensor *from, tsr_dtype *out)
{
    for (int dtype = 0; dtype < TSR_DTYPE_END; dtype++)
        if (tsr_dtype_bytes((tsr_dtype)dtype) > 0 && codes[dtype] == from->code && from->lanes == 1 &&
            from->bits == 8 * tsr_dtype_bytes((tsr_dtype)dtype)) {
            *out = (tsr_dtype)dtype;
            return true;
        }
    return false;
}
