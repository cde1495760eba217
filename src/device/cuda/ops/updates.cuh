/** The body of the kernels of optimizers' updates, with the host's bits. */
#ifndef TSR_DEVICE_CUDA_OPS_UPDATES_CUH
#define TSR_DEVICE_CUDA_OPS_UPDATES_CUH

#include "device/cuda/ops/pointwise.cuh"

/** A number without dims, of the type of the computation; `otherwise` where there is none. */
template <typename T> TSR_BOTH T tsr_cuda_update_number(const unsigned char *at, T otherwise)
{
    return at ? *tsr_cuda_at<T>(at) : otherwise;
}

/** Updates w and the states m and v by the gradient g. */
template <typename T> TSR_BOTH void tsr_cuda_update_values(const tsr_cuda_update &given, T g, T *w, T *m, T *v)
{
    const T rate = tsr_cuda_update_number<T>(given.rate, 0), kept = tsr_cuda_update_number<T>(given.kept, 1);
    const T rest1 = (T)(1 - given.beta1), rest2 = (T)(1 - given.beta2), beta2 = (T)given.beta2;
    if (given.maximizes)
        g = -g;
    if (given.weight_decay != 0)
        g = g + (T)given.weight_decay * *w;
    switch (given.code) {
    case TSR_CUDA_UPDATE_MOMENTUM:
        *m = given.first && *given.first ? g : *m * (T)given.momentum + g * (T)(1 - given.dampening);
        *w = *w - (given.nesterov ? g + *m * (T)given.momentum : *m) * rate;
        break;
    case TSR_CUDA_UPDATE_ADAMW: {
        const T root = tsr_cuda_update_number<T>(given.root, 1), apart = g - *m;
        *m = rest1 < (T)0.5 ? *m + apart * rest1 : g - apart * (1 - rest1);
        *v = *v * beta2 + g * rest2 * g;
        *w = *w * kept - *m * rate / ((T)sqrt(*v) / root + (T)given.epsilon);
        break;
    }
    case TSR_CUDA_UPDATE_LION: {
        const T mixed = *m * (T)given.beta1 + g * rest1;
        *w = *w * kept - (mixed > 0 ? 1 : mixed < 0 ? -1 : mixed) * rate;
        *m = *m * beta2 + g * rest2;
        break;
    }
    default:
        *w = *w - g * rate;
    }
}

/** Updates one element, computed in T. */
template <typename T> TSR_BOTH void tsr_cuda_update_element(const tsr_cuda_update &given, uint32_t index)
{
    if (index >= given.units)
        return;
    int64_t at[TSR_CUDA_UPDATE_TENSORS] = {0};
    for (int d = 0; d < given.ndim; d++) {
        const uint32_t rest = d + 1 < given.ndim ? tsr_cuda_divide(given.by[d], index) : 0;
        const int64_t coordinate = index - rest * given.by[d].value;
#pragma unroll
        for (int i = 0; i < TSR_CUDA_UPDATE_TENSORS; i++)
            at[i] += coordinate * given.tensors[i].strides[d];
        index = rest;
    }
    T value[4] = {0, 0, 0, 0};
    const int operands = 2 + given.states;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < operands)
            value[i] = tsr_cuda_read<T>(given.tensors[i].data + at[i], given.tensors[i].storage);
    if (!given.finite || *given.finite)
        tsr_cuda_update_values<T>(given, value[1], &value[0], &value[2], &value[3]);
    value[1] = value[0];
#pragma unroll
    for (int i = 2; i < TSR_CUDA_UPDATE_TENSORS; i++)
        if (i >= operands && i - operands <= given.states)
            tsr_cuda_write<T>(given.tensors[i].data + at[i], given.tensors[i].storage, value[1 + i - operands]);
}

#endif
