/** The loops of norm_kernels.c for one dtype: T, with vectors VT and structs STATE and BANDS.
 * FN(name) names them, and EXP(x) is e^x for x up to 88. Included once for each dtype, so it has no
 * guard. */

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
        stream_bytes(block, to + done, n * (int64_t)sizeof(T));
}

/* Adds n terms to the sums `into`: `term` is an f64 of element k. */
#define ADD_LANES(into, term)                                                                                          \
    {                                                                                                                  \
        double lanes[LANES];                                                                                           \
        int64_t i = 0;                                                                                                 \
        memcpy(lanes, into, sizeof lanes);                                                                             \
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
        memcpy(into, lanes, sizeof lanes);                                                                             \
    }

/* Adds n terms to the sums `into`, four at a time: `term` is a T of element k. */
#define ADD_FOURS(into, term)                                                                                          \
    {                                                                                                                  \
        const int64_t whole = n / (4 * LANES) * (4 * LANES);                                                           \
        for (int64_t i = 0; i < whole; i += 4 * LANES)                                                                 \
            SIMD for (int j = 0; j < LANES; j++)                                                                       \
            {                                                                                                          \
                T four[4];                                                                                             \
                for (int part = 0; part < 4; part++) {                                                                 \
                    const int64_t k = i + j + part * LANES;                                                            \
                    four[part] = (term);                                                                               \
                }                                                                                                      \
                (into)[j] += WIDE((four[0] + four[1]) + (four[2] + four[3]));                                          \
            }                                                                                                          \
        for (int64_t k = whole; k < n; k++)                                                                            \
            (into)[k % LANES] += WIDE(term);                                                                           \
    }

/* A function that sums terms. */
#define SUM(name, parameters, term)                                                                                    \
    static inline double FN(name) parameters                                                                           \
    {                                                                                                                  \
        double all[LANES] = {0};                                                                                       \
        ADD_LANES(all, term)                                                                                           \
        return fold(all);                                                                                              \
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

/* Makes a row of results in blocks: element k of the row is `value`. */
#define MAKE(r, y, value)                                                                                              \
    for (int64_t done = 0; done < (r)->length; done += BLOCK) {                                                        \
        const int64_t n = (r)->length - done < BLOCK ? (r)->length - done : BLOCK;                                     \
        MAKE_BLOCK(r, y, value)                                                                                        \
    }
/* Makes one block of n results. */
#define MAKE_BLOCK(r, y, value)                                                                                        \
    {                                                                                                                  \
        T block[BLOCK], *const to = FN(begin)(r, y, done, block);                                                      \
        SIMD for (int64_t i = 0; i < n; i++)                                                                           \
        {                                                                                                              \
            const int64_t k = done + i;                                                                                \
            to[i] = (T)(value);                                                                                        \
        }                                                                                                              \
        FN(end)(r, y, done, n, block);                                                                                 \
    }

#if VECTOR
#define AT(array) (*(const VT *)((array) + k))

/* MAKE_BLOCK(), whose elements are `value`; where results are streamed, `vectors` computes VECTOR
 * bytes of them, with AT(x) in place of x[k]. So they take no room in the first-level cache. */
#define MAKE_VECTORS(r, y, value, vectors)                                                                             \
    if ((r)->streams) {                                                                                                \
        const int64_t end = done + n;                                                                                  \
        int64_t k = done;                                                                                              \
        for (; k + VECTOR / (int64_t)sizeof(T) <= end; k += VECTOR / (int64_t)sizeof(T)) {                             \
            const VT made = (vectors);                                                                                 \
            stream_vector((y) + k, &made);                                                                             \
        }                                                                                                              \
        for (; k < end; k++)                                                                                           \
            (y)[k] = (value);                                                                                          \
    } else                                                                                                             \
        MAKE_BLOCK(r, y, value)
#else
#define MAKE_VECTORS(r, y, value, vectors) MAKE_BLOCK(r, y, value)
#endif

/* A row that is measured, then made. */
typedef struct STATE {
    const T *x;
    T *y, *e; /* results; exponentials of softmax, or NULL */
    double *statistics;
    double lanes[LANES], squares[LANES];
    T largest, shift, factor, high, low;
    int64_t settled; /* softmax: from this element on, exponentials are those of the final shift */
    double logarithm;
} STATE;

/* The largest of n elements and `largest` that is not NaN. */
static inline T FN(find_largest)(const T *x, int64_t n, T largest)
{
    T lanes[2 * LANES];
    int64_t i = 0;
    for (int j = 0; j < 2 * LANES; j++)
        lanes[j] = largest;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        SIMD for (int j = 0; j < 2 * LANES; j++)
        {
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
        }
    for (int j = 0; i + j < n; j++)
        lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
#define HALVE(width)                                                                                                   \
    SIMD for (int j = 0; j < (width); j++)                                                                             \
    {                                                                                                                  \
        lanes[j] = lanes[j + (width)] > lanes[j] ? lanes[j + (width)] : lanes[j];                                      \
    }
    HALVE(16);
    HALVE(8);
    HALVE(4);
    HALVE(2);
    HALVE(1);
#undef HALVE
    return lanes[0];
}

/* From element `done` on, exponentials are e^(x - shift) for a larger element; what was added
 * before is scaled to it. The first shift scales sums of 0. */
static inline void FN(softmax_raise)(STATE *s, int64_t done, T largest)
{
    const double scale = tsr_f64_exp(WIDE(s->largest) - WIDE(largest));
    for (int j = 0; j < LANES; j++)
        s->lanes[j] *= scale;
    s->largest = s->shift = largest;
    s->settled = done;
}

/* Each block is measured with the largest element so far. So memory is read once, and few blocks
 * of a row are scaled (Milakov and Gimelshein, 2018). */
static inline void FN(softmax_measure)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    T block[BLOCK], *const e = s->e ? s->e + done : block;
    const T *const x = s->x + done, largest = FN(find_largest)(x, n, s->largest);
    double lanes[LANES];
    (void)r;
    if (largest > s->largest)
        FN(softmax_raise)(s, done, largest);
    const T shift = s->shift;
    SIMD for (int64_t k = 0; k < n; k++)
    {
        e[k] = EXP(x[k] - shift);
    }
    memcpy(lanes, s->lanes, sizeof lanes);
    ADD_FOURS(lanes, e[k])
    memcpy(s->lanes, lanes, sizeof lanes);
}

