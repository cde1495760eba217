/** The loops of norm_kernels.c for one dtype: T, FN(name) names them, EXP(x) is e^x for x <= 0.
 * Included once for each dtype, so it has no guard. */

static inline const T *FN(row)(const tsr_norm_rows *r, int operand, int64_t row)
{
    return (const T *)r->in[operand] + row * r->in_step[operand];
}

static inline T *FN(result)(const tsr_norm_rows *r, int64_t row)
{
    return r->makes ? (T *)r->out + row * r->out_step : NULL;
}

/* Where n results of a row go, from element `done` on: to memory, or to `block` to be streamed. */
static inline T *FN(begin)(const tsr_norm_rows *r, T *to, int64_t done, T *block)
{
    return r->streams ? block : to + done;
}

static inline void FN(end)(const tsr_norm_rows *r, T *to, int64_t done, int64_t n, const T *block)
{
    if (r->streams)
        stream((char *)(to + done), (const char *)block, (size_t)n * sizeof(T));
}

/* Sums of terms: `term` is an f64 of element k. */
#define SUM(name, parameters, term)                                                                                    \
    static inline double FN(name) parameters                                                                           \
    {                                                                                                                  \
        double lanes[LANES] = {0};                                                                                     \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                                             \
            SIMD for (int j = 0; j < LANES; j++)                                                                       \
            {                                                                                                          \
                const int64_t k = i + j;                                                                               \
                lanes[j] += (term);                                                                                    \
            }                                                                                                          \
        for (int j = 0; i + j < n; j++) {                                                                              \
            const int64_t k = i + j;                                                                                   \
            lanes[j] += (term);                                                                                        \
        }                                                                                                              \
        return fold(lanes);                                                                                            \
    }

#define WIDE(a) ((double)(a))

SUM(sum, (const T *x, int64_t n), WIDE(x[k]))
SUM(sum_squares, (const T *x, int64_t n), WIDE(x[k]) * WIDE(x[k]))
SUM(sum_sizes, (const T *x, int64_t n), WIDE(x[k] < 0 ? -x[k] : x[k]))
SUM(sum_deviations, (const T *x, int64_t n, double mean), (WIDE(x[k]) - mean) * (WIDE(x[k]) - mean))
SUM(sum_products, (const T *x, const T *y, int64_t n), WIDE(x[k]) * WIDE(y[k]))
SUM(sum_triples, (const T *d, const T *w, const T *x, int64_t n), WIDE(d[k]) * WIDE(w[k]) * WIDE(x[k]))
SUM(sum_covariances, (const T *d, const T *w, const T *x, int64_t n, double mean),
    WIDE(d[k]) * WIDE(w[k]) * (WIDE(x[k]) - mean))
SUM(count_size, (const T *x, int64_t n, T size), (x[k] < 0 ? -x[k] : x[k]) == size ? 1.0 : 0.0)

/* The largest element that is not NaN. */
static inline T FN(find_largest)(const T *x, int64_t n)
{
    T lanes[2 * LANES], largest;
    int64_t i = 0;
    for (int j = 0; j < 2 * LANES; j++)
        lanes[j] = -(T)INFINITY;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        SIMD for (int j = 0; j < 2 * LANES; j++)
        {
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
        }
    for (int j = 0; i + j < n; j++)
        lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (int width = LANES; width; width /= 2)
        for (int j = 0; j < width; j++)
            lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    largest = lanes[0];
    return largest;
}

/* Writes e^(x - shift) of at most BLOCK elements, and adds it to the sums. */
static inline void FN(add_exponentials)(const T *x, int64_t n, T shift, T *e, double *lanes)
{
    int64_t i = 0;
    SIMD for (int64_t k = 0; k < n; k++)
    {
        e[k] = EXP(x[k] - shift);
    }
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        SIMD for (int j = 0; j < LANES; j++)
        {
            lanes[j] += WIDE((e[i + j] + e[i + j + LANES]) + (e[i + j + 2 * LANES] + e[i + j + 3 * LANES]));
        }
    for (; i < n; i++)
        lanes[i % LANES] += WIDE(e[i]);
}

/* The statistics of softmax, or if `flat` of logsumexp; exponentials go to `e`, or nowhere if it is
 * NULL. */
static inline void FN(measure_softmax)(const T *x, int64_t n, T *e, bool flat, double *statistics)
{
    double lanes[LANES] = {0};
    T block[BLOCK];
    const T largest = FN(find_largest)(x, n);
    const T shift = largest == -(T)INFINITY ? 0 : largest;
    for (int64_t done = 0; done < n; done += BLOCK)
        FN(add_exponentials)(x + done, n - done < BLOCK ? n - done : BLOCK, shift, e ? e + done : block, lanes);
    statistics[0] = WIDE(largest);
    statistics[1] = flat && largest == (T)INFINITY ? FN(sum_sizes)(x, n) : fold(lanes);
}


