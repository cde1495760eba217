/* ggml with Tessera's devices, and a layer of a model split over some of them by ggml's meta
 * device: inner = up x, out = down inner + bias. `up` is cut by its columns as ggml names them, the
 * features that it makes, `down` by the features that it reads. */
#ifndef TEST_HOSTS_GGML_SPLIT_H
#define TEST_HOSTS_GGML_SPLIT_H

#include <ggml-alloc.h>
#include <ggml-backend-impl.h>
#include <ggml.h>
#include <stdint.h>

enum { MOST_DEVICES = 16 };

typedef struct layer {
    int64_t in, inner, out, tokens;
    enum ggml_type weights; /* the dtype of up and down */
    int unit;               /* devices get whole units of inner features */
    const float *up;        /* inner x in */
    const float *down;      /* out x inner */
    const float *x;         /* tokens x in */
    const float *bias;      /* out */
} layer;

/* The last error that ggml or the library logged since load_tessera(). */
extern char last_error[1024];

/* Loads the library and returns its devices; always the same. TSR_GGML_DEVICES is 16 if it is not
 * set. NULL: ggml does not load it. */
ggml_backend_reg_t load_tessera(void);

/* Stores the library's function of this name in the pointer at `function`. Fails the test if there
 * is none. */
void find_function(ggml_backend_reg_t reg, const char *name, void *function);

/* ggml's own CPU backend. */
ggml_backend_t open_processor(void);

/* Device `rank` of the library as a backend. */
ggml_backend_t open_backend(int rank);

/* A meta device over the first `devices` of the library's devices. */
ggml_backend_dev_t meta_device(int devices, int unit);

/* How many of a layer's inner features are before rank `rank` of `devices`. */
int64_t features_before(const layer *l, int devices, int rank);

/* The layer's output, tokens x out, by a backend. Returns the status of its computation, the last
 * of `times`. */
enum ggml_status run_layer(const layer *l, ggml_backend_t backend, int times, float *y);

/* The same by ggml's own CPU backend, with the terms of the ranks computed apart and added in
 * their order. */
void run_apart(const layer *l, int devices, float *y);

/* `count` numbers that are whole (of few digits, so that sums of products are exact) or not. The
 * caller frees them. */
float *numbers(int64_t count, unsigned seed, int whole);

#endif
