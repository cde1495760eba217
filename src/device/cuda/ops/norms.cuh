/**
 * The bodies of the kernels of softmax and of norms, a block for each row. Each thread takes every
 * TSR_CUDA_THREADS-th element into statistics of its own, in f64; they are merged as a tree of two
 * levels, in the order of threads, so that a row's results depend on the row alone.
 */
#ifndef TSR_DEVICE_CUDA_OPS_NORMS_CUH
#define TSR_DEVICE_CUDA_OPS_NORMS_CUH

#include "device/cuda/ops/pointwise.cuh"

/** Threads whose statistics the first level merges into one. */
#define TSR_CUDA_MERGED 16

struct tsr_cuda_statistics {
    double of[TSR_CUDA_STATISTICS];
};

/** What the threads of a block share: statistics of threads, and of groups of them. */
struct tsr_cuda_row_memory {
    tsr_cuda_statistics thread[TSR_CUDA_THREADS], group[TSR_CUDA_THREADS / TSR_CUDA_MERGED];
};

/** The offset of an element of a walk. */
TSR_BOTH int64_t tsr_cuda_walked(const tsr_cuda_walk &walk, const int64_t *strides, uint32_t index)
{
    int64_t offset = 0;
    for (int d = 0; d < walk.ndim; d++) {
        const uint32_t rest = d + 1 < walk.ndim ? tsr_cuda_divide(walk.by[d], index) : 0;
        offset += (int64_t)(index - rest * walk.by[d].value) * strides[d];
        index = rest;
    }
    return offset;
}

TSR_BOTH unsigned char *tsr_cuda_row_at(const tsr_cuda_norm &given, const tsr_cuda_row_view &view, uint32_t row)
{
    return view.data ? view.data + tsr_cuda_walked(given.across, view.across, row) : NULL;
}

/** Element k of a row, which begins at `row`; `missing` where the tensor is left out. */
template <typename T>
TSR_BOTH T tsr_cuda_in_row(const tsr_cuda_norm &given, const tsr_cuda_row_view &view, const unsigned char *row,
                           uint32_t k, T missing)
{
    return row ? tsr_cuda_read<T>(row + tsr_cuda_walked(given.along, view.along, k), given.storage) : missing;
}

/** e^(a - largest), where both may be infinite. */
TSR_BOTH double tsr_cuda_weigh(double a, double largest)
{
    return a == largest ? 1 : exp(a - largest);
}

TSR_BOTH void tsr_cuda_merge_exponentials(double *into, const double *from)
{
    const double largest = from[0] > into[0] ? from[0] : into[0];
    into[1] = into[1] * tsr_cuda_weigh(into[0], largest) + from[1] * tsr_cuda_weigh(from[0], largest);
    into[0] = largest;
}

/** Merges numbers of elements, means and sums of squared deviations (Chan, Golub and LeVeque, 1983)
 * and, with five statistics, sums of d and of d (x - mean). */
TSR_BOTH void tsr_cuda_merge_deviations(double *into, const double *from, int count)
{
    if (from[0] == 0)
        return;
    const double all = into[0] + from[0], part = from[0] / all;
    const double apart = from[1] - into[1], mean = into[0] == 0 ? from[1] : into[1] + apart * part;
    if (count == 5) {
        into[4] = (into[4] + (into[1] - mean) * into[3]) + (from[4] + (from[1] - mean) * from[3]);
        into[3] += from[3];
    }
    into[2] += from[2] + (into[0] == 0 ? 0 : apart * apart * (into[0] * part));
    into[1] = mean;
    into[0] = all;
}

TSR_BOTH bool tsr_cuda_is_softmax(int code)
{
    return code == TSR_CUDA_NORM_SOFTMAX || code == TSR_CUDA_NORM_LOG_SOFTMAX;
}

TSR_BOTH bool tsr_cuda_is_layer(int code)
{
    return code == TSR_CUDA_NORM_LAYER || code == TSR_CUDA_NORM_LAYER_GRADIENT;
}

TSR_BOTH void tsr_cuda_merge(const tsr_cuda_norm &given, double *into, const double *from)
{
    if (tsr_cuda_is_softmax(given.code))
        tsr_cuda_merge_exponentials(into, from);
    else if (tsr_cuda_is_layer(given.code))
        tsr_cuda_merge_deviations(into, from, given.statistics);
    else
        for (int i = 0; i < given.statistics; i++)
            into[i] += from[i];
}

