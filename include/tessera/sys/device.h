/**
 * @file
 * The operation table behind a tsr_device: what a device implements. The host's own device has the
 * same table.
 *
 * A call that takes a stream only enqueues, and is done in stream order; on the host it is done on
 * return. Structs and arrays that it is given are read during the call, memory in stream order.
 * Calls come from any thread. All strides are in elements. A box has at most TSR_MAX_DIMS dims; a
 * dim of size 1 is allowed, one of size 0 means that there is nothing to do.
 */
#ifndef TESSERA_SYS_DEVICE_H
#define TESSERA_SYS_DEVICE_H

#include <tessera/context.h>
#include <tessera/sys/status.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Whether two devices are one: 1 or 0. Any thread. */
static inline int tsr_device_same(tsr_device a, tsr_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

/** Copies a strided box to a strided box, with elements of any size that a dtype has. Source and
 * destination do not overlap. */
typedef struct tsr_box_copy {
    void *dst;
    const void *src;
    size_t element_bytes;
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS], src_strides[TSR_MAX_DIMS];
} tsr_box_copy;

/** Writes one value, the first `element_bytes` bytes of `value`, to every element of a box. */
typedef struct tsr_box_fill {
    void *dst;
    size_t element_bytes;
    unsigned char value[16];
    int ndim;
    int64_t shape[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS];
} tsr_box_fill;

/**
 * dst[0..dst_count)[i] = op over s of src[s][i], in ascending s starting from src[0]. f16, bf16 and
 * f8 accumulate in f32 and are rounded once at the end. `divisor` divides once, after the sum, in
 * the accumulator's type: the number of terms for avg, else 1. Every source is read, and every
 * destination written, once. A destination may be exactly one of the sources (same pointer and
 * strides). NaNs come out canonical (positive, quiet, no payload); min and max pass NaN on and
 * order -0 < +0.
 */
