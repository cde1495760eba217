/**
 * @file
 * Tensors from and to DLPack, the exchange format of NumPy, PyTorch, JAX, TVM and others, without a
 * copy.
 *
 * DLPack's own header is not needed here: its structs are declared, not defined. Versions 1.0 to
 * 1.3 are read and 1.0 is written; the older form without a version is read and written too. None
 * of these calls communicates; any thread.
 */
#ifndef TESSERA_DLPACK_H
#define TESSERA_DLPACK_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** What a tensor of another framework is here. */
typedef struct tsr_dlpack_view {
    tsr_tensor tensor; /**< borrows the other framework's memory */
    int read_only;     /**< the producer asks that nothing is written */
    int copied;        /**< the producer has made a copy for this exchange */
} tsr_dlpack_view;

/**
 * A view of a DLTensor: a plain struct that owns nothing, as calls of TVM-FFI pass and DLPack's C
 * exchange functions write. `dl_tensor` points to one; the view is valid as long as its memory.
 *
 * `driver` is the device that memory of CUDA is on, with the index that DLPack gives (NULL: there
 * is none, and such memory is refused). Pinned memory of CUDA counts as the host's; memory that
 * CUDA manages counts as the device's. Missing strides mean row-major order. Strides of dims of
 * size 0 or 1 are not looked at.
 *
 * TSR_ERROR_UNSUPPORTED: a dtype or device that is not here, more dims than TSR_MAX_DIMS, negative
 * strides, elements that are not aligned to their size. TSR_ERROR_ARGUMENT: a negative size, more
 * than 2^63 - 1 bytes, elements without memory, a pointer that is NULL. The sentence says which.
 */
TSR_API tsr_status tsr_tensor_from_dltensor(const void *dl_tensor, const tsr_device_driver *driver,
                                            tsr_tensor *out);

/** tsr_tensor_from_dltensor() of a managed tensor, which stays the caller's: after the last use of
 * the view, give it back by tsr_dlpack_release(). Nothing is marked as read-only or copied. */
TSR_API tsr_status tsr_tensor_from_dlpack(const struct DLManagedTensor *managed,
                                          const tsr_device_driver *driver, tsr_dlpack_view *out);

/** tsr_tensor_from_dlpack() of the form with a version. TSR_ERROR_UNSUPPORTED also for another
 * major version than 1, of which only the release may be called. */
TSR_API tsr_status tsr_tensor_from_dlpack_versioned(const struct DLManagedTensorVersioned *managed,
                                                    const tsr_device_driver *driver,
                                                    tsr_dlpack_view *out);

/** Give a managed tensor back to its producer; NULL is fine. */
TSR_API void tsr_dlpack_release(struct DLManagedTensor *managed);
/** tsr_dlpack_release() of the form with a version. */
TSR_API void tsr_dlpack_release_versioned(struct DLManagedTensorVersioned *managed);

/**
 * A view of a Python object that offers DLPack's C exchange functions, such as PyTorch's tensors.
 * `exchange_api` is the table that the object's type has in the capsule
 * `__dlpack_c_exchange_api__`; `object` is the PyObject. The caller holds Python's lock, and the
 * object as long as the view is used. TSR_ERROR_UNSUPPORTED: a table of another major version, or
 * without that function. TSR_ERROR_ARGUMENT: the function fails, and Python has its exception.
 */
TSR_API tsr_status tsr_tensor_from_exchange(const void *exchange_api, void *object,
                                            const tsr_device_driver *driver, tsr_tensor *out);

/**
 * Lends a tensor's memory: `*out` becomes a managed tensor, in memory of `context` (NULL: of a new
 * one with the defaults, which takes longer), which it holds. Its consumer calls its deleter once,
 * from any thread. `release` (NULL: nothing) is then called with `user`; until then the memory must
 * stay. Devices are the host and one whose driver is called "cuda". TSR_ERROR_UNSUPPORTED: another
 * device. TSR_ERROR_ARGUMENT: a shape or dtype that tsr_tensor_count() refuses. TSR_ERROR_MEMORY.
 * On an error `release` is not called.
 */
TSR_API tsr_status tsr_tensor_to_dlpack(tsr_context *context, const tsr_tensor *tensor,
                                        void (*release)(void *user), void *user,
                                        struct DLManagedTensor **out);

/** tsr_tensor_to_dlpack() in the form with a version; with `read_only` consumers must not write. */
TSR_API tsr_status tsr_tensor_to_dlpack_versioned(tsr_context *context, const tsr_tensor *tensor,
                                                  int read_only, void (*release)(void *user),
                                                  void *user,
                                                  struct DLManagedTensorVersioned **out);

/** Lends this rank's local tensor. The managed tensor holds a reference to `x` until its deleter is
 * called. Work that a device still has to do on it is not waited for. Errors as for
 * tsr_tensor_to_dlpack(). */
TSR_API tsr_status tsr_dtensor_to_dlpack(tsr_dtensor *x, struct DLManagedTensor **out);

/** tsr_dtensor_to_dlpack() in the form with a version. */
TSR_API tsr_status tsr_dtensor_to_dlpack_versioned(tsr_dtensor *x, int read_only,
                                                   struct DLManagedTensorVersioned **out);

#ifdef __cplusplus
}
#endif

#endif
