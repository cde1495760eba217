/**
 * @file
 * What a device implements: the operation table behind a tsr_device. The host's own device is made
 * from the same table.
 *
 * Every call that takes a stream only enqueues on it and is done in stream order; on the host it is
 * done on return. Structs and arrays that it is given are read during the call, memory in stream
 * order. Calls come from any thread. All strides are in elements. A box is at most TSR_MAX_DIMS
 * dims; dims of size 1 are allowed, a size of 0 means nothing to do.
 */
#ifndef TESSERA_SYS_DEVICE_H
#define TESSERA_SYS_DEVICE_H

#include <tessera/context.h>
#include <tessera/sys/status.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Strided to strided, any element size that a dtype has; source and destination do not overlap. */
typedef struct tsr_box_copy {
    void *dst;
    const void *src;
    size_t element_bytes;
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS], src_strides[TSR_MAX_DIMS];
} tsr_box_copy;

/** Writes one value, `element_bytes` of `value`, to a box. */
typedef struct tsr_box_fill {
    void *dst;
    size_t element_bytes;
    unsigned char value[16];
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS];
} tsr_box_fill;

/**
 * dst[0..dst_count)[i] = op over s of src[s][i], in ascending s starting from src[0], accumulated
 * in f32 for f16, bf16 and f8, rounded once at the end. `divisor` (avg: over how many) divides
 * once, after the sum, in the accumulator's type; 1 otherwise. Every source is read, and every
 * destination written, once; a destination may be one of the sources exactly (same pointer and
 * strides). NaNs come out canonical (positive, quiet, no payload); min and max pass NaN on and
 * order -0 < +0.
 */
typedef struct tsr_box_reduce {
    tsr_dtype dtype;
    tsr_reduce_op op; /**< avg counts as sum: `divisor` says the rest */
    int64_t divisor;
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int src_count, dst_count;
    const void *const *src;
    const int64_t (*src_strides)[TSR_MAX_DIMS];
    void *const *dst;
    const int64_t (*dst_strides)[TSR_MAX_DIMS];
} tsr_box_reduce;

/**
 * Row-major c[m,n] = alpha * a[m,k] * b[k,n] + beta * c, plus bias[n] to every row where `bias` is
 * not NULL; lda, ldb, ldc are row strides; `trans_a`: a is stored as [k,m]; `trans_b`: b is stored
 * as [n,k]. Where beta is 0, c is not read. `workspace` has `workspace_bytes`, any number: the
 * fastest way may want what the table's gemm_workspace says. It is used in stream order.
 *
 * Operands may be of several dtypes. f64 goes with f64 alone; of f32, f16 and bf16 a device takes
 * the mixtures that it says: it adds up in f32, of operands as they are, and rounds once, to c's
 * dtype.
 */
typedef struct tsr_gemm {
    size_t size; /**< sizeof(tsr_gemm) */
    tsr_dtype a_dtype, b_dtype, c_dtype;
    tsr_dtype bias_dtype; /**< not looked at without a bias */
    int trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    const void *bias;
    void *workspace;
    size_t workspace_bytes;
} tsr_gemm;

/** The first fields of a tsr_gemm whose operands are all of one dtype. */
#define TSR_GEMM_OF(dtype) sizeof(tsr_gemm), (dtype), (dtype), (dtype), (dtype)

/** Where a copy's two ends are: both on the device, or one on the host. */
typedef enum tsr_copy_kind { TSR_COPY_WITHIN, TSR_COPY_FROM_HOST, TSR_COPY_TO_HOST } tsr_copy_kind;

/** Every function gets the `self` that tsr_device_driver_create() was given, and the device's
 * index. */
