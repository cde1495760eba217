/** Boxes as the copy kernels want them: fewest dims, in the order in which the destination lies in memory, strides in bytes. Pure. */
#ifndef TSR_DEVICE_HOST_BOX_H
#define TSR_DEVICE_HOST_BOX_H

#include <stdbool.h>
#include <tessera/sys/device.h>

/** The largest piece that the kernels move as one element; any power of two up to here is one. */
#define TSR_ELEMENT_BYTES 16

/**
 * `run` bytes that are contiguous in source and destination, repeated over `ndim` >= 2 dims, outermost first. No outer dim can be merged
 * with its neighbour. Where the runs are single elements and source and destination disagree about the innermost dim, the source's is
 * the last but one, so that the two last dims are the plane to transpose.
 */
typedef struct tsr_box {
    size_t run;
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst[TSR_MAX_DIMS], src[TSR_MAX_DIMS];
} tsr_box;

/** True if the kernels move `run` bytes as one element. */
static inline bool tsr_box_run_is_element(size_t run)
{
    return run <= TSR_ELEMENT_BYTES && (run & (run - 1)) == 0;
}

/** False if there is nothing to copy: `out` is then unspecified. */
bool tsr_box_normalise(const tsr_box_copy *copy, tsr_box *out);

/** True, with the bytes, if source and destination are both one row-major piece: the cheap test before all others. */
bool tsr_box_is_contiguous(const tsr_box_copy *copy, size_t *bytes);

/** All bytes that the box writes. */
static inline size_t tsr_box_bytes(const tsr_box_copy *copy)
{
    size_t bytes = copy->element_bytes;
    for (int d = 0; d < copy->ndim; d++)
        bytes *= (size_t)copy->shape[d];
    return bytes;
}

#endif
