/** The loops of norms of vectors, with what norm_loops.h defines. */

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

#undef SIGN
