#include "base/text/text.h"

#include <tessera/dtype.h>
#include <tessera/sys/status.h>

#include <string.h>

#define REDUCE(op) (1u << TSR_##op)

/* design: avg would round integers; bool has only an order (min, max); complex numbers have no
 * order. */
#define FLOAT_OPS   (REDUCE(SUM) | REDUCE(AVG) | REDUCE(MIN) | REDUCE(MAX) | REDUCE(PROD))
#define INTEGER_OPS (REDUCE(SUM) | REDUCE(MIN) | REDUCE(MAX) | REDUCE(PROD))
#define BOOL_OPS    (REDUCE(MIN) | REDUCE(MAX))
#define COMPLEX_OPS (REDUCE(SUM) | REDUCE(AVG) | REDUCE(PROD))

static const tsr_dtype_info table[TSR_DTYPE_END] = {
    [TSR_F64] = {TSR_F64, "f64", 8, TSR_CLASS_FLOAT, FLOAT_OPS, "<f8", "F64"},
    [TSR_F32] = {TSR_F32, "f32", 4, TSR_CLASS_FLOAT, FLOAT_OPS, "<f4", "F32"},
    [TSR_F16] = {TSR_F16, "f16", 2, TSR_CLASS_FLOAT, FLOAT_OPS, "<f2", "F16"},
    [TSR_BF16] = {TSR_BF16, "bf16", 2, TSR_CLASS_FLOAT, FLOAT_OPS, "<u2", "BF16"},
    [TSR_F8E4M3] = {TSR_F8E4M3, "f8e4m3", 1, TSR_CLASS_FLOAT, FLOAT_OPS, "|u1", "F8_E4M3"},
    [TSR_F8E5M2] = {TSR_F8E5M2, "f8e5m2", 1, TSR_CLASS_FLOAT, FLOAT_OPS, "|u1", "F8_E5M2"},
    [TSR_I64] = {TSR_I64, "i64", 8, TSR_CLASS_SIGNED, INTEGER_OPS, "<i8", "I64"},
    [TSR_I32] = {TSR_I32, "i32", 4, TSR_CLASS_SIGNED, INTEGER_OPS, "<i4", "I32"},
    [TSR_I16] = {TSR_I16, "i16", 2, TSR_CLASS_SIGNED, INTEGER_OPS, "<i2", "I16"},
    [TSR_I8] = {TSR_I8, "i8", 1, TSR_CLASS_SIGNED, INTEGER_OPS, "|i1", "I8"},
    [TSR_U64] = {TSR_U64, "u64", 8, TSR_CLASS_UNSIGNED, INTEGER_OPS, "<u8", "U64"},
    [TSR_U32] = {TSR_U32, "u32", 4, TSR_CLASS_UNSIGNED, INTEGER_OPS, "<u4", "U32"},
    [TSR_U16] = {TSR_U16, "u16", 2, TSR_CLASS_UNSIGNED, INTEGER_OPS, "<u2", "U16"},
    [TSR_U8] = {TSR_U8, "u8", 1, TSR_CLASS_UNSIGNED, INTEGER_OPS, "|u1", "U8"},
    [TSR_BOOL] = {TSR_BOOL, "bool", 1, TSR_CLASS_BOOL, BOOL_OPS, "|b1", "BOOL"},
    [TSR_C64] = {TSR_C64, "c64", 8, TSR_CLASS_COMPLEX, COMPLEX_OPS, "<c8", "C64"},
    [TSR_C128] = {TSR_C128, "c128", 16, TSR_CLASS_COMPLEX, COMPLEX_OPS, "<c16", NULL},
};

const tsr_dtype_info *tsr_dtype_get(tsr_dtype dtype)
{
    return dtype > TSR_DTYPE_NONE && dtype < TSR_DTYPE_END ? &table[dtype] : NULL;
}

tsr_status tsr_dtype_parse(const char *name, tsr_dtype *out)
{
    char known[256];
    tsr_text list = {known, sizeof known, 0};
    if (!name || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtype_parse: %s is NULL", name ? "out" : "name");
    for (int i = TSR_DTYPE_NONE + 1; i < TSR_DTYPE_END; i++) {
        if (strcmp(name, table[i].name) == 0) {
            *out = (tsr_dtype)i;
            return TSR_OK;
        }
        tsr_text_append(&list, " %s", table[i].name);
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "there is no dtype \"%.64s\"; known are%s", name, known);
}

size_t tsr_dtype_bytes(tsr_dtype dtype)
{
    const tsr_dtype_info *info = tsr_dtype_get(dtype);
    return info ? info->bytes : 0;
}

const char *tsr_dtype_name(tsr_dtype dtype)
{
    const tsr_dtype_info *info = tsr_dtype_get(dtype);
    return info ? info->name : "none";
}

const char *tsr_reduce_op_name(tsr_reduce_op op)
{
    static const char *const names[TSR_REDUCE_OP_END] = {
        [TSR_SUM] = "sum", [TSR_AVG] = "avg", [TSR_MIN] = "min", [TSR_MAX] = "max", [TSR_PROD] = "prod"};
    return (unsigned)op < TSR_REDUCE_OP_END ? names[op] : "none";
}
