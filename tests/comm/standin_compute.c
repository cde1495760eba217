/* The results of collectives. Floating-point values are reduced in an order that callers do not
 * expect, since NCCL promises none. */
#include "standin_comm.h"

#include <tessera/sys/device.h>

#include <stdlib.h>
#include <string.h>

#define DEFINE_COMBINE(name, type, wide)                                                                               \
    static void name(void *to, const void *from, size_t count, ncclRedOp_t op)                                         \
    {                                                                                                                  \
        type *a = to;                                                                                                  \
        const type *b = from;                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (op == ncclMin || op == ncclMax)                                                                        \
                a[i] = (op == ncclMin) == (b[i] < a[i]) ? b[i] : a[i];                                                 \
            else                                                                                                       \
                a[i] = (type)(op == ncclProd ? (wide)a[i] * (wide)b[i] : (wide)a[i] + (wide)b[i]);                     \
        }                                                                                                              \
    }

DEFINE_COMBINE(combine_i8, int8_t, uint64_t)
DEFINE_COMBINE(combine_u8, uint8_t, uint64_t)
DEFINE_COMBINE(combine_i32, int32_t, uint64_t)
DEFINE_COMBINE(combine_u32, uint32_t, uint64_t)
DEFINE_COMBINE(combine_i64, int64_t, uint64_t)
DEFINE_COMBINE(combine_u64, uint64_t, uint64_t)
DEFINE_COMBINE(combine_f64, double, double)

typedef void combine(void *to, const void *from, size_t count, ncclRedOp_t op);

static combine *const combines[ncclNumTypes] = {
    [ncclInt8] = combine_i8,    [ncclUint8] = combine_u8,  [ncclInt32] = combine_i32,
    [ncclUint32] = combine_u32, [ncclInt64] = combine_i64, [ncclUint64] = combine_u64,
};

static const tsr_dtype floats[ncclNumTypes] = {
    [ncclFloat64] = TSR_F64, [ncclFloat32] = TSR_F32, [ncclFloat16] = TSR_F16, [ncclBfloat16] = TSR_BF16};

static void convert(void *to, tsr_dtype to_dtype, const void *from, tsr_dtype from_dtype, size_t count)
{
    void *self;
    const tsr_device_table *host = tsr_device_driver_table(NULL, &self);
    host->convert(self, 0, to, to_dtype, from, from_dtype, (int64_t)count, NULL);
}

/* Reduces from the last rank down, rounding after each step. */
static void reduce_floats(char *out, standin_op *const *ops, int ranks, size_t offset, size_t count)
{
    const tsr_dtype dtype = floats[ops[0]->type];
    double *sum = calloc(count + 1, sizeof *sum), *term = calloc(count + 1, sizeof *term);
    for (int r = ranks - 1; r >= 0; r--) {
        convert(r == ranks - 1 ? sum : term, TSR_F64, ops[r]->send + offset, dtype, count);
        if (r < ranks - 1)
            combine_f64(sum, term, count, ops[0]->op);
        convert(out, dtype, sum, TSR_F64, count);
        convert(sum, TSR_F64, out, dtype, count);
    }
    for (size_t i = 0; i < count && ops[0]->op == ncclAvg; i++)
        sum[i] /= ranks;
    convert(out, dtype, sum, TSR_F64, count);
    free(sum);
    free(term);
}

static void reduce(char *out, standin_op *const *ops, int ranks, size_t offset, size_t count)
{
    const ncclDataType_t type = ops[0]->type;
    if (floats[type] != TSR_DTYPE_NONE) {
        reduce_floats(out, ops, ranks, offset, count);
        return;
    }
    if (!combines[type] || ops[0]->op == ncclAvg) {
        standin_complain("the stand-in does not reduce type %d with op %d", (int)type, (int)ops[0]->op);
        return;
    }
    memcpy(out, ops[ranks - 1]->send + offset, count * standin_type_bytes(type));
    for (int r = ranks - 2; r >= 0; r--)
        combines[type](out, ops[r]->send + offset, count, ops[0]->op);
}

/* Computes all results, one rank's block after the other, before any is written, since operations
 * may be in place. */
static char *results(const standin_clique *clique, standin_op *const *ops, size_t bytes)
{
    const size_t n = (size_t)clique->ranks;
    char *all = malloc(n * bytes + 1);
    for (size_t r = 0; r < n; r++)
        switch (ops[0]->kind) {
        case STANDIN_ALL_GATHER:
            memcpy(all + r * bytes, ops[r]->send, bytes);
            break;
        case STANDIN_REDUCE_SCATTER:
            reduce(all + r * bytes, ops, clique->ranks, r * bytes, ops[0]->count);
            break;
        case STANDIN_ALL_REDUCE:
            reduce(all + r * bytes, ops, clique->ranks, 0, ops[0]->count);
            break;
        default:
            memcpy(all + r * bytes, ops[ops[0]->peer]->send, bytes);
        }
    return all;
}

void standin_compute(standin_clique *clique, standin_op *const *ops)
{
    const size_t n = (size_t)clique->ranks, bytes = ops[0]->count * standin_type_bytes(ops[0]->type);
    char *all = results(clique, ops, bytes);
    for (size_t r = 0; r < n; r++)
        if (ops[0]->kind == STANDIN_ALL_GATHER)
            memcpy(ops[r]->receive, all, n * bytes);
        else
            memcpy(ops[r]->receive, all + r * bytes, bytes);
    free(all);
}
