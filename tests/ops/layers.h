/**
 * One linear layer under test, and the same on plain arrays. All values are small integers, so that every product and sum is exact in f32
 * whatever its order, and results are compared for equality.
 *
 * What runs on ranks returns a status instead of asserting; layers_run() fails the test with the sentence of the rank that failed first.
 */
#ifndef TESTS_OPS_LAYERS_H
#define TESTS_OPS_LAYERS_H

#include <tessera/tessera.h>

#define LAYER_TEXT 160

typedef struct layer {
    const char *mesh;
    int x_ndim;
    int64_t x_shape[TSR_MAX_DIMS];
    int64_t out;           /* features of y */
    const char *x, *w, *b; /* placements; b NULL: no bias */
    tsr_dtype dtype;
    int gap; /**< 0: local tensors are contiguous; else the stride of their last dim, with a hole after each row */
} layer;

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
    void *memory[3]; /**< of x, w and b where the layer has gaps */
} layer_tensors;

tsr_status layer_tensors_create(tsr_comm *comm, const layer *l, const layer_reference *reference, layer_tensors *out);
void layer_tensors_destroy(layer_tensors *tensors);

/** `values` (row-major) as a dtensor, whose memory is `*memory` where the layer has gaps. */
tsr_status layer_distribute(const layer *l, const tsr_mesh *mesh, const double *values, int ndim, const int64_t *shape,
                            const tsr_placement *placements, void **memory, tsr_dtensor **out);

/** y's shape; returns its number of dims. */
int layer_y_shape(const layer *l, int64_t *shape);

/** Collective: TSR_OK if the whole of `tensor` is `values`; else the sentence says which element of `what` is not. */
tsr_status layer_expect(const layer *l, const char *what, const tsr_dtensor *tensor, const double *values);

/** Collective: tsr_linear() and tsr_linear_backward() of `l`, with every way to ask for the results, against the reference. */
tsr_status layer_check(tsr_comm *comm, const layer *l);

/** "mesh 2 x f32 5x13 S(1) w 7x13 S(1) b R" */
const char *layer_print(const layer *l, char *text);

/** Runs `main` on rank threads, and fails the test if any rank does not return TSR_OK. */
void layers_run(int nranks, tsr_rank_main *main, void *arg);

#endif
