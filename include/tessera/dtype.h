/**
 * @file
 * Element types: one table, which every other map of dtypes in the library reads.
 */
#ifndef TESSERA_DTYPE_H
#define TESSERA_DTYPE_H

#include <tessera/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. Zero is not a dtype, so that a zeroed tsr_tensor is refused instead of read as
 * f64. */
typedef enum tsr_dtype {
    TSR_DTYPE_NONE = 0,
    TSR_F64,
    TSR_F32,
    TSR_F16,    /**< IEEE binary16 */
    TSR_BF16,   /**< the upper half of an f32 */
    TSR_F8E4M3, /**< the fn variant (OCP): no infinity, overflow is NaN, largest 448 */
    TSR_F8E5M2, /**< overflows to infinity, largest finite 57344 */
    TSR_I64,
    TSR_I32,
    TSR_I16,
    TSR_I8,
    TSR_U64,
    TSR_U32,
    TSR_U16,
    TSR_U8,
    TSR_BOOL, /**< one byte, 0 or 1 */
    TSR_C64,  /**< two f32: real, imaginary */
    TSR_C128, /**< two f64 */
    TSR_DTYPE_END
} tsr_dtype;

/** The kind of number that a dtype holds. */
typedef enum tsr_dtype_class {
    TSR_CLASS_FLOAT,
    TSR_CLASS_SIGNED,
    TSR_CLASS_UNSIGNED,
    TSR_CLASS_BOOL,
    TSR_CLASS_COMPLEX
} tsr_dtype_class;

/** How the terms of a Partial placement combine. */
typedef enum tsr_reduce_op {
    TSR_SUM = 0,
    TSR_AVG,
    TSR_MIN,
    TSR_MAX,
    TSR_PROD,
    TSR_REDUCE_OP_END
} tsr_reduce_op;

/** One row of the table. */
typedef struct tsr_dtype_info {
    tsr_dtype dtype;
    const char *name; /**< "f32": the name in text and JSON */
    size_t bytes;
    tsr_dtype_class kind;
    unsigned reduce_ops;     /**< bit 1u << op is set for each op that Partial may have with this
                                  dtype */
    const char *npy;         /**< the descr in .npy files, "<f4" and so on; bf16 and f8 travel as
                                  unsigned integers, "<u2" and "|u1" */
    const char *safetensors; /**< "F32", "BF16" and so on; NULL where the format lacks the dtype */
} tsr_dtype_info;

/** The row of `dtype`, or NULL if it is not a dtype. Static; any thread. */
TSR_API const tsr_dtype_info *tsr_dtype_get(tsr_dtype dtype);

/** The dtype with that name ("f32"). TSR_ERROR_ARGUMENT: unknown; the sentence lists the known
 * names. */
TSR_API tsr_status tsr_dtype_parse(const char *name, tsr_dtype *out);

/** Bytes of one element; 0 if `dtype` is not a dtype. */
TSR_API size_t tsr_dtype_bytes(tsr_dtype dtype);

/** The dtype's name, such as "f32"; "none" if it is not a dtype. Static. */
TSR_API const char *tsr_dtype_name(tsr_dtype dtype);

/** "sum", "avg", "min", "max" or "prod"; "none" for anything else. Static. */
TSR_API const char *tsr_reduce_op_name(tsr_reduce_op op);

#ifdef __cplusplus
}
#endif

#endif
