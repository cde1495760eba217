/**
 * The host's kernels: one source, compiled once for each set of instructions, collected into one operation table each.
 *
 * Every file that includes this is compiled with TSR_KERNELS set to portable, avx2 or avx512, and what it shares with the others of its set
 * is named through KERNEL(). All sets give the same bits: elements are independent, each is reduced in rank order, and nothing is
 * contracted into fused multiply-adds.
 */
#ifndef TSR_DEVICE_HOST_KERNELS_H
#define TSR_DEVICE_HOST_KERNELS_H

#include "device/host/box.h"
#include "device/host/choose.h"
#include <stdbool.h>
#include <tessera/sys/device.h>

#define TSR_KERNEL_NAME_(name, kernels) tsr_##name##_##kernels
#define TSR_KERNEL_NAME(name, kernels)  TSR_KERNEL_NAME_(name, kernels)
#define KERNEL(name)                    TSR_KERNEL_NAME(name, TSR_KERNELS)

/** Elements at any address: tensors of files that are mapped need not be aligned. */
typedef float tsr_f32 __attribute__((aligned(1), may_alias));
typedef double tsr_f64 __attribute__((aligned(1), may_alias));
typedef uint16_t tsr_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t tsr_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t tsr_u64 __attribute__((aligned(1), may_alias));
typedef int16_t tsr_i16 __attribute__((aligned(1), may_alias));
typedef int32_t tsr_i32 __attribute__((aligned(1), may_alias));
typedef int64_t tsr_i64 __attribute__((aligned(1), may_alias));

/** `count` rows of `run` bytes each, from stride to stride in bytes. */
typedef struct tsr_rows {
    char *dst;
    const char *src;
    int64_t dst_stride, src_stride;
    size_t run;
    int64_t count;
} tsr_rows;

/** Copies rows of at least TSR_SHORTEST_RUN bytes. What streams wants a fence after it, here and below. */
void KERNEL(copy_rows)(const tsr_rows *rows, tsr_way way);

/** Copies the box, its rows in the ways that `stretch` says; NULL: all by ordinary stores. */
void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch);

/** `bytes` contiguous ones that the cache holds. `stream`: they bypass it where they are enough of them. */
void KERNEL(copy_run)(char *dst, const char *src, size_t bytes, bool stream);

/** `count` values of a narrow floating type to f32 (exact, NaN payloads unspecified), and back: rounded once to nearest even, NaN
 * canonical. Buffers do not overlap. */
typedef void tsr_widen(float *dst, const void *src, int64_t count);
typedef void tsr_narrow(void *dst, const float *src, int64_t count);

/** NULL for dtypes that are not narrow floats. */
tsr_widen *KERNEL(widen)(tsr_dtype dtype);
tsr_narrow *KERNEL(narrow)(tsr_dtype dtype);

/** dst = a + b for a narrow floating type, in f32, rounded once: the most common reduction in one pass. NULL likewise. */
typedef void tsr_add_pair(void *dst, const void *a, const void *b, int64_t count);
tsr_add_pair *KERNEL(add_pair)(tsr_dtype dtype);

/** Entries of the table. */
tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream);
tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);
tsr_status KERNEL(host_reduce)(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);
tsr_status KERNEL(host_convert)(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count,
                                tsr_stream stream);

#endif
