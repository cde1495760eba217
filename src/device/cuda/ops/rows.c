#include "device/cuda/ops/rows.h"

#include "device/cuda/batch.h"
#include "device/cuda/launch.h"
#include "device/cuda/ops/work.h"
#include "device/cuda/reduction.h"

#include <tessera/sys/ops.h>

#include <string.h>

/* Per name: the op that combines rows. */
static const struct {
    const char *name;
    bool copies, divides;
    tsr_reduce_op op;
} lists[] = {{"rows_assign", true, false, TSR_SUM},
             {"rows_add", false, false, TSR_SUM},
             {"rows_mean", false, true, TSR_SUM},
             {"rows_max", false, false, TSR_MAX}};

static int find_list(const char *name)
{
    for (int i = 0; i < (int)(sizeof lists / sizeof *lists); i++)
        if (strcmp(lists[i].name, name) == 0)
            return i;
    return -1;
}

bool tsr_cuda_lists_rows(const struct tsr_kernel_call *call)
{
    return find_list(call->op) >= 0;
}

bool tsr_cuda_takes_rows(const struct tsr_kernel_call *call)
{
    const int list = find_list(call->op);
    const tsr_tensor *const rows = &call->outputs[0];
    return rows->shape[1] <= TSR_CUDA_UNITS &&
           (lists[list].copies || tsr_dtype_get(rows->dtype)->reduce_ops & 1u << lists[list].op);
}

static int log_of(size_t bytes)
{
    int log = 0;
    while ((size_t)1 << log < bytes)
        log++;
    return log;
}

tsr_status tsr_cuda_combine_rows(const tsr_cuda *cuda, const struct tsr_kernel_call *call, tsr_stream stream)
{
    const int list = find_list(call->op);
    const tsr_tensor *const rows = &call->outputs[0];
    const int64_t count = rows->shape[0], length = rows->shape[1];
    tsr_cuda_rows given = {.targets = call->inputs[0].data,
                           .starts = call->inputs[1].data,
                           .sources = call->inputs[2].data,
                           .divides = lists[list].divides,
                           .keeps = call->attributes[0].integer != 0,
                           .op = tsr_cuda_op_of(lists[list].op, rows->dtype),
                           .log_width = log_of(tsr_dtype_bytes(rows->dtype))};
    const tsr_cuda_kernel kernel =
        lists[list].copies ? TSR_CUDA_COPY_ROWS : TSR_CUDA_COMBINE_ROWS + tsr_cuda_number_of(rows->dtype);
    if (length == 0)
        return TSR_OK;
    given.by = tsr_cuda_make_divisor((uint32_t)length);
    /* As many rows at once as a kernel can number. */
    const int64_t most = TSR_CUDA_UNITS / length;
    for (int64_t first = 0; first < count; first += most) {
        void *arguments[] = {&given};
        const int64_t units = (count - first < most ? count - first : most) * length;
        given.units = (uint32_t)units;
        TSR_TRY(tsr_cuda_launch(cuda, kernel, (uint32_t)((units + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS), arguments,
                                stream));
        given.targets += most;
        given.starts += most;
    }
    return TSR_OK;
}