typedef struct tsr_device_table {
    size_t size;      /**< sizeof(tsr_device_table) */
    const char *name; /**< required: "host", "cuda" */

    /** Required. How many devices there are; 0 with a sentence in `*reason` (static or self's)
     * where none can be used. */
    tsr_status (*count)(void *self, int *count, const char **reason);

    /** Required. Aligned to 64 bytes at least. With a stream, memory is there, and goes, in that
     * stream's order. Without one it may be used on any stream at once, and goes when all that the
     * device was given is done. */
    tsr_status (*alloc)(void *self, int index, size_t bytes, tsr_stream stream, void **out);
    /** required */
    void (*free)(void *self, int index, void *memory, size_t bytes, tsr_stream stream);
    tsr_status (*copy)(void *self, int index, void *dst, const void *src, size_t bytes,
                       tsr_copy_kind kind, tsr_stream stream); /**< required */
    tsr_status (*copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count,
                             tsr_stream stream); /**< required */
    /** required */
    tsr_status (*fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);
    /** required */
    tsr_status (*reduce)(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);

    /** Required. Contiguous; between floating types, rounding once to nearest even; NaN as a
     * reduction yields it. Equal types: a copy, every bit kept. `dst` and `src` do not overlap.
     * TSR_ERROR_UNSUPPORTED: another type. */
    tsr_status (*convert)(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                          tsr_dtype src_dtype, int64_t count, tsr_stream stream);

    /** Optional; without it linear layers on this device are refused (libtessera brings a BLAS for
     * the host, sys/blas.h). */
    tsr_status (*gemm)(void *self, int index, const tsr_gemm *gemm, tsr_stream stream);

    /**
     * Optional, all or none: a device without them is synchronous, its calls are done on return.
     * `record` makes the event stand for all that the stream has been given so far; `wait` makes a
     * stream, not the host, wait for the latest record at the time of the call, also of another
     * index' or an equal driver's event, and for nothing where there is none. An event may be
     * destroyed while streams wait.
     */
    tsr_status (*stream_create)(void *self, int index, tsr_stream *out);
    void (*stream_destroy)(void *self, int index, tsr_stream stream);
    tsr_status (*stream_synchronize)(void *self, int index, tsr_stream stream);
    tsr_status (*event_create)(void *self, int index, void **out);
    void (*event_destroy)(void *self, int index, void *event);
    tsr_status (*event_record)(void *self, int index, void *event, tsr_stream stream);
    tsr_status (*event_wait)(void *self, int index, void *event, tsr_stream stream);

    /** Optional: frees `self` when its driver goes. Without it `self` stays the caller's. */
    void (*destroy)(void *self);

    /**
     * Optional: how many bytes of workspace, aligned to 64, `gemm` wants for such a product, whose
     * pointers are not looked at but for whether there is a bias; without it, or with less, `gemm`
     * makes do. The same for equal shapes. A product of no rows, columns and terms asks whether the
     * dtypes are some that `gemm` takes.
     */
    tsr_status (*gemm_workspace)(void *self, int index, const tsr_gemm *gemm, size_t *bytes);

    /** Optional: 1 in `*out` if work on device `index` may read and write what lies on device
     * `owner`; without it all may. */
    tsr_status (*reaches)(void *self, int index, int owner, int *out);

    /** Optional, of devices with streams: 0 in `*id` if what is given to `stream` runs, else a
     * number of the capture that records it, the same for all streams that are forked into that
     * capture. Without it nothing is ever captured. */
    tsr_status (*capture)(void *self, int index, tsr_stream stream, uint64_t *id);

    /** Optional: what `alloc` and `free` take for memory in the order of the default stream, as
     * NULL is no order to them. */
    tsr_stream default_stream;
} tsr_device_table;

/**
 * A driver over a table, which is copied; `self` must outlive the driver and whatever else has used
 * its devices, and is the driver's from now on if the table has `destroy`, on success only. Not
 * registered anywhere: put it into the tsr_device of the tensors that live there.
 * TSR_ERROR_ARGUMENT: the table is smaller than this header's or lacks a required entry, which the
 * sentence names.
 */
TSR_API tsr_status tsr_device_driver_create(const tsr_device_table *table, void *self,
                                            tsr_device_driver **out);