static inline void FN(softmax_measured)(const tsr_norm_rows *r, STATE *s)
{
    (void)r;
    s->statistics[0] = WIDE(s->largest);
    s->statistics[1] = fold(s->lanes);
}

static inline void FN(softmax_prepare)(const tsr_norm_rows *r, STATE *s)
{
    (void)r;
    s->shift = s->statistics[0] == -INFINITY ? 0 : (T)s->statistics[0];
    s->factor = (T)(1 / s->statistics[1]);
}

static inline void FN(softmax_make)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x, *const e = s->e, shift = s->shift, factor = s->factor;
    T *const y = s->y;
    if (r->measures && e && done >= s->settled)
        MAKE_VECTORS(r, y, e[k] * factor, AT(e) * factor)
    else
        MAKE_BLOCK(r, y, EXP(x[k] - shift) * factor)
}

/* The exponentials of a logarithm go nowhere. */
static inline void FN(log_softmax_measure)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    s->e = NULL;
    FN(softmax_measure)(r, s, done, n);
}

static inline void FN(log_softmax_measured)(const tsr_norm_rows *r, STATE *s)
{
    FN(softmax_measured)(r, s);
}

static inline void FN(log_softmax_prepare)(const tsr_norm_rows *r, STATE *s)
{
    (void)r;
    s->logarithm = tsr_f64_log(s->statistics[1]);
}

static inline void FN(log_softmax_make)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x;
    const double shift = s->statistics[0], logarithm = s->logarithm;
    MAKE_BLOCK(r, s->y, (WIDE(x[k]) - shift) - logarithm)
}

static inline void FN(logsumexp_measure)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    FN(log_softmax_measure)(r, s, done, n);
}

/* Where the largest element is infinite, the sum is too, or NaN. */
static inline void FN(logsumexp_measured)(const tsr_norm_rows *r, STATE *s)
{
    FN(softmax_measured)(r, s);
    if (s->statistics[0] == INFINITY)
        s->statistics[1] = FN(sum_sizes)(s->x, r->length);
}

static inline void FN(logsumexp_prepare)(const tsr_norm_rows *r, STATE *s)
{
    (void)r, (void)s;
}

static inline void FN(logsumexp_make)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    (void)r, (void)s, (void)done, (void)n;
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

static inline void FN(rms_measure)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x + done;
    double lanes[LANES];
    (void)r;
    memcpy(lanes, s->lanes, sizeof lanes);
    ADD_FOURS(lanes, x[k] * x[k])
    memcpy(s->lanes, lanes, sizeof lanes);
}

/* Squares that f32 cannot hold are added again in f64. */
static inline void FN(rms_measured)(const tsr_norm_rows *r, STATE *s)
{
    s->statistics[0] = fold(s->lanes);
    if (!is_safe(s->statistics[0], r->length))
        s->statistics[0] = FN(sum_squares)(s->x, r->length);
}