/* Makes a row of results in blocks: element k of the row is `value`, element i of the block. */
#define MAKE(r, y, value)                                                                                              \
    for (int64_t done = 0; done < (r)->length; done += BLOCK) {                                                        \
        T block[BLOCK], *const to = FN(begin)(r, y, done, block);                                                      \
        const int64_t n = (r)->length - done < BLOCK ? (r)->length - done : BLOCK;                                     \
        SIMD for (int64_t i = 0; i < n; i++)                                                                           \
        {                                                                                                              \
            const int64_t k = done + i;                                                                                \
            to[i] = (T)(value);                                                                                        \
        }                                                                                                              \
        FN(end)(r, y, done, n, block);                                                                                 \
    }

static inline void FN(softmax_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    T *const e = r->scratch ? r->scratch : y;
    if (r->measures)
        FN(measure_softmax)(x, r->length, y ? e : NULL, false, statistics);
    if (!y)
        return;
    const T shift = (T)statistics[0] == -(T)INFINITY ? 0 : (T)statistics[0], factor = (T)(1 / statistics[1]);
    if (r->measures)
        MAKE(r, y, e[k] * factor)
    else
        MAKE(r, y, EXP(x[k] - shift) * factor)
}

static inline void FN(log_softmax_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    if (r->measures)
        FN(measure_softmax)(x, r->length, NULL, false, statistics);
    if (!y)
        return;
    const double shift = statistics[0], logarithm = tsr_f64_log(statistics[1]);
    MAKE(r, y, (WIDE(x[k]) - shift) - logarithm)
}

static inline void FN(logsumexp_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    (void)y;
    FN(measure_softmax)(x, r->length, NULL, true, statistics);
}

static inline void FN(softmax_gradient_row)(const tsr_norm_rows *r, const T *d, const T *y, T *dx, double *statistics)
{
    if (r->measures)
        statistics[0] = FN(sum_products)(d, y, r->length);
    if (!dx)
        return;
    const T sum = (T)statistics[0];
    MAKE(r, dx, (d[k] - sum) * y[k])
}

static inline void FN(log_softmax_gradient_row)(const tsr_norm_rows *r, const T *d, const T *y, T *dx,
                                                double *statistics)
{
    if (r->measures)
        statistics[0] = FN(sum)(d, r->length);
    if (!dx)
        return;
    const T sum = (T)statistics[0];
    MAKE(r, dx, d[k] - EXP(y[k]) * sum)
}

static inline void FN(rms_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    const T *const w = r->weight;
    if (r->measures)
        statistics[0] = FN(sum_squares)(x, r->length);
    if (!y)
        return;
    const T factor = (T)(1 / sqrt(statistics[0] / r->count + r->epsilon));
    MAKE(r, y, x[k] * factor * w[k])
}

/* Adds to the gradients of weight and bias. */
#define ADD_SUMS(r, normal)                                                                                            \
    SIMD for (int64_t k = 0; k < (r)->length; k++)                                                                     \
    {                                                                                                                  \
        (r)->sums[0][k] += WIDE(d[k]) * WIDE(normal);                                                                  \
    }

/* With f = 1 / sqrt(mean(x^2) + epsilon): dx = f (d w - x f^2 mean(d w x)). */
static inline void FN(rms_gradient_row)(const tsr_norm_rows *r, const T *d, const T *x, T *dx, double *statistics)
{
    const T *const w = r->weight;
    if (r->measures) {
        statistics[0] = FN(sum_squares)(x, r->length);
        statistics[1] = FN(sum_triples)(d, w, x, r->length);
    }
    if (!dx)
        return;
    const double wide = 1 / sqrt(statistics[0] / r->count + r->epsilon);
    const T factor = (T)wide, along = (T)(wide * wide * statistics[1] / r->count);
    ADD_SUMS(r, x[k] * factor)
    MAKE(r, dx, (d[k] * w[k] - x[k] * along) * factor)
}

static inline void FN(measure_layer)(const T *x, int64_t n, double *statistics)
{
    const double mean = n ? FN(sum)(x, n) / (double)n : 0;
    statistics[0] = (double)n;
    statistics[1] = mean;
    statistics[2] = FN(sum_deviations)(x, n, mean);
}

/* The mean in two parts, so that x less the mean is rounded as if the mean were exact. */
#define SPLIT_MEAN(mean) const T high = (T)(mean), low = (T)((mean)-WIDE(high))

static inline void FN(layer_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    const T *const w = r->weight, *const b = r->bias;
    if (r->measures)
        FN(measure_layer)(x, r->length, statistics);
    if (!y)
        return;
    SPLIT_MEAN(statistics[1]);
    const T factor = (T)(1 / sqrt(statistics[2] / r->count + r->epsilon));
    MAKE(r, y, (x[k] - high - low) * factor * w[k] + b[k])
}

/* With f = 1 / sqrt(variance + epsilon) and the normal h = f (x - mean):
 * dx = f (d w - mean(d w) - h mean(d w h)). */
