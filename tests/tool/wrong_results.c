/* Preloaded: makes moves on the host go wrong. Moves of the dtype that TEST_WRONG_DTYPE names get a
 * wrong first element on every rank; plans for the dtype that TEST_REFUSED_DTYPE names are refused
 * on every rank. Where TEST_WRONG_OPS is "forward" or "backward", results or first gradients of ops
 * of f32 get a wrong first element. */
#include <tessera/ops.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef tsr_status execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                           void *workspace, size_t workspace_bytes, tsr_stream stream);
typedef tsr_status redistribute(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream);
typedef tsr_status call_into(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                             const tsr_dtensor *const *operands, tsr_dtensor *const *results);
typedef tsr_status backward(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                            tsr_dtensor **const *wanted);

static int holds_any(const tsr_tensor *t)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] == 0)
            return 0;
    return 1;
}

static int is_dtype(const char *variable, const tsr_tensor *t)
{
    const char *const name = getenv(variable);
    return name && strcmp(tsr_dtype_name(t->dtype), name) == 0;
}

static tsr_status spoil(tsr_status status, const tsr_tensor *result)
{
    if (status == TSR_OK && is_dtype("TEST_WRONG_DTYPE", result) && holds_any(result))
        *(unsigned char *)result->data ^= 1;
    return status;
}

tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                            void *workspace, size_t workspace_bytes, tsr_stream stream)
{
    execute *real;
    if (is_dtype("TEST_REFUSED_DTYPE", dst))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "TEST_REFUSED_DTYPE is %s", tsr_dtype_name(dst->dtype));
    *(void **)&real = dlsym(RTLD_NEXT, "tsr_plan_execute");
    return spoil(real(plan, comm, src, dst, workspace, workspace_bytes, stream), dst);
}

tsr_status tsr_redistribute_into(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream)
{
    redistribute *real;
    *(void **)&real = dlsym(RTLD_NEXT, "tsr_redistribute_into");
    const tsr_status status = real(x, y, stream);
    const tsr_tensor result = tsr_dtensor_to_local(y);
    return spoil(status, &result);
}

static void spoil_op(const char *pass, const tsr_dtensor *result)
{
    const char *const given = getenv("TEST_WRONG_OPS");
    if (!given || strcmp(given, pass) != 0)
        return;
    const tsr_tensor local = tsr_dtensor_to_local(result);
    if (holds_any(&local))
        *(float *)local.data += 100;
}

tsr_status tsr_op_call_into(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    call_into *real;
    *(void **)&real = dlsym(RTLD_NEXT, "tsr_op_call_into");
    const tsr_status status = real(op, count, attributes, operands, results);
    if (status == TSR_OK)
        spoil_op("forward", results[0]);
    return status;
}

tsr_status tsr_op_backward(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                           const tsr_dtensor *const *operands, const tsr_dtensor *gradient, tsr_dtensor **const *wanted)
{
    backward *real;
    *(void **)&real = dlsym(RTLD_NEXT, "tsr_op_backward");
    const tsr_status status = real(op, count, attributes, operands, gradient, wanted);
    if (status == TSR_OK)
        spoil_op("backward", *wanted[0]);
    return status;
}