static inline void FN(rms_prepare)(const tsr_norm_rows *r, STATE *s)
{
    s->factor = (T)(1 / sqrt(s->statistics[0] / r->count + r->epsilon));
}

static inline void FN(rms_make)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x, *const w = r->weight, factor = s->factor;
    T *const y = s->y;
    MAKE_VECTORS(r, y, x[k] * factor * w[k], AT(x) * factor * AT(w))
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

/* Statistics of n elements: their number, their mean, and the sum of squared deviations from it. */
static inline void FN(measure_layer)(const T *x, int64_t n, double *statistics)
{
    const double mean = n ? FN(sum)(x, n) / (double)n : 0;
    statistics[0] = (double)n;
    statistics[1] = mean;
    statistics[2] = FN(sum_deviations)(x, n, mean);
}

/* The mean in two parts, so that x less the mean is rounded as if the mean were exact. */
#define SPLIT_MEAN(mean) const T high = (T)(mean), low = (T)((mean)-WIDE(high))

/* Adds deviations d from m, the mean of the row's first block: the mean is m + sum(d) / n, and the
 * sum of squared deviations sum(d^2) - sum(d)^2 / n. */
static inline void FN(layer_measure)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x + done;
    double lanes[LANES] = {0}, squares[LANES];
    (void)r;
    if (done == 0) {
        ADD_FOURS(lanes, x[k])
        s->shift = (T)(fold(lanes) / (double)n);
    }
    const T shift = s->shift;
    memcpy(lanes, s->lanes, sizeof lanes);
    memcpy(squares, s->squares, sizeof squares);
    ADD_FOURS(lanes, x[k] - shift)
    ADD_FOURS(squares, (x[k] - shift) * (x[k] - shift))
    memcpy(s->lanes, lanes, sizeof lanes);
    memcpy(s->squares, squares, sizeof squares);
}

/* Where the difference would lose more than two bits, or f32 cannot hold squares, all is added
 * again in f64. */
static inline void FN(layer_measured)(const tsr_norm_rows *r, STATE *s)
{
    const double n = (double)r->length, sum = fold(s->lanes), squares = fold(s->squares);
    s->statistics[0] = n;
    s->statistics[1] = WIDE(s->shift) + sum / n;
    s->statistics[2] = squares - sum * sum / n;
    if (!(sum * sum / n <= 0.75 * squares) || !is_safe(s->statistics[2], r->length))
        FN(measure_layer)(s->x, r->length, s->statistics);
}

static inline void FN(layer_prepare)(const tsr_norm_rows *r, STATE *s)
{
    SPLIT_MEAN(s->statistics[1]);
    s->high = high;
    s->low = low;
    s->factor = (T)(1 / sqrt(s->statistics[2] / r->count + r->epsilon));
}

