/**
 * @file
 * A view of a tensor's memory: a plain value that owns nothing. DLPack's DLTensor is the nearest
 * relative.
 */
#ifndef TESSERA_TENSOR_H
#define TESSERA_TENSOR_H

#include <tessera/dtype.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of device, made from an operation table (sys/device.h). NULL stands for the host. */
typedef struct tsr_device_driver tsr_device_driver;

/**
 * A device. The host is {NULL, 0}, and so is a zeroed value. A host with another index is refused.
 */
typedef struct tsr_device {
    const tsr_device_driver *driver;
    int index;
} tsr_device;

/** An in-order queue of a device (a cudaStream_t for CUDA); NULL is the device's default stream.
 * The host has no other stream and refuses one; its calls are done on return. tessera.h says what
 * streams order. */
typedef void *tsr_stream;

/** A view of a tensor. Strides are in elements, not bytes, and not negative. A destination's
 * strides must not make its elements overlap (tsr_tensor_overlaps()). */
typedef struct tsr_tensor {
    void *data;
    tsr_dtype dtype;
    tsr_device device;
    int ndim; /**< 0 for a scalar */
    int64_t shape[TSR_MAX_DIMS];
    int64_t strides[TSR_MAX_DIMS];
} tsr_tensor;

/** The host: {NULL, 0}. */
TSR_API tsr_device tsr_device_host(void);

/** A contiguous (row-major) host tensor over `data`, which is borrowed; `shape` may be NULL if
 * `ndim` is 0. Checks nothing: the call that takes the tensor does. */
TSR_API tsr_tensor tsr_tensor_contiguous(void *data, tsr_dtype dtype, int ndim,
                                         const int64_t *shape);

/** The number of elements: the product of the shape. TSR_ERROR_ARGUMENT: ndim out of range, a
 * negative size, or more than INT64_MAX bytes. */
TSR_API tsr_status tsr_tensor_count(const tsr_tensor *tensor, int64_t *count);

/** 1 if the elements lie in row-major order without gaps, else 0. Strides of dims of size 1 do not
 * matter; an empty tensor is contiguous. */
TSR_API int tsr_tensor_is_contiguous(const tsr_tensor *tensor);

/**
 * 1 if by its strides two elements of the tensor share memory, so that it may be read but not
 * written; else 0. Example: in 4x4 with strides 2,1, element (0,2) is element (1,0). Exact for all
 * strides that programs are known to use, negative ones too. It says 1 without proof where the
 * search over integers would take longer than some milliseconds, and where elements lie 2^61
 * elements apart. Host arithmetic; any thread.
 */
TSR_API int tsr_tensor_overlaps(const tsr_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
