/**
 * @file
 * Tensors from and to DLPack, the exchange format of NumPy, PyTorch, JAX, TVM and others, without a
 * copy.
 *
 * DLPack's own header is not needed here: its structs are declared, not defined. Versions 1.0 to
 * 1.3 are read and 1.0 is written; the older form without a version is read and written too. The C
 * exchange functions of 1.3 are called and offered. None of these calls communicates; any thread.
 */
#ifndef TESSERA_DLPACK_H
#define TESSERA_DLPACK_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;
struct DLPackExchangeAPI;

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
 * than 2^63 - 1 bytes, elements without memory or beyond the last address, a pointer that is NULL.
 * The sentence says which.
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
 * Lends a tensor's memory: `*out` becomes a managed tensor, in memory of `context` (NULL: of the C
 * library), which it holds. Its consumer calls its deleter once, from any thread. `release` (NULL:
 * nothing) is then called with `user`; until then the memory must stay. Devices are the host and
 * one whose driver is called "cuda". TSR_ERROR_UNSUPPORTED: another device. TSR_ERROR_ARGUMENT: a
 * shape or dtype that tsr_tensor_count() refuses. TSR_ERROR_MEMORY. On an error `release` is not
 * called.
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

/** A tensor of any framework with a share of its memory: what the functions of
 * tsr_dlpack_exchange_api() call an object. Reference-counted and immutable; any thread. */
typedef struct tsr_dlpack_object tsr_dlpack_object;

/**
 * Takes over a managed tensor, whose deleter is called with the object's last reference. Tensors of
 * any dtype, and of devices without a driver here, can be held. Memory is of `context` (NULL: of
 * the C library), which the object holds. TSR_ERROR_UNSUPPORTED: another major version than 1, or
 * more dims than TSR_MAX_DIMS. TSR_ERROR_ARGUMENT: no shape. TSR_ERROR_MEMORY. On an error the
 * managed tensor stays the caller's.
 */
TSR_API tsr_status tsr_dlpack_object_create(tsr_context *context,
                                            struct DLManagedTensorVersioned *managed,
                                            tsr_dlpack_object **out);

/** An object of this rank's local tensor, which holds a reference to `x`. Errors as for
 * tsr_tensor_to_dlpack(). */
TSR_API tsr_status tsr_dlpack_object_from_dtensor(tsr_dtensor *x, tsr_dlpack_object **out);

/** Adds a reference and returns `object`. */
TSR_API tsr_dlpack_object *tsr_dlpack_object_retain(tsr_dlpack_object *object);

/** Gives one reference back; NULL is fine. */
TSR_API void tsr_dlpack_object_destroy(tsr_dlpack_object *object);

/** A view of the object's tensor, valid as long as the object. Errors as for
 * tsr_tensor_from_dltensor(). */
TSR_API tsr_status tsr_dlpack_object_view(const tsr_dlpack_object *object,
                                          const tsr_device_driver *driver, tsr_dlpack_view *out);

/**
 * The table of DLPack 1.3's C exchange functions over tsr_dlpack_object: where the functions say
 * `py_object`, pass one. A binding whose objects hold a tsr_dlpack_object wraps these functions in
 * its own, which find it and set the language's error by tsr_status_message(), and puts a table of
 * those on its type (docs/dlpack.md). Static, and never NULL.
 *
 * - managed_tensor_allocator: contiguous memory of the host, not initialized. Other devices are
 *   refused. Errors have Python's kinds: MemoryError, ValueError, BufferError.
 * - managed_tensor_from_py_object_no_sync: the managed tensor holds a reference to the object. It
 *   is of version 1.3, and not marked as a copy, since others may be lent the same memory.
 * - managed_tensor_to_py_object_no_sync: tsr_dlpack_object_create() with context NULL.
 * - dltensor_from_py_object_no_sync: shape and strides are the object's.
 * - current_work_stream: NULL for the host and for CUDA, whose default stream calls without a
 *   stream work on. Other devices are refused.
 *
 * A failure is -1, with a sentence as for other calls; outputs are left alone.
 */
TSR_API const struct DLPackExchangeAPI *tsr_dlpack_exchange_api(void);

#ifdef __cplusplus
}
#endif

#endif
