/** Measures what kernels of ops cost by calls of real ops, and adds their entries to a profile
 * (tessera/profile.h). */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_KERNELS_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_KERNELS_H

#include "bench/calibrate/fit.h"
#include "bench/run/bench.h"

/** What to measure. */
typedef struct kernels_request {
    int ranks;               /**< ranks that run */
    const char *mesh;        /**< of the ranks of one node that compute, all at once; borrowed */
    tsr_dtype dtype;         /**< f32 is measured where it is none in which products are computed */
    int64_t most;            /**< no call touches more bytes */
    bench_settings settings; /**< how each call is timed */
} kernels_request;

/** The entry of a profile that a call measures. */
typedef enum kernel_topic { KERNEL_CALL = 0, KERNEL_PASS, KERNEL_MULTIPLY, KERNEL_ATTEND } kernel_topic;

/** A call of an op on each rank, and what the cost model counts for it. */
typedef struct kernel_call_point {
    kernel_topic topic;
    const char *op;
    bool fitted;     /**< an entry of the profile is made of it; else it tells the model's error */
    int64_t size[4]; /**< elements; rows, inputs, outputs; or heads, queries, keys, and elements of a head */
    int64_t least;   /**< rows of a product, queries */
    double touched, flops;
    spread seconds; /**< of a call; median 0: the device lacks the op */
} kernel_call_point;

/** Upper bound of the calls. */
#define KERNEL_POINTS 64

typedef struct kernels {
    kernel_call_point points[KERNEL_POINTS];
    size_t count;
} kernels;

/** Chooses the calls of a request, by its dtype and `most` alone; none in a build without ops. */
void kernels_choose(const kernels_request *r, kernels *out);

/** Times the calls that kernels_choose() chose. Collective over the place; every process gets the
 * same result. `status` is this process's exit status so far. Returns the tool's exit status. */
int kernels_measure(place *p, const kernels_request *r, int status, kernels *k);

/** Seconds of a call by a profile. */
double kernels_seconds(const kernel_call_point *point, const tsr_profile *profile);

/** Makes a profile of `base` and the entries of the calls that were timed; the caller destroys it.
 * Returns the tool's exit status. */
int kernels_fit(const kernels *k, const tsr_profile *base, tsr_profile **out);

/** The errors of a profile over the calls of which none of its entries was made, and their number
 * in `*count`. */
fit_error kernels_error(const kernels *k, const tsr_profile *profile, size_t *count);

#endif
