#include "ops/kernels/lines/axes.h"

#include "ops/kernels/reduce.h"

#include <string.h>

#define CHUNK 512

void tsr_axes_begin(tsr_axes *axes, int count, const tsr_tensor *const *tensors)
{
    memset(axes, 0, sizeof *axes);
    axes->tensor_count = count;
    for (int i = 0; i < count; i++)
        axes->at[i] = tensors[i]->data;
}

void tsr_axes_add(tsr_axes *axes, const tsr_tensor *const *tensors, const int *dims, int64_t size)
{
    for (int i = 0; i < axes->tensor_count; i++)
        axes->step[axes->count][i] =
            dims[i] < 0 ? 0 : tensors[i]->strides[dims[i]] * (int64_t)tsr_dtype_bytes(tensors[i]->dtype);
    axes->size[axes->count++] = size;
}

void tsr_axes_split(int count, const tsr_tensor *const *tensors, const bool *marked, bool keep, tsr_axes *kept,
                    tsr_axes *reduced)
{
    int used = 0;
    tsr_axes_begin(kept, count, tensors);
    tsr_axes_begin(reduced, count, tensors);
    for (int dim = 0; dim < tensors[1]->ndim; dim++) {
        const int dims[TSR_AXES_TENSORS] = {marked[dim] ? -1 : used, dim, dim, dim};
        tsr_axes_add(marked[dim] ? reduced : kept, tensors, dims, tensors[1]->shape[dim]);
        used += !marked[dim] || keep;
    }
}

void tsr_reductions_begin(tsr_reductions *r, int count, const tsr_tensor *const *tensors,
                          const tsr_attribute *attributes)
{
    bool marked[TSR_MAX_DIMS];
    tsr_reduce_mark(attributes[0].count, attributes[0].list, tensors[1]->ndim, marked);
    tsr_axes_split(count, tensors, marked, attributes[1].integer != 0, &r->kept, &r->outer);
    r->count = tsr_axes_count(&r->kept);
    r->elements = tsr_axes_count(&r->outer);
    r->length = 1;
    memset(r->step, 0, sizeof r->step);
    if (r->outer.count == 0)
        return;
    const int last = --r->outer.count;
    r->length = r->outer.size[last];
    for (int i = 0; i < count; i++)
        r->step[i] = r->outer.step[last][i] / (int64_t)tsr_dtype_bytes(tensors[i]->dtype);
}

void tsr_axes_lines(tsr_axes *axes, int count, const tsr_tensor *const *tensors, int dim)
{
    tsr_axes_begin(axes, count, tensors);
    for (int k = 0; k < tensors[0]->ndim; k++) {
        const int dims[TSR_AXES_TENSORS] = {k, k, k, k};
        if (k != dim)
            tsr_axes_add(axes, tensors, dims, tensors[0]->shape[k]);
    }
}

int64_t tsr_axes_count(const tsr_axes *axes)
{
    int64_t count = 1;
    for (int i = 0; i < axes->count; i++)
        count *= axes->size[i];
    return count;
}

int64_t tsr_axes_count_lines(const tsr_tensor *tensor, int dim)
{
    int64_t count = 1;
    for (int k = 0; k < tensor->ndim; k++)
        count *= k == dim ? 1 : tensor->shape[k];
    return count;
}

bool tsr_axes_next(tsr_axes *axes)
{
    for (int k = axes->count - 1; k >= 0; k--) {
        const bool more = ++axes->index[k] < axes->size[k];
        for (int i = 0; i < axes->tensor_count; i++)
            axes->at[i] += (more ? 1 : 1 - axes->size[k]) * axes->step[k][i];
        if (more)
            return true;
        axes->index[k] = 0;
    }
    return false;
}

/* The dtype of numbers that elements are read as. */
static tsr_dtype wide(tsr_dtype dtype)
{
    return tsr_dtype_get(dtype)->kind == TSR_CLASS_FLOAT ? TSR_F64 : TSR_I64;
}

void tsr_numbers_read(const tsr_pointwise_kernels *kernels, tsr_dtype dtype, const char *from, int64_t stride,
                      int64_t n, tsr_number *to)
{
    _Alignas(64) char array[CHUNK * sizeof(tsr_number)];
    const tsr_dtype computed = tsr_pointwise_computes_in(dtype);
    const int64_t bytes = (int64_t)tsr_dtype_bytes(dtype);
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t count = n - done < CHUNK ? n - done : CHUNK;
        kernels->gather[dtype](from + done * stride * bytes, array, count, stride);
        kernels->convert[computed][wide(dtype)]((const void *const[]){array, NULL, NULL}, to + done, count, 0);
    }
}

void tsr_numbers_write(const tsr_pointwise_kernels *kernels, tsr_dtype dtype, const tsr_number *from, int64_t n,
                       char *to, int64_t stride)
{
    _Alignas(64) char array[CHUNK * sizeof(tsr_number)];
    const tsr_dtype computed = tsr_pointwise_computes_in(dtype);
    const int64_t bytes = (int64_t)tsr_dtype_bytes(dtype);
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t count = n - done < CHUNK ? n - done : CHUNK;
        kernels->convert[wide(dtype)][computed]((const void *const[]){from + done, NULL, NULL}, array, count, 0);
        kernels->scatter[dtype](array, to + done * stride * bytes, count, stride);
    }
}
