/**
 * The arguments of kernels: plain values that C fills in on the host and CUDA C++ reads, copied at
 * launch.
 *
 * A kernel works on *units* of 1, 2, 4, 8 or 16 bytes, numbered along a few dims, innermost first.
 * Indices have 31 bits, so that a division by a size is a multiplication and a shift; larger boxes
 * are cut into several.
 */
#ifndef TSR_DEVICE_CUDA_WORK_H
#define TSR_DEVICE_CUDA_WORK_H

#include <stdint.h>

/** The most units that one box may have. */
#define TSR_CUDA_UNITS (INT64_C(1) << 30)

/** Threads of a block, in every kernel. */
#define TSR_CUDA_THREADS 256

/** Units that a thread copies or fills; their loads are issued together. */
#define TSR_CUDA_UNROLL 4

/** Elements along each side of a tile through which planes are transposed; also the threads that
 * share a row of the tile. */
#define TSR_CUDA_TILE 32

/** A divisor below 2^31 with the numbers that tsr_cuda_divide() multiplies and shifts by. */
typedef struct tsr_cuda_divisor {
    uint32_t value, magic, shift;
} tsr_cuda_divisor;

/** A dim of a box; strides in bytes. */
typedef struct tsr_cuda_dim {
    uint32_t size;
    tsr_cuda_divisor by; /**< by `size`; for the two dims of a tiled plane, by the number of tiles along the dim */
    int64_t dst, src;
} tsr_cuda_dim;

/**
 * A box of a batch. Linear: it has `units` units of 1 << log_width bytes. Tiled: the destination is
 * contiguous along dim 0 and the source along dim 1, a unit is an element, and `units` counts
 * tiles, one per block.
 */
typedef struct tsr_cuda_box {
    unsigned char *dst;
    const unsigned char *src; /**< not read by fills */
    uint32_t first_block;     /**< how many blocks the boxes before it have */
    uint32_t units;
    uint16_t first_dim; /**< index of its first dim in the batch's `dim` */
    uint8_t ndim, log_width, tiled;
} tsr_cuda_box;

/** How many boxes and dims a small batch (4 KiB of arguments) and a large one (32 KiB) hold. */
#define TSR_CUDA_SMALL_BOXES 24
#define TSR_CUDA_SMALL_DIMS  95
#define TSR_CUDA_LARGE_BOXES 200
#define TSR_CUDA_LARGE_DIMS  770

typedef struct tsr_cuda_small_batch {
    uint32_t box_count, block_count;
    tsr_cuda_box box[TSR_CUDA_SMALL_BOXES];
    tsr_cuda_dim dim[TSR_CUDA_SMALL_DIMS];
} tsr_cuda_small_batch;

typedef struct tsr_cuda_large_batch {
    uint32_t box_count, block_count;
    tsr_cuda_box box[TSR_CUDA_LARGE_BOXES];
    tsr_cuda_dim dim[TSR_CUDA_LARGE_DIMS];
} tsr_cuda_large_batch;

/** The element of a fill, repeated to 16 bytes. */
typedef struct tsr_cuda_pattern {
    unsigned char bytes[16];
} tsr_cuda_pattern;

/** The op of a reduction. Signed and unsigned integers share kernels, so min and max of signed ones
 * are ops of their own. */
typedef enum tsr_cuda_op {
    TSR_CUDA_SUM,
    TSR_CUDA_PROD,
    TSR_CUDA_MIN,
    TSR_CUDA_MAX,
    TSR_CUDA_SIGNED_MIN,
    TSR_CUDA_SIGNED_MAX
} tsr_cuda_op;

#define TSR_CUDA_REDUCE_DIMS 8
/** 8 KiB of arguments: 333 operands in 2 dims. */
#define TSR_CUDA_REDUCE_WORDS 1000

/** A reduction without its operands. */
typedef struct tsr_cuda_reduce_head {
    uint32_t units;
    uint16_t src_count, dst_count;
    uint8_t op, ndim;
    uint8_t aligned; /**< every element lies at a multiple of its size */
    int64_t divisor;
    tsr_cuda_divisor by[TSR_CUDA_REDUCE_DIMS]; /**< divisors by the sizes, innermost dim first */
} tsr_cuda_reduce_head;

typedef struct tsr_cuda_reduce {
    tsr_cuda_reduce_head head;
    /** An operand is 1 + ndim words: its address, then its strides in bytes. Sources come first, in
     * rank order. */
    int64_t word[TSR_CUDA_REDUCE_WORDS];
} tsr_cuda_reduce;

/** The floating types, for conversions. */
typedef enum tsr_cuda_float {
    TSR_CUDA_F64,
    TSR_CUDA_F32,
    TSR_CUDA_F16,
    TSR_CUDA_BF16,
    TSR_CUDA_F8E4M3,
    TSR_CUDA_F8E5M2,
    TSR_CUDA_FLOAT_END
} tsr_cuda_float;

/** Elements that a thread converts. */
#define TSR_CUDA_CONVERT_RUN 8

typedef struct tsr_cuda_convert {
    unsigned char *dst;
    const unsigned char *src;
    int64_t count;
    uint8_t dst_type; /**< a tsr_cuda_float; the source's type is the kernel's */
    uint8_t aligned;  /**< both addresses are multiples of 16 */
} tsr_cuda_convert;

#endif
