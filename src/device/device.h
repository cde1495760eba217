/** Finds the operation table of a tsr_device, and works through it. */
#ifndef TSR_DEVICE_DEVICE_H
#define TSR_DEVICE_DEVICE_H

#include <tessera/context.h>
#include <tessera/sys/device.h>

#include <stdbool.h>

/** What a call of a device needs: its table, the table's self and the device's index. */
typedef struct tsr_device_ops {
    const tsr_device_table *table;
    void *self;
    int index;
} tsr_device_ops;

/** The table of a device; the host's has the kernels that the context chose. `context` may be NULL:
 * the defaults. Never fails; cheap enough for hot paths. */
tsr_device_ops tsr_device_resolve(const tsr_context *context, tsr_device device);

/** Writes "host" or "cuda:1" to `text`, which has room for 64 bytes, and returns `text`. */
const char *tsr_device_print(tsr_device device, char *text);

/** False if the device has no driver, as the host, but its index is not 0 or the stream is not
 * NULL; else true. */
static inline bool tsr_host_is_meant(tsr_device device, tsr_stream stream)
{
    return device.driver || ((uintptr_t)(unsigned)device.index | (uintptr_t)stream) == 0;
}

/** Returns TSR_ERROR_ARGUMENT, for a device and stream for which tsr_host_is_meant() is false.
 * `name`, a tensor or a call, begins the sentence. */
tsr_status tsr_refuse_host(const char *name, tsr_device device, tsr_stream stream);

/** Waits until a stream is done; a device without streams needs no wait. Returns `status`, the
 * result so far, with its sentence if it is a failure; else the result of the wait. */
tsr_status tsr_device_settle(const tsr_device_ops *ops, tsr_stream stream, tsr_status status);

/** Copies the elements of `from` to `to`, of the same shape and dtype; both are on the device of
 * `ops` and do not overlap. */
tsr_status tsr_device_copy_tensor(const tsr_device_ops *ops, const tsr_tensor *from, const tsr_tensor *to,
                                  tsr_stream stream);

/** Writes the element that changes nothing in a Partial: 1 (1+0i) for prod, else -0.0 (0 for
 * integers and bool). `value` has room for 16 bytes. */
void tsr_dtype_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value);

/** Writes tsr_dtype_identity() to every element of a tensor that is on the device of `ops`. */
tsr_status tsr_device_fill_identity(const tsr_device_ops *ops, const tsr_tensor *tensor, tsr_reduce_op op,
                                    tsr_stream stream);

#endif