/** The statistics of no elements. */
TSR_BOTH tsr_cuda_statistics tsr_cuda_nothing(const tsr_cuda_norm &given)
{
    tsr_cuda_statistics none = {{0, 0, 0, 0, 0}};
    if (tsr_cuda_is_softmax(given.code))
        none.of[0] = -INFINITY;
    return none;
}

/** The statistics of one element: `a` of the first input, `b` of the second, and its weight. */
TSR_BOTH tsr_cuda_statistics tsr_cuda_measure(int code, double a, double b, double w)
{
    switch (code) {
    case TSR_CUDA_NORM_SOFTMAX:
    case TSR_CUDA_NORM_LOG_SOFTMAX: /* NaN is never the largest; it and infinity make the sum NaN */
        return {{a == a ? a : -INFINITY, a < INFINITY ? 1 : a - a, 0, 0, 0}};
    case TSR_CUDA_NORM_SOFTMAX_GRADIENT:
        return {{a * b, 0, 0, 0, 0}};
    case TSR_CUDA_NORM_LOG_SOFTMAX_GRADIENT:
        return {{a, 0, 0, 0, 0}};
    case TSR_CUDA_NORM_RMS:
        return {{a * a, 0, 0, 0, 0}};
    case TSR_CUDA_NORM_RMS_GRADIENT:
        return {{b * b, a * w * b, 0, 0, 0}};
    case TSR_CUDA_NORM_LAYER:
        return {{1, a, 0, 0, 0}};
    default:
        return {{1, b, 0, a * w, 0}};
    }
}

/** One over the root of the mean square, or of the variance. */
TSR_BOTH double tsr_cuda_factor(const tsr_cuda_norm &given, const double *s)
{
    const double squares = tsr_cuda_is_layer(given.code) ? s[2] : s[0];
    return 1 / sqrt(squares / given.along.count + given.epsilon);
}

/** An element of the result; computed in f64, and rounded once by whoever stores it. */
TSR_BOTH double tsr_cuda_make(const tsr_cuda_norm &given, const double *s, double a, double b, double w, double bias)
{
    const double n = given.along.count, factor = tsr_cuda_factor(given, s);
    switch (given.code) {
    case TSR_CUDA_NORM_SOFTMAX:
        return exp(a - (s[0] == -INFINITY ? 0 : s[0])) / (s[0] == -INFINITY ? s[1] * 0 : s[1]);
    case TSR_CUDA_NORM_LOG_SOFTMAX:
        return a - s[0] - log(s[1]);
    case TSR_CUDA_NORM_SOFTMAX_GRADIENT:
        return (a - s[0]) * b;
    case TSR_CUDA_NORM_LOG_SOFTMAX_GRADIENT:
        return a - exp(b) * s[0];
    case TSR_CUDA_NORM_RMS:
        return a * factor * w;
    case TSR_CUDA_NORM_RMS_GRADIENT:
        return (a * w - b * (factor * factor * s[1] / n)) * factor;
    case TSR_CUDA_NORM_LAYER:
        return (a - s[1]) * factor * w + bias;
    default:
        return (a * w - s[3] / n - (b - s[1]) * (factor * factor * s[4] / n)) * factor;
    }
}

/** The parts of a block's work; its threads synchronise between them. */
enum tsr_cuda_row_phase { TSR_CUDA_MEASURE, TSR_CUDA_MERGE, TSR_CUDA_MAKE, TSR_CUDA_ROW_PHASES };

TSR_BOTH void tsr_cuda_measure_row(const tsr_cuda_norm &given, uint32_t row, uint32_t thread,
                                   tsr_cuda_row_memory *memory)
{
    const unsigned char *const a = tsr_cuda_row_at(given, given.in[0], row);
    const unsigned char *const b = tsr_cuda_row_at(given, given.in[1], row);
    tsr_cuda_statistics mine = tsr_cuda_nothing(given);
    for (uint32_t k = thread; k < given.along.count; k += TSR_CUDA_THREADS) {
        const tsr_cuda_statistics one =
            tsr_cuda_measure(given.code, tsr_cuda_in_row<double>(given, given.in[0], a, k, 0),
                             tsr_cuda_in_row<double>(given, given.in[1], b, k, 0),
                             tsr_cuda_in_row<double>(given, given.weight, given.weight.data, k, 1));
        tsr_cuda_merge(given, mine.of, one.of);
    }
    memory->thread[thread] = mine;
}

