/* Compiled once for each set of instructions, whose name TSR_KERNELS is. */
#include "tensor/rows/row_sums.h"

#include <math.h>

#define ROWS_(kernels) tsr_row_arithmetic_##kernels
#define ROWS(kernels)  ROWS_(kernels)

/* Elements of a row may begin at any byte. */
#define ELEMENT(name, native) typedef native __attribute__((may_alias, aligned(1))) name;

ELEMENT(row_f32, float)
ELEMENT(row_f64, double)
ELEMENT(row_u64, uint64_t)
ELEMENT(row_u32, uint32_t)
ELEMENT(row_u16, uint16_t)
ELEMENT(row_u8, uint8_t)

/* A NaN that comes out of a sum is the positive quiet one without payload. */
#define DEFINE_FLOAT(type, native)                                                                                     \
    static void add_##type(void *to, const void *from, int64_t count)                                                  \
    {                                                                                                                  \
        type *restrict const out = to;                                                                                 \
        const type *restrict const in = from;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native sum = out[i] + in[i];                                                                         \
            out[i] = sum == sum ? sum : (native)NAN;                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static void divide_##type(void *values, int64_t divisor, int64_t count)                                            \
    {                                                                                                                  \
        type *const out = values;                                                                                      \
        const native by = (native)divisor;                                                                             \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = out[i] / by;                                                                                      \
    }

#define DEFINE_INTEGER(type)                                                                                           \
    static void add_##type(void *to, const void *from, int64_t count)                                                  \
    {                                                                                                                  \
        type *restrict const out = to;                                                                                 \
        const type *restrict const in = from;                                                                          \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = (type)(out[i] + in[i]);                                                                           \
    }

DEFINE_FLOAT(row_f32, float)
DEFINE_FLOAT(row_f64, double)
DEFINE_INTEGER(row_u64)
DEFINE_INTEGER(row_u32)
DEFINE_INTEGER(row_u16)
DEFINE_INTEGER(row_u8)

#define NARROW                                                                                                         \
    {                                                                                                                  \
        TSR_F32, 1, add_row_f32, divide_row_f32                                                                        \
    }

/* Sums of integers wrap, so signed ones are those of unsigned ones. */
const tsr_row_arithmetic ROWS(TSR_KERNELS)[TSR_DTYPE_END] = {
    [TSR_F64] = {TSR_F64, 1, add_row_f64, divide_row_f64},
    [TSR_F32] = {TSR_F32, 1, add_row_f32, divide_row_f32},
    [TSR_F16] = NARROW,
    [TSR_BF16] = NARROW,
    [TSR_F8E4M3] = NARROW,
    [TSR_F8E5M2] = NARROW,
    [TSR_I64] = {TSR_I64, 1, add_row_u64, NULL},
    [TSR_I32] = {TSR_I32, 1, add_row_u32, NULL},
    [TSR_I16] = {TSR_I16, 1, add_row_u16, NULL},
    [TSR_I8] = {TSR_I8, 1, add_row_u8, NULL},
    [TSR_U64] = {TSR_U64, 1, add_row_u64, NULL},
    [TSR_U32] = {TSR_U32, 1, add_row_u32, NULL},
    [TSR_U16] = {TSR_U16, 1, add_row_u16, NULL},
    [TSR_U8] = {TSR_U8, 1, add_row_u8, NULL},
    [TSR_BOOL] = {TSR_BOOL, 1, NULL, NULL},
    [TSR_C64] = {TSR_C64, 2, add_row_f32, divide_row_f32},
    [TSR_C128] = {TSR_C128, 2, add_row_f64, divide_row_f64},
};
