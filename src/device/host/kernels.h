/**
 * The host's kernels: one source, compiled once for each set of instructions; each set has one
 * operation table.
 *
 * Every file that includes this is compiled with TSR_KERNELS set to portable, avx2 or avx512, and
 * names its external symbols through KERNEL(). All sets give the same bits: elements are
 * independent, each is reduced in rank order, and nothing is contracted into fused multiply-adds.
 */
#ifndef TSR_DEVICE_HOST_KERNELS_H
#define TSR_DEVICE_HOST_KERNELS_H

#include "device/host/box.h"
#include "device/host/choose.h"

#include <tessera/sys/device.h>

#define TSR_KERNEL_NAME_(name, kernels) tsr_##name##_##kernels
#define TSR_KERNEL_NAME(name, kernels)  TSR_KERNEL_NAME_(name, kernels)
#define KERNEL(name)                    TSR_KERNEL_NAME(name, TSR_KERNELS)

/** Elements at any address: tensors in mapped files need not be aligned. */
typedef float tsr_f32 __attribute__((aligned(1), may_alias));
typedef double tsr_f64 __attribute__((aligned(1), may_alias));
typedef uint16_t tsr_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t tsr_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t tsr_u64 __attribute__((aligned(1), may_alias));
typedef int16_t tsr_i16 __attribute__((aligned(1), may_alias));
typedef int32_t tsr_i32 __attribute__((aligned(1), may_alias));
typedef int64_t tsr_i64 __attribute__((aligned(1), may_alias));

#endif
