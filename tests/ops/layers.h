/**
 * One linear layer under test, and the same on plain arrays. All values are small integers, so that every product and sum is exact in f32
 * whatever its order, and results are compared for equality.
 *
 * What runs on ranks returns a status instead of asserting; layers_run() fails the test with the sentence of the rank that failed first.
 */
#ifndef TESTS_OPS_LAYERS_H
#define TESTS_OPS_LAYERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tessera/tessera.h>

#define LAYER_TEXT 160

typedef struct layer {
    const char *mesh;
    int x_ndim;
    int64_t x_shape[TSR_MAX_DIMS];
    int64_t out;                     /* features of y */
    const char *x, *w, *b;           /* placements; b NULL: no bias */
    tsr_dtype dtype;                 /**< of x */
    int gap;                         /**< 0: local tensors are contiguous; else the stride of their last dim, with a hole after each row */
    const tsr_device_driver *driver; /**< NULL: tensors are on the host */
    int devices;                     /**< of the driver: those of rank r are on device r mod devices */
    const tsr_stream *streams;       /**< by rank, for plans; NULL: the default ones */
    tsr_dtype w_dtype, b_dtype;      /**< none: that of x */
} layer;

/** Memory of a rank that a test allocated, on any device; zeroed, none. */
typedef struct layer_memory {
    void *data;
    size_t bytes;
    tsr_device device;
} layer_memory;

/** Memory that belongs to no stream. 0 bytes are some, too. */
tsr_status layer_memory_create(tsr_device device, size_t bytes, layer_memory *out);
void layer_memory_destroy(layer_memory *memory);

/** Where this rank's tensors are. */
tsr_device layer_device(const layer *l, const tsr_comm *comm);

/** Everything of a layer, global and row-major; NULL where there is no bias. */
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
    layer_memory memory[3]; /**< of x, w and b where the layer has gaps or is on a device */
} layer_tensors;

tsr_status layer_tensors_create(tsr_comm *comm, const layer *l, const layer_reference *reference, layer_tensors *out);
void layer_tensors_destroy(layer_tensors *tensors);

/** y's dtype. */
tsr_dtype layer_y_dtype(const layer *l);

/** `values` (row-major), of y's dtype, as a dtensor, whose memory is `*memory` where the layer has gaps or is on a device. */
tsr_status layer_distribute(const layer *l, const tsr_mesh *mesh, const double *values, int ndim, const int64_t *shape,
                            const tsr_placement *placements, layer_memory *memory, tsr_dtensor **out);

/** y's shape; returns its number of dims. */
int layer_y_shape(const layer *l, int64_t *shape);

/** Collective: TSR_OK if the whole of `tensor` is `values`; else the sentence says which element of `what` is not. */
tsr_status layer_expect(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values);

/** The element with row-major number `i` of a tensor on the host, and where it lies. */
double layer_get(const tsr_tensor *tensor, int64_t offset);
int64_t layer_offset(const tsr_tensor *tensor, int64_t i);

/** What y may be asked for: replicated; with Partial dims reduced, in turn scattered over its first dim. */
void layer_wanted(const tsr_layout *own, bool replicated, bool scattered, tsr_placement *out);

/** "what of mesh 2 x ..: " and the sentence of the call that failed, as TSR_ERROR_INTERNAL. */
tsr_status layer_failed(const layer *l, const char *what);

/** Collective: plans of the forward, and of the backward that takes `dy`, run twice in a row; `own` is y's layout as the rule leaves it. */
tsr_status layer_check_plans(tsr_comm *comm, const layer *l, const layer_reference *reference, const layer_tensors *tensors,
                             const tsr_layout *own);

/** Collective: tsr_linear() and tsr_linear_backward() of `l`, with every way to ask for the results, and their plans, against the
 * reference. */
tsr_status layer_check(tsr_comm *comm, const layer *l);

/** "mesh 2 x f32 5x13 S(1) w 7x13 S(1) b R" */
const char *layer_print(const layer *l, char *text);

/** TSR_OK if `given` is what was wanted, and the sentence has the words. */
tsr_status layer_expect_status(const char *what, tsr_status given, tsr_status wanted, const char *words);

/** Executes a plan on rank `rank` and checks what comes out. `fault` is what rank 1 gets wrong, -1: nothing. */
typedef tsr_status layer_execution(const void *fixture, int rank, int fault);

/** Collective, on two ranks: for each of `count` faults rank 1 says `words[fault]`, rank 0 that it was rank 1, and the next execution
 * works. */
tsr_status layer_expect_faults(tsr_comm *comm, layer_execution *execute, const void *fixture, const char *const *words, int count);

/** Collective: calls `execute` once, and then many times more, which must allocate nothing; for a main of layers_run_counting(), whose
 * `count` is the main's argument. */
tsr_status layer_expect_no_allocation(tsr_comm *comm, const atomic_size_t *count, layer_execution *execute, const void *fixture);

/** layers_run() whose argument is an atomic_size_t that counts the allocations of all ranks. */
void layers_run_counting(int nranks, tsr_rank_main *main);

/** Runs `main` on rank threads, and fails the test if any rank does not return TSR_OK. */
void layers_run(int nranks, tsr_rank_main *main, void *arg);

#endif
