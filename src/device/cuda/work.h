/**
 * What launches hand to kernels: plain values that C fills in on the host and CUDA C++ reads, copied at launch with the kernel's arguments.
 *
 * A kernel sees *units* of 1, 2, 4, 8 or 16 bytes, numbered along a few dims, innermost first. Indices have 31 bits, so that a division by
 * a size is a multiplication and a shift; what is larger comes as several boxes.
 */
#ifndef TSR_DEVICE_CUDA_WORK_H
#define TSR_DEVICE_CUDA_WORK_H

#include <stdint.h>

/** The most units that one box may have. */
#define TSR_CUDA_UNITS (INT64_C(1) << 30)

/** Threads of a block, in every kernel. */
#define TSR_CUDA_THREADS 256

/** Units that a thread copies or fills: loads go out together. */
#define TSR_CUDA_UNROLL 4

/** Elements along each side of the tiles through which planes are transposed, and threads that share a row of one. */
#define TSR_CUDA_TILE 32

/** A divisor below 2^31 as a multiplication: see tsr_cuda_divide(). */
typedef struct tsr_cuda_divisor {
    uint32_t value, magic, shift;
} tsr_cuda_divisor;

/** A dim of a box; strides in bytes. */
typedef struct tsr_cuda_dim {
    uint32_t size;
    tsr_cuda_divisor by; /**< the size; for the two dims of a tiled plane, the number of tiles along it */
    int64_t dst, src;
} tsr_cuda_dim;

/**
 * A box of a batch. Linear: `units` of 1 << log_width bytes. Tiled: dim 0 is the one along which the destination runs and dim 1 the
 * source, of units that are whole elements; `units` counts tiles, one a block.
 */
typedef struct tsr_cuda_box {
    unsigned char *dst;
    const unsigned char *src; /**< not read by fills */
    uint32_t first_block;     /**< blocks of the boxes before it */
    uint32_t units;
    uint16_t first_dim; /**< in the batch's list */
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

/** One element, repeated to 16 bytes. */
typedef struct tsr_cuda_pattern {
    unsigned char bytes[16];
} tsr_cuda_pattern;

/** What a reduction does; integers of both kinds share kernels, so their orders are told apart here. */
typedef enum tsr_cuda_op { TSR_CUDA_SUM, TSR_CUDA_PROD, TSR_CUDA_MIN, TSR_CUDA_MAX, TSR_CUDA_SIGNED_MIN, TSR_CUDA_SIGNED_MAX } tsr_cuda_op;

#define TSR_CUDA_REDUCE_DIMS 8
/** 8 KiB of arguments: 333 operands in 2 dims. */
#define TSR_CUDA_REDUCE_WORDS 1000

/** All but the operands. */
typedef struct tsr_cuda_reduce_head {
    uint32_t units;
    uint16_t src_count, dst_count;
    uint8_t op, ndim;
    uint8_t aligned; /**< every element lies at a multiple of its size */
    int64_t divisor;
    tsr_cuda_divisor by[TSR_CUDA_REDUCE_DIMS]; /**< the sizes, innermost first */
} tsr_cuda_reduce_head;

typedef struct tsr_cuda_reduce {
    tsr_cuda_reduce_head head;
    /** An operand is 1 + ndim words: its address, then its strides in bytes. Sources come first, in rank order. */
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
    uint8_t dst_type; /**< a tsr_cuda_float; the kernel says which the source's is */
    uint8_t aligned;  /**< both addresses are multiples of 16 */
} tsr_cuda_convert;

#endif