/** Gives the driver back; NULL is fine. It goes with the last communicator, mesh or dtensor that
 * has used its devices; memory that the caller has there is freed before. */
TSR_API void tsr_device_driver_destroy(tsr_device_driver *driver);

/** The table of a driver, and its `self`; of the host (with the best kernels for this processor)
 * where `driver` is NULL. Borrowed. */
TSR_API const tsr_device_table *tsr_device_driver_table(const tsr_device_driver *driver,
                                                        void **self);

/**
 * The host's table with kernels "portable", "avx2" or "avx512". Its functions take a
 * tsr_kernel_choices as `self`, or NULL: then large moves go by the rule that
 * tsr_context_options.kernels calls "fixed". TSR_ERROR_UNAVAILABLE: this processor does not run
 * them; TSR_ERROR_ARGUMENT: no such name. Static.
 */
TSR_API tsr_status tsr_device_host_table(const char *kernels, const tsr_device_table **out);

/** How one rank's large moves on the host go: what the ways took on pieces of earlier moves, and
 * which way is the best one so far. Every communicator has its own, which those that are split off
 * it share. Any thread may use one, without a lock. */
typedef struct tsr_kernel_choices tsr_kernel_choices;

/** Choices that know nothing yet, for a caller of tsr_device_host_table(); they choose as the
 * context's `kernels` say. `context` may be NULL. The caller owns `*out`. TSR_ERROR_MEMORY: there
 * is no memory for them; TSR_ERROR_ARGUMENT: `out` is NULL. Does not communicate. */
TSR_API tsr_status tsr_kernel_choices_create(tsr_context *context, tsr_kernel_choices **out);

/** Gives choices back; NULL is fine. No call uses them any more. */
TSR_API void tsr_kernel_choices_destroy(tsr_kernel_choices *choices);

/** The name of way `index`, "plain" or "stream-rows", or NULL past the last. Static. */
TSR_API const char *tsr_kernel_way_get(size_t index);

/** At least as many as there are ways. */
#define TSR_MOST_KERNEL_WAYS 16

/** What was chosen for one class of large calls. Bounds are half-open: from `.._from` to below
 * `.._to`. */
typedef struct tsr_kernel_choice {
    const char *kernel;                     /**< "copy", "reduce" (to one destination) or
                                                 "reduce-to-all" (to several). Static */
    size_t run_from, run_to;                /**< bytes that lie together in source and
                                                 destination */
    size_t bytes_from, bytes_to;            /**< that a call writes */
    const char *way;                        /**< the best one so far; NULL: too little was timed
                                                 as yet. Static */
    double bandwidth[TSR_MOST_KERNEL_WAYS]; /**< bytes a second that were written in each way; 0:
                                                 not timed */
    int samples;                            /**< that these come from, in all */
    int changes;                            /**< how often another way became the best one, at
                                                 most 255 */
    int restarts;                           /**< how often all ways were tried again, since the
                                                 best one had become slow; at most 255 */
} tsr_kernel_choice;

/** Class `index` of `choices`: 1 in `*found`, or 0 past the last, and where nothing is measured.
 * TSR_ERROR_ARGUMENT: a pointer is NULL. Any thread; does not communicate. */
TSR_API tsr_status tsr_kernel_choices_get(const tsr_kernel_choices *choices, size_t index,
                                          tsr_kernel_choice *out, int *found);

/**
 * The way in which runs of `run_bytes` go in a call of `kernel` ("copy", "reduce" or
 * "reduce-to-all") that writes `bytes`: one that the context pinned, the best one so far, or what
 * the rule says where little moves or nothing is measured. NULL: the ways are still being tried, or
 * no kernel has this name. `choices` may be NULL, for the rule. Static text. Any thread; does not
 * communicate.
 */
TSR_API const char *tsr_kernel_choices_way(const tsr_kernel_choices *choices, const char *kernel,
                                           size_t run_bytes, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