typedef struct tsr_box_reduce {
    tsr_dtype dtype;
    tsr_reduce_op op; /**< avg counts as sum; `divisor` does the rest */
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
 * not NULL. lda, ldb, ldc are row strides. `trans_a`: a is stored as [k,m]; `trans_b`: b is stored
 * as [n,k]. Where beta is 0, c is not read. `workspace` has `workspace_bytes`, any number, and is
 * used in stream order; the fastest way may need as much as the table's gemm_workspace says.
 *
 * Operands may have different dtypes. f64 goes with f64 alone. Each device says which mixtures of
 * f32, f16 and bf16 it takes: it sums unrounded operands in f32 and rounds once, to c's dtype.
 */
typedef struct tsr_gemm {
    size_t size; /**< sizeof(tsr_gemm) */
    tsr_dtype a_dtype, b_dtype, c_dtype;
    tsr_dtype bias_dtype; /**< ignored without a bias */
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

/** The first five fields of a tsr_gemm whose operands are all of one dtype. */
#define TSR_GEMM_OF(dtype) sizeof(tsr_gemm), (dtype), (dtype), (dtype), (dtype)

/** One call of an op's kernel: sys/ops.h. */
struct tsr_kernel_call;

/** Where a copy's source and destination are: both on the device, or one of them on the host. */
typedef enum tsr_copy_kind { TSR_COPY_WITHIN, TSR_COPY_FROM_HOST, TSR_COPY_TO_HOST } tsr_copy_kind;

/** The operations of a kind of device. Every function gets the `self` that
 * tsr_device_driver_create() was given, and the device's index. */
typedef struct tsr_device_table {
    size_t size;      /**< sizeof(tsr_device_table) */
    const char *name; /**< required: "host", "cuda" */

    /** Required. The number of devices; 0, and a sentence in `*reason` (static or self's), if no
     * device can be used. */
    tsr_status (*count)(void *self, int *count, const char **reason);

    /** Required. Aligned to at least 64 bytes. With a stream, memory is allocated and freed in that
     * stream's order. Without one it may be used on any stream at once, and is freed when the
     * device has done all its work. */
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

    /** Required. Converts contiguous elements between floating types, rounding once to nearest
     * even; NaN becomes what a reduction yields. Between equal types it copies every bit. `dst` and
     * `src` do not overlap. TSR_ERROR_UNSUPPORTED: another type. */
    tsr_status (*convert)(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                          tsr_dtype src_dtype, int64_t count, tsr_stream stream);

    /** Optional: without it, linear layers on this device are refused. (The host's layers use a
     * BLAS of libtessera, sys/blas.h.) */
    tsr_status (*gemm)(void *self, int index, const tsr_gemm *gemm, tsr_stream stream);

    /**
     * Optional, all or none: a device without streams and events is synchronous, and its calls are
     * done on return. `event_record` makes the event stand for all work that the stream has been
     * given so far. `event_wait` makes a stream, not the host, wait for the event's latest record
     * at the time of the call, also if the event is another index' or an equal driver's; it does
     * nothing if there is no record. An event may be destroyed while streams wait for it.
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
     * Optional: the bytes of workspace, aligned to 64, that `gemm` wants for this product. Of its
     * pointers only the bias counts, by whether it is NULL. Equal shapes give equal answers.
     * Without this function, or with less workspace, `gemm` still works. A product with no rows,
     * columns and terms asks whether `gemm` takes its dtypes.
     */
    tsr_status (*gemm_workspace)(void *self, int index, const tsr_gemm *gemm, size_t *bytes);

    /** Optional: 1 in `*out` if work on device `index` may read and write memory of device `owner`.
     * Without it every device may. */
    tsr_status (*reaches)(void *self, int index, int owner, int *out);

    /** Optional, for devices with streams: 0 in `*id` if work that is given to `stream` runs, else
     * the number of the capture that records it, equal for all streams that are forked into one
     * capture. Without it nothing is ever captured. */
    tsr_status (*capture)(void *self, int index, tsr_stream stream, uint64_t *id);

    /** Optional: the stream to pass to `alloc` and `free` for memory in the order of the default
     * stream, for to them NULL means no order. */
    tsr_stream default_stream;

    /**
     * Optional: computes an op of docs/ops.md, which it knows by `call->op`, on local tensors that
     * all lie on device `index`. Without it every op is refused there but those that only move or
     * look at memory, and products that `gemm` computes.
     *
     * With `call->query` set it enqueues nothing and reads no data: it answers there how many bytes
     * of workspace the call wants, or TSR_ERROR_UNSUPPORTED where it has no kernel for the op with
     * these dtypes, shapes and attributes. The same call follows without `query`, and is enqueued,
     * with a workspace of this size on the device, aligned to 64 bytes. Attributes, shapes, layouts
     * and coordinate are read during the call, elements in stream order. The stage is always
     * TSR_STAGE_WHOLE. Results are written in whole, also where strides leave holes; a result has
     * its own memory, or exactly that of an operand.
     *
     * Where a kernel finds data that are wrong, such as ids out of range, the next `launch` on the
     * stream without `query`, which then enqueues nothing, or the next `stream_synchronize` of it,
     * after the wait, returns TSR_ERROR_STATE. Its sentence names op, rank, index and value. Each
     * error is told once; of those that come before it is told, the first.
     *
     * Calls that are not ops are lists of rows, by which rows.h changes tables: "rows_assign",
     * "rows_add", "rows_mean" and "rows_max". Without a kernel for them rows go by `copy_boxes` and
     * `reduce`, which takes a call for each. Three inputs are i64 lists on the device: addresses of
     * m rows, m + 1 starts, and addresses of sources; those from starts[r] to below starts[r + 1],
     * one or more, are of row r. The result is without data: it has the dtype of all, and the shape
     * (m, elements of a row). A row is contiguous and aligned to its elements. Assign copies the
     * bits of the only source of each row, in the widest elements of 1 to 16 bytes that fit. Else a
     * row becomes the sum, the mean or the largest of its sources, in their order; with the
     * attribute `keeps`, of 0 or 1, its own elements are the last term, which a mean does not
     * count. All is rounded once, as by `reduce`. Such a call has no layouts, coordinate or
     * workspace.
     */
    tsr_status (*launch)(void *self, int index, const struct tsr_kernel_call *call,
                         tsr_stream stream);
} tsr_device_table;

/**
 * A driver over `table`, which is copied. `self` must outlive the driver and all objects that have
 * used its devices; if the table has `destroy`, the driver owns `self` from then on, on success
 * only. A driver is not registered anywhere: put it into the tsr_device of tensors. The caller owns
 * `*out`. TSR_ERROR_ARGUMENT: the table is smaller than this header's or lacks a required entry,
 * which the sentence names.
 */
TSR_API tsr_status tsr_device_driver_create(const tsr_device_table *table, void *self,
                                            tsr_device_driver **out);

/** Gives the driver back; NULL is fine. It is freed with the last communicator, mesh or dtensor
 * that has used its devices. The caller frees its own memory there before. */
TSR_API void tsr_device_driver_destroy(tsr_device_driver *driver);

/** The table of a driver, and its `self`; for `driver` NULL the host's, with the best kernels for
 * this processor. Borrowed. */
TSR_API const tsr_device_table *tsr_device_driver_table(const tsr_device_driver *driver,
                                                        void **self);

/**
 * The host's table with kernels "portable", "avx2" or "avx512". Its functions take a
 * tsr_kernel_choices as `self`; with NULL, large moves follow the rule that
 * tsr_context_options.kernels calls "fixed". Static. TSR_ERROR_UNAVAILABLE: this processor cannot
 * run them. TSR_ERROR_ARGUMENT: no such name.
 */
TSR_API tsr_status tsr_device_host_table(const char *kernels, const tsr_device_table **out);

/** How one rank moves many bytes on the host: timings of each way on pieces of earlier moves, and
 * the best way so far. Every communicator has its own, shared with those that are split off it. Any
 * thread may use one, without a lock. */
typedef struct tsr_kernel_choices tsr_kernel_choices;

/** Choices without timings yet, for a caller of tsr_device_host_table(). They choose as the
 * context's `kernels` say; `context` may be NULL. The caller owns `*out`. TSR_ERROR_MEMORY: there
 * is no memory for them. TSR_ERROR_ARGUMENT: `out` is NULL. Does not communicate. */
TSR_API tsr_status tsr_kernel_choices_create(tsr_context *context, tsr_kernel_choices **out);

/** Frees choices, which no call may use any more; NULL is fine. */
TSR_API void tsr_kernel_choices_destroy(tsr_kernel_choices *choices);

/** The name of way `index`, such as "plain" or "stream-rows"; NULL past the last. Static. */
TSR_API const char *tsr_kernel_way_get(size_t index);

/** An upper bound of the number of ways. */
#define TSR_MOST_KERNEL_WAYS 16

/**
 * The choice for one class of large calls. Ranges are half-open: from `.._from` to below `.._to`.
 */
typedef struct tsr_kernel_choice {
    const char *kernel;                     /**< "copy", "reduce" (to one destination) or
                                                 "reduce-to-all" (to several). Static */
    size_t run_from, run_to;                /**< bytes that lie together in source and
                                                 destination */
    size_t bytes_from, bytes_to;            /**< bytes that a call writes */
    const char *way;                        /**< the best one so far; NULL: too few timings yet.
                                                 Static */
    double bandwidth[TSR_MOST_KERNEL_WAYS]; /**< bytes written per second in each way; 0: not
                                                 timed */
    int samples;                            /**< number of timings in all */
    int changes;                            /**< times that another way became the best one, at
                                                 most 255 */
    int restarts;                           /**< times that all ways were tried again, because
                                                 the best one had become slow; at most 255 */
} tsr_kernel_choice;

/** Class `index` of `choices`, and 1 in `*found`; 0 past the last class, and where nothing is
 * measured. TSR_ERROR_ARGUMENT: a pointer is NULL. Any thread; does not communicate. */
TSR_API tsr_status tsr_kernel_choices_get(const tsr_kernel_choices *choices, size_t index,
                                          tsr_kernel_choice *out, int *found);

/**
 * The way in which a call of `kernel` ("copy", "reduce" or "reduce-to-all") that writes `bytes`
 * moves runs of `run_bytes`: the one that the context pinned, else the best one so far; where
 * little moves or nothing is measured, the one that the rule says. NULL: the ways are still being
 * tried, or no kernel has this name. `choices` may be NULL: the rule. Static text. Any thread; does
 * not communicate.
 */
TSR_API const char *tsr_kernel_choices_way(const tsr_kernel_choices *choices, const char *kernel,
                                           size_t run_bytes, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