TSR_BOTH void tsr_cuda_make_row(const tsr_cuda_norm &given, uint32_t row, uint32_t thread,
                                const tsr_cuda_row_memory *memory)
{
    const unsigned char *const a = tsr_cuda_row_at(given, given.in[0], row);
    const unsigned char *const b = tsr_cuda_row_at(given, given.in[1], row);
    unsigned char *const out = tsr_cuda_row_at(given, given.out, row);
    tsr_cuda_statistics all = tsr_cuda_nothing(given);
    for (uint32_t i = 0; i < TSR_CUDA_THREADS / TSR_CUDA_MERGED; i++)
        tsr_cuda_merge(given, all.of, memory->group[i].of);
    if (given.kept && thread < TSR_CUDA_STATISTICS)
        given.kept[(int64_t)row * TSR_CUDA_STATISTICS + thread] = all.of[thread];
    for (uint32_t k = thread; given.out.data && k < given.along.count; k += TSR_CUDA_THREADS) {
        const double made = tsr_cuda_make(given, all.of, tsr_cuda_in_row<double>(given, given.in[0], a, k, 0),
                                          tsr_cuda_in_row<double>(given, given.in[1], b, k, 0),
                                          tsr_cuda_in_row<double>(given, given.weight, given.weight.data, k, 1),
                                          tsr_cuda_in_row<double>(given, given.bias, given.bias.data, k, -0.0));
        tsr_cuda_write<double>(out + tsr_cuda_walked(given.along, given.out.along, k), given.storage, made);
    }
}

TSR_BOTH void tsr_cuda_norm_row(const tsr_cuda_norm &given, uint32_t row, uint32_t thread, int phase,
                                tsr_cuda_row_memory *memory)
{
    if (phase == TSR_CUDA_MEASURE)
        tsr_cuda_measure_row(given, row, thread, memory);
    else if (phase == TSR_CUDA_MAKE)
        tsr_cuda_make_row(given, row, thread, memory);
    else if (thread < TSR_CUDA_THREADS / TSR_CUDA_MERGED) {
        memory->group[thread] = memory->thread[thread * TSR_CUDA_MERGED];
        for (uint32_t i = 1; i < TSR_CUDA_MERGED; i++)
            tsr_cuda_merge(given, memory->group[thread].of, memory->thread[thread * TSR_CUDA_MERGED + i].of);
    }
}

/** Sums over rows, for TSR_CUDA_SUM_COLUMNS elements: gradients of weight and bias. */
struct tsr_cuda_sum_memory {
    double sums[2][TSR_CUDA_SUM_LANES][TSR_CUDA_SUM_COLUMNS];
};

TSR_BOTH void tsr_cuda_sum_lane(const tsr_cuda_norm &given, uint32_t k, uint32_t lane, uint32_t column,
                                tsr_cuda_sum_memory *memory)
{
    double weight = 0, bias = 0;
    for (uint32_t row = lane; k < given.along.count && row < given.across.count; row += TSR_CUDA_SUM_LANES) {
        const double *const s = given.kept + (int64_t)row * TSR_CUDA_STATISTICS;
        const double d = tsr_cuda_in_row<double>(given, given.in[0], tsr_cuda_row_at(given, given.in[0], row), k, 0);
        const double x = tsr_cuda_in_row<double>(given, given.in[1], tsr_cuda_row_at(given, given.in[1], row), k, 0);
        weight += d * ((x - (tsr_cuda_is_layer(given.code) ? s[1] : 0)) * tsr_cuda_factor(given, s));
        bias += d;
    }
    memory->sums[0][lane][column] = weight;
    memory->sums[1][lane][column] = bias;
}

TSR_BOTH void tsr_cuda_sum_rows(const tsr_cuda_norm &given, uint32_t block, uint32_t thread, int phase,
                                tsr_cuda_sum_memory *memory)
{
    const uint32_t column = thread % TSR_CUDA_SUM_COLUMNS, lane = thread / TSR_CUDA_SUM_COLUMNS;
    const uint32_t k = block * TSR_CUDA_SUM_COLUMNS + column;
    if (phase == 0)
        return tsr_cuda_sum_lane(given, k, lane, column, memory);
    if (lane > 1 || k >= given.along.count || !given.sums[lane].data)
        return;
    double sum = 0;
    for (int i = 0; i < TSR_CUDA_SUM_LANES; i++)
        sum += memory->sums[lane][i][column];
    tsr_cuda_write<double>(given.sums[lane].data + tsr_cuda_walked(given.along, given.sums[lane].along, k),
                           given.storage, given.counted ? sum : -0.0);
}

#endif