static inline void FN(layer_make)(const tsr_norm_rows *r, STATE *s, int64_t done, int64_t n)
{
    const T *const x = s->x, *const w = r->weight, *const b = r->bias;
    const T high = s->high, low = s->low, factor = s->factor;
    T *const y = s->y;
    MAKE_VECTORS(r, y, (x[k] - high - low) * factor * w[k] + b[k], (AT(x) - high - low) * factor * AT(w) + AT(b))
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

#include "ops/kernels/norms/vector_norm_loops.h"

static inline void FN(begin_row)(const tsr_norm_rows *r, int64_t row, int64_t band, int statistics, STATE *s)
{
    s->x = FN(row)(r, 0, row);
    s->y = FN(result)(r, row);
    s->statistics = r->statistics + row * statistics;
    s->e = r->exponentials ? (T *)r->exponentials + row % (2 * band) * r->length : NULL;
    memset(s->lanes, 0, sizeof s->lanes);
    memset(s->squares, 0, sizeof s->squares);
    s->largest = -(T)INFINITY;
    s->shift = 0;
    s->settled = 0;
}

/* The states of two bands of rows, and how many rows of each there are. */
typedef struct BANDS {
    STATE *first, *last;
    int64_t measured, made;
    int64_t ahead, next; /* elements from one to that fetched for it, and to that in a later band */
} BANDS;

/* Asks for n elements that are read AHEAD bytes later: of the row, or of one in a later band. */
static inline void FN(fetch_row)(const tsr_norm_rows *r, const BANDS *b, const T *x, int64_t done, int64_t n)
{
    const int64_t at = done + b->ahead;
    fetch(x + (at < r->length ? at : at - r->length + b->next), (size_t)n * sizeof(T));
}

/* Rows in a pipeline: blocks of a band of rows are measured while those of the band before are
 * made. So memory is read, written and computed with all the time. */
#define PIPELINE(name, code)                                                                                           \
    static inline void FN(name##_block)(const tsr_norm_rows *r, const BANDS *b, int64_t band, int64_t done, int64_t n) \
    {                                                                                                                  \
        for (int64_t i = 0; i < band; i++) {                                                                           \
            if (i < b->measured && r->streams)                                                                         \
                FN(fetch_row)(r, b, b->first[i].x, done, n);                                                           \
            if (i < b->measured && r->measures)                                                                        \
                FN(name##_measure)(r, &b->first[i], done, n);                                                          \
            if (i < b->made)                                                                                           \
                FN(name##_make)(r, &b->last[i], done, n);                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        STATE states[2][TSR_NORM_BAND];                                                                                \
        const int64_t band = tsr_norm_band(r->length * (int64_t)sizeof(T));                                            \
        const int64_t end = (r->rows + band - 1) / band * band, most = AHEAD / (int64_t)sizeof(T);                     \
        const int64_t bands = r->length && most > band * r->length ? most / (band * r->length) : 1;                    \
        for (int64_t row = 0; row <= end; row += band) {                                                               \
            const int64_t turn = row / band;                                                                           \
            const BANDS b = {.first = states[turn % 2],                                                                \
                             .last = states[(turn + 1) % 2],                                                           \
                             .measured = count_rows(r, row, band),                                                     \
                             .ahead = r->length < most ? r->length : most,                                             \
                             .next = bands * band * r->in_step[0],                                                     \
                             .made = r->makes ? count_rows(r, row - band, band) : 0};                                  \
            int64_t done = 0;                                                                                          \
            for (int64_t i = 0; i < b.measured; i++)                                                                   \
                FN(begin_row)(r, row + i, band, tsr_norm_statistics(code), &b.first[i]);                               \
            for (; done + BLOCK <= r->length; done += BLOCK)                                                           \
                FN(name##_block)(r, &b, band, done, BLOCK);                                                            \
            if (done < r->length)                                                                                      \
                FN(name##_block)(r, &b, band, done, r->length - done);                                                 \
            for (int64_t i = 0; i < b.measured; i++) {                                                                 \
                if (r->measures)                                                                                       \
                    FN(name##_measured)(r, &b.first[i]);                                                               \
                if (r->makes)                                                                                          \
                    FN(name##_prepare)(r, &b.first[i]);                                                                \
            }                                                                                                          \
        }                                                                                                              \
        if (r->streams)                                                                                                \
            stream_finish();                                                                                           \
    }
/* All rows of an op with one operand, with two, and of a norm's gradient. */
#define UNARY(name, code)                                                                                              \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)                                                                                             \
        (r, FN(row)(r, 0, row), FN(result)(r, row), r->statistics + row * tsr_norm_statistics(code));                  \
    }
#define BINARY(name, code)                                                                                             \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)                                                                                             \
        (r, FN(row)(r, 0, row), FN(row)(r, 1, row), FN(result)(r, row),                                                \
         r->statistics + row * tsr_norm_statistics(code));                                                             \
        if (r->streams)                                                                                                \
            stream_finish();                                                                                           \
    }
#define GIVEN(name, code)                                                                                              \
    static void FN(name)(const tsr_norm_rows *r)                                                                       \
    {                                                                                                                  \
        for (int64_t row = 0; row < r->rows; row++)                                                                    \
            FN(name##_row)                                                                                             \
        (r, FN(row)(r, 0, row), FN(result)(r, row), r->statistics + row * tsr_norm_statistics(code), r->given[0][row], \
         r->given[1][row]);                                                                                            \
        if (r->streams)                                                                                                \
            stream_finish();                                                                                           \
    }

PIPELINE(softmax, TSR_NORM_SOFTMAX)
PIPELINE(log_softmax, TSR_NORM_LOG_SOFTMAX)
PIPELINE(logsumexp, TSR_NORM_LOGSUMEXP)
BINARY(softmax_gradient, TSR_NORM_SOFTMAX_GRADIENT)
BINARY(log_softmax_gradient, TSR_NORM_LOG_SOFTMAX_GRADIENT)
PIPELINE(rms, TSR_NORM_RMS)
BINARY(rms_gradient, TSR_NORM_RMS_GRADIENT)
PIPELINE(layer, TSR_NORM_LAYER)
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
#undef MAKE_VECTORS
#undef AT
#undef MAKE_BLOCK
#undef ADD_LANES
#undef PIPELINE
#undef ADD_SUMS
#undef SPLIT_MEAN
#undef UNARY
#undef BINARY
#undef GIVEN
