/* The attributes of a call, read from XLA's frame and kept for all launches of an executable. */
#ifndef TSR_HOSTS_XLA_ATTRIBUTES_H
#define TSR_HOSTS_XLA_ATTRIBUTES_H

#include "ffi.h"

#include <tessera/context.h>

/* What a handler does; a bit of 1u << kind says which handlers take an attribute. */
typedef enum tsr_xla_kind {
    TSR_XLA_REDISTRIBUTE,
    TSR_XLA_ALL_REDUCE,
    TSR_XLA_ALL_GATHER,
    TSR_XLA_REDUCE_SCATTER,
    TSR_XLA_ALL_TO_ALL,
    TSR_XLA_COLUMN,
    TSR_XLA_COLUMN_BACKWARD,
    TSR_XLA_ROW,
    TSR_XLA_ROW_BACKWARD
} tsr_xla_kind;

typedef struct tsr_xla_numbers {
    int64_t count;
    int64_t *values; /* NULL: the attribute is not given */
} tsr_xla_numbers;

typedef struct tsr_xla_bytes {
    size_t count;
    void *data; /* NULL: the attribute is not given */
} tsr_xla_bytes;

/* Texts and lists that are not given are NULL. */
typedef struct tsr_xla_attributes {
    tsr_context *context; /* borrowed; allocates */
    char *mesh, *dims, *from, *to, *op, *x, *y, *dx, *dw, *db;
    tsr_xla_numbers devices, shape, x_shape, w_shape;
    int64_t axis, split_axis, concat_axis, timeout_ms;
    int64_t channel; /* -1: not given */
    tsr_xla_bytes plan;
} tsr_xla_attributes;

/* Copies the attributes of a frame for a handler of `kind`. After an error too they are freed by
 * tsr_xla_attributes_free(). */
tsr_status tsr_xla_attributes_read(const XLA_FFI_Attrs *attrs, tsr_xla_kind kind, tsr_context *context,
                                   tsr_xla_attributes *out);

void tsr_xla_attributes_free(tsr_xla_attributes *attributes);

#endif
