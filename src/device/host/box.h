/** Boxes in the form that copy kernels take: as few dims as possible, in the memory order of the
 * destination, strides in bytes. Pure. */
#ifndef TSR_DEVICE_HOST_BOX_H
#define TSR_DEVICE_HOST_BOX_H

#include <tessera/sys/device.h>

#include <stdbool.h>

/** The largest element, in bytes, that kernels move as a whole; smaller elements are powers of two
 * too. */
#define TSR_ELEMENT_BYTES 16

/**
 * `run` bytes that are contiguous in source and destination, repeated over `ndim` >= 2 dims,
 * outermost first. No outer dim can be merged with its neighbour. If runs are single elements, and
 * source and destination have different innermost dims, the source's innermost dim is the second
 * last, so that the two last dims are the plane to transpose.
 */
typedef struct tsr_box {
    size_t run;
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst[TSR_MAX_DIMS], src[TSR_MAX_DIMS];
} tsr_box;

/** True if kernels move `run` bytes as one element. */
static inline bool tsr_box_run_is_element(size_t run)
{
    return run <= TSR_ELEMENT_BYTES && (run & (run - 1)) == 0;
}

/** Brings a copy into this form. False: there is nothing to copy, and `out` is unspecified. */
bool tsr_box_normalise(const tsr_box_copy *copy, tsr_box *out);

/** True, with the number of bytes, if source and destination are both contiguous and row-major: a
 * cheap test before tsr_box_normalise(). */
bool tsr_box_is_contiguous(const tsr_box_copy *copy, size_t *bytes);

/** How many bytes the copy writes. */
static inline size_t tsr_box_bytes(const tsr_box_copy *copy)
{
    size_t bytes = copy->element_bytes;
    for (int d = 0; d < copy->ndim; d++)
        bytes *= (size_t)copy->shape[d];
    return bytes;
}

#endif
