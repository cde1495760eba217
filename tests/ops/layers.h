/**
 * One linear layer under test, and its reference on plain arrays. All values are small integers, so
 * that products and sums are exact in f32 in any order, and results are compared for equality.
 *
 * Functions that run on ranks return a status instead of asserting; layers_run() fails the test
 * with the sentence of the rank that failed first.
 */
#ifndef TESTS_OPS_LAYERS_H
#define TESTS_OPS_LAYERS_H

#include <tessera/tessera.h>

#include <stdatomic.h>
#include <stdbool.h>

#define LAYER_TEXT 160

typedef struct layer {
    const char *mesh;
    int x_ndim;
    int64_t x_shape[TSR_MAX_DIMS];
    int64_t out;           /* features of y */
    const char *x, *w, *b; /* placements of x, w and b; b NULL: no bias */
    tsr_dtype dtype;       /**< of x */
    /** 0: local tensors are contiguous; else the stride of their last dim, and there is a hole
     * after each row */
    int gap;
    const tsr_device_driver *driver; /**< NULL: tensors are on the host */
    int devices;                     /**< number of the driver's devices; rank r uses device r mod devices */
    const tsr_stream *streams;       /**< streams of the ranks, for plans; NULL: the default streams */
    tsr_dtype w_dtype, b_dtype;      /**< dtypes of w and b; TSR_DTYPE_NONE: that of x */
} layer;

/** Memory of a rank that a test allocated, on any device; zeroed for none. */
typedef struct layer_memory {
    void *data;
    size_t bytes;
    tsr_device device;
} layer_memory;

/** Allocates memory outside of any stream; 0 bytes give a pointer too. */
tsr_status layer_memory_create(tsr_device device, size_t bytes, layer_memory *out);
void layer_memory_destroy(layer_memory *memory);

/** The device of this rank's tensors. */
tsr_device layer_device(const layer *l, const tsr_comm *comm);

/** All tensors of a layer, whole and row-major; b and db are NULL without bias. */
typedef struct layer_reference {
    int64_t rows, in, out;
    double *x, *w, *b, *dy;
    double *y, *dx, *dw, *db;
} layer_reference;

tsr_status layer_reference_create(const layer *l, layer_reference *out);
void layer_reference_destroy(layer_reference *reference);

/** The layer's tensors as dtensors. Partial operands hold terms that differ between ranks. */
typedef struct layer_tensors {
    tsr_mesh *mesh;
    tsr_dtensor *x, *w, *b;
    layer_memory memory[3]; /**< memory of x, w and b, if the layer has gaps or is on a device */
} layer_tensors;

tsr_status layer_tensors_create(tsr_comm *comm, const layer *l, const layer_reference *reference, layer_tensors *out);
void layer_tensors_destroy(layer_tensors *tensors);

/** The dtype of y. */
tsr_dtype layer_y_dtype(const layer *l);

/** Makes a dtensor of y's dtype from row-major `values`; its memory is `*memory` if the layer has
 * gaps or is on a device. */
tsr_status layer_distribute(const layer *l, const tsr_mesh *mesh, const double *values, int ndim, const int64_t *shape,
                            const tsr_placement *placements, layer_memory *memory, tsr_dtensor **out);

/** Writes the shape of y; returns its number of dims. */
int layer_y_shape(const layer *l, int64_t *shape);

/** Checks that the whole of `tensor` is `values`; collective. The error names the first wrong
 * element of `what`. */
tsr_status layer_expect(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values);

/** layer_expect() of `factor` times the values. */
tsr_status layer_expect_times(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values,
                              double factor);

/** An element of a host tensor at an offset, and the offset of the element with row-major index
 * `i`. */
double layer_get(const tsr_tensor *tensor, int64_t offset);
int64_t layer_offset(const tsr_tensor *tensor, int64_t i);

/** Placements to ask of y: Partial dims (with `replicated` all dims) become Replicate; with
 * `scattered` the first Partial dim becomes Shard(0). */
void layer_wanted(const tsr_layout *own, bool replicated, bool scattered, tsr_placement *out);

/** TSR_ERROR_INTERNAL with "what of mesh 2 x ..: " before the sentence of the call that failed. */
tsr_status layer_failed(const layer *l, const char *what);

/** Checks plans of the forward and the backward pass, each run twice in a row; collective. `own` is
 * the layout of y by the rules. */
tsr_status layer_check_plans(tsr_comm *comm, const layer *l, const layer_reference *reference,
                             const layer_tensors *tensors, const tsr_layout *own);

/** Checks tsr_linear() and tsr_linear_backward() of `l`, with every way to ask for the results, and
 * their plans, against the reference; collective. */
tsr_status layer_check(tsr_comm *comm, const layer *l);

/** The layer as text: "mesh 2 x f32 5x13 S(1) w 7x13 S(1) b R". */
const char *layer_print(const layer *l, char *text);

/** TSR_OK if `given` is `wanted` and the sentence contains `words`. */
tsr_status layer_expect_status(const char *what, tsr_status given, tsr_status wanted, const char *words);

/** TSR_OK if `given` is TSR_ERROR_ARGUMENT and the sentence is `sentence`. */
tsr_status layer_expect_refusal(tsr_status given, const char *sentence);

/** TSR_OK if `given` is TSR_ERROR_ARGUMENT and the sentence contains `words`. */
tsr_status layer_expect_refusal_with(tsr_status given, const char *words);

/** Executes a plan on rank `rank` and checks the results. `fault` numbers the wrong argument that
 * rank 1 gives; -1: none. */
typedef tsr_status layer_execution(const void *fixture, int rank, int fault);

/** Checks on two ranks, for each of `count` faults, that rank 1's error contains words[fault], that
 * rank 0's names rank 1, and that the next execution works; collective. */
tsr_status layer_expect_faults(tsr_comm *comm, layer_execution *execute, const void *fixture, const char *const *words,
                               int count);

/** Calls `execute` once, then many times, and checks that the later calls allocate nothing;
 * collective. For a main of layers_run_counting(), whose argument is `count`. */
tsr_status layer_expect_no_allocation(tsr_comm *comm, const atomic_size_t *count, layer_execution *execute,
                                      const void *fixture);

/** layers_run() with an atomic_size_t as the argument, which counts the allocations of all
 * ranks. */
void layers_run_counting(int nranks, tsr_rank_main *main);

/** Runs `main` on one rank with each set of instructions that this machine has. The i-th set's
 * argument is `results` + i * `bytes`, zeroed memory for three; the test fails if any main does not
 * return TSR_OK, or leaves other bytes than that of the portable set. */
void layers_run_sets(tsr_rank_main *main, void *results, size_t bytes);

/** Runs `main` on rank threads, and fails the test if any rank does not return TSR_OK. */
void layers_run(int nranks, tsr_rank_main *main, void *arg);

#endif