static inline void FN(layer_gradient_row)(const tsr_norm_rows *r, const T *d, const T *x, T *dx, double *statistics)
{
    const T *const w = r->weight;
    if (r->measures) {
        FN(measure_layer)(x, r->length, statistics);
        statistics[3] = FN(sum_products)(d, w, r->length);
        statistics[4] = FN(sum_covariances)(d, w, x, r->length, statistics[1]);
    }
    if (!dx)
        return;
    SPLIT_MEAN(statistics[1]);
    const double wide = 1 / sqrt(statistics[2] / r->count + r->epsilon);
    const T factor = (T)wide, flat = (T)(statistics[3] / r->count);
    const T along = (T)(wide * wide * statistics[4] / r->count);
    ADD_SUMS(r, (x[k] - high - low) * factor)
    SIMD for (int64_t k = 0; k < r->length; k++)
    {
        r->sums[1][k] += WIDE(d[k]);
    }
    MAKE(r, dx, (d[k] * w[k] - flat - (x[k] - high - low) * along) * factor)
}

static inline void FN(one_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    (void)y;
    statistics[0] = FN(sum_sizes)(x, r->length);
}

static inline void FN(two_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    (void)y;
    statistics[0] = FN(sum_squares)(x, r->length);
}

/* The sum is NaN if an element is. */
static inline void FN(largest_row)(const tsr_norm_rows *r, const T *x, T *y, double *statistics)
{
    double largest = 0;
    const double sum = FN(sum_sizes)(x, r->length);
    (void)y;
    for (int64_t k = 0; k < r->length; k++) {
        const double size = x[k] < 0 ? -WIDE(x[k]) : WIDE(x[k]);
        largest = size > largest ? size : largest;
    }
    statistics[0] = sum != sum ? sum : largest;
}

#define SIGN(x) (T)(((x) > 0) - ((x) < 0))

static inline void FN(one_gradient_row)(const tsr_norm_rows *r, const T *x, T *dx, double *statistics, double d,
                                        double norm)
{
    const T slope = (T)d;
    (void)norm;
    statistics[0] = 0;
    if (dx)
        MAKE(r, dx, SIGN(x[k]) * slope)
}

/* dx = d x / norm, and 0 where the norm is 0. */
static inline void FN(two_gradient_row)(const tsr_norm_rows *r, const T *x, T *dx, double *statistics, double d,
                                        double norm)
{
    const double slope = norm == 0 ? 0 : d / norm;
    statistics[0] = 0;
    if (dx)
        MAKE(r, dx, WIDE(x[k]) * slope)
}

/* Elements of the largest size share the gradient evenly. */
static inline void FN(largest_gradient_row)(const tsr_norm_rows *r, const T *x, T *dx, double *statistics, double d,
                                            double norm)
{
    const T size = (T)norm;
    if (r->measures)
        statistics[0] = FN(count_size)(x, r->length, size);
    if (!dx)
        return;
    const T share = (T)(d / statistics[0]);
    MAKE(r, dx, (x[k] < 0 ? -x[k] : x[k]) == size ? SIGN(x[k]) * share : 0)
}

/* All rows of an op with one operand, with two, and of a norm's gradient. */
#define UNARY(name, code)                                                                                              \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)(r, FN(row)(r, 0, row), FN(result)(r, row), r->statistics + row * tsr_norm_statistics(code)); \
    }
#define BINARY(name, code)                                                                                             \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)(r, FN(row)(r, 0, row), FN(row)(r, 1, row), FN(result)(r, row),                              \
                           r->statistics + row * tsr_norm_statistics(code));                                           \
    }
#define GIVEN(name, code)                                                                                              \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)(r, FN(row)(r, 0, row), FN(result)(r, row), r->statistics + row * tsr_norm_statistics(code), \
                           r->given[0][row], r->given[1][row]);                                                        \
    }

UNARY(softmax, TSR_NORM_SOFTMAX)
UNARY(log_softmax, TSR_NORM_LOG_SOFTMAX)
UNARY(logsumexp, TSR_NORM_LOGSUMEXP)
BINARY(softmax_gradient, TSR_NORM_SOFTMAX_GRADIENT)
BINARY(log_softmax_gradient, TSR_NORM_LOG_SOFTMAX_GRADIENT)
UNARY(rms, TSR_NORM_RMS)
BINARY(rms_gradient, TSR_NORM_RMS_GRADIENT)
UNARY(layer, TSR_NORM_LAYER)
BINARY(layer_gradient, TSR_NORM_LAYER_GRADIENT)
UNARY(one, TSR_NORM_ONE)
UNARY(two, TSR_NORM_TWO)
UNARY(largest, TSR_NORM_LARGEST)
GIVEN(one_gradient, TSR_NORM_ONE_GRADIENT)
GIVEN(two_gradient, TSR_NORM_TWO_GRADIENT)
GIVEN(largest_gradient, TSR_NORM_LARGEST_GRADIENT)

#undef SUM
#undef WIDE
#undef MAKE
#undef ADD_SUMS
#undef SPLIT_MEAN
#undef SIGN
#undef UNARY
#undef BINARY
#undef GIVEN
