/** From a tsr_device to the table that does the work. */
#ifndef TSR_DEVICE_DEVICE_H
#define TSR_DEVICE_DEVICE_H

#include <stdbool.h>
#include <tessera/context.h>
#include <tessera/sys/device.h>

/** A table, its self and the index: what calls go through. */
typedef struct tsr_device_ops {
    const tsr_device_table *table;
    void *self;
    int index;
} tsr_device_ops;

/** The host's entry honours the kernels that the context chose. Never fails; cheap enough for hot paths. */
tsr_device_ops tsr_device_resolve(const tsr_context *context, tsr_device device);

/** "host", or "cuda:1". `text` has room for 64 bytes. */
const char *tsr_device_print(tsr_device device, char *text);

static inline bool tsr_device_same(tsr_device a, tsr_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

/** False of what looks like the host and is not: the host has the index 0, and no stream but NULL. True of all other devices. */
static inline bool tsr_host_is_meant(tsr_device device, tsr_stream stream)
{
    return device.driver || ((uintptr_t)(unsigned)device.index | (uintptr_t)stream) == 0;
}

/** TSR_ERROR_ARGUMENT for what tsr_host_is_meant() says no to. `name`: of the tensor, or of the call, that brings it. */
tsr_status tsr_refuse_host(const char *name, tsr_device device, tsr_stream stream);

/** Waits until a stream is done; where calls are done on return, it is. `status` is how things went so far: a failure keeps its sentence.
 */
tsr_status tsr_device_settle(const tsr_device_ops *ops, tsr_stream stream, tsr_status status);

/** The bytes of -0.0 (0 for integers and bool) for sum, or of 1 (1+0i) for prod: what ranks hold that add nothing to a Partial. `value` has
 * 16 bytes. */
void tsr_dtype_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value);

/** Writes tsr_dtype_identity() to every element of a tensor that is on the device of `ops`. */
tsr_status tsr_device_fill_identity(const tsr_device_ops *ops, const tsr_tensor *tensor, tsr_reduce_op op, tsr_stream stream);

#endif
