#include "ops/kernels/attention/attention_kernels.h"

#include "ops/vectors/loads.h"

#include <math.h>

#define NAME_(kernels) tsr_attention_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

/* Bytes of the widest vector of the instruction set, and how many rows and vectors of results a
 * product keeps in registers. */
#if defined(__AVX512F__)
#define VECTOR  64
#define VECTORS 4
#elif defined(__AVX2__)
#define VECTOR  32
#define VECTORS 2
#else
#define VECTOR  16
#define VECTORS 2
#endif
#define ROWS 6

#define LOG2_E (REAL)0x1.71547652b82fep+0

#define INLINE       __attribute__((always_inline))
#define UNROLLED     _Pragma("GCC unroll 12")
#define UNROLLED_ALL _Pragma("GCC unroll 16")

/* f32: 2^r = 1 + r q(r) with |r| at most 1/2, where q is the polynomial of Cephes' exp2f. Adding
 * MAGIC, 1.5 * 2^23, rounds to an integer, which is then in the low bits. */
#define REAL           float
#define INTEGER        uint32_t
#define PIECE          (VECTOR / 4)
#define FUNCTION(name) f32_##name
#define MAGIC          0x1.8p23f
#define BIAS           127
#define MANTISSA       23
#define LEAST_EXPONENT (-126)
static const REAL FUNCTION(powers)[] = {1.535336188319500e-4f,
                                        1.339887440266574e-3f,
                                        9.618437357674640e-3f,
                                        5.550332471162809e-2f,
                                        2.402264791363012e-1f,
                                        6.931472028550421e-1f,
                                        1};
#include "ops/kernels/attention/attention_blocks.h"
#include "ops/kernels/attention/attention_stream.h"
#undef REAL
#undef INTEGER
#undef PIECE
#undef FUNCTION
#undef MAGIC
#undef BIAS
#undef MANTISSA
#undef LEAST_EXPONENT

/* f64: the series of e^(r ln 2), whose terms are (ln 2)^n / n!. */
#define REAL           double
#define INTEGER        uint64_t
#define PIECE          (VECTOR / 8)
#define FUNCTION(name) f64_##name
#define MAGIC          0x1.8p52
#define BIAS           1023
#define MANTISSA       52
#define LEAST_EXPONENT (-1022)
static const REAL FUNCTION(powers)[] = {1.3691488853904124e-12, 2.5678435993488196e-11,
                                        4.44553827187081e-10,   7.054911620801121e-09,
                                        1.0178086009239696e-07, 1.3215486790144305e-06,
                                        1.5252733804059838e-05, 0.00015403530393381606,
                                        0.0013333558146428441,  0.009618129107628477,
                                        0.055504108664821576,   0.2402265069591007,
                                        0.6931471805599453,     1};
#include "ops/kernels/attention/attention_blocks.h"

const tsr_attention_kernels NAME(TSR_KERNELS) = {
    .begin = {[TSR_F32] = f32_begin, [TSR_F64] = f64_begin},
    .attend = {[TSR_F32] = f32_attend, [TSR_F64] = f64_attend},
    .stream = {[TSR_F32] = stream_f32, [TSR_BF16] = stream_bf16, [TSR_F16] = stream_f16},
    .measure = {[TSR_F32] = f32_measure, [TSR_F64] = f64_measure},
    .recall = {[TSR_F32] = f32_recall, [TSR_F64] = f64_recall},
    .finish = {[TSR_F32] = f32_finish, [TSR_F64] = f64_finish},
    .merge = {[TSR_F32] = f32_merge, [TSR_F64] = f64_merge},
    .differentiate = {[TSR_F32] = f32_differentiate, [TSR_F64] = f64_differentiate},
};
