#include "bench/calibrate/fit.h"

#include "cli/order.h"

#include <math.h>

double fit_seconds(const tsr_link *link, double bytes)
{
    return link->latency + bytes / link->bandwidth;
}

/*
 * Times span five decades, and the error that matters is the factor by which the model misses a
 * time. So the fit minimizes the sum over points of
 *
 * ((a + b * bytes - t) / t)^2  =  (a * u + b * v - 1)^2,     u = 1 / t,  v = bytes / t,
 *
 * which is least squares with weights 1/t. At the minimum its derivatives by a and b are 0:
 *
 * a * Suu + b * Suv = Su, a * Suv + b * Svv = Sv.
 *
 * The sum is convex: if its minimum has a < 0, the minimum among a >= 0 has a = 0, where b = Sv /
 * Svv.
 */
bool fit_link(const fit_point *points, size_t count, tsr_link *out)
{
    double su = 0, sv = 0, suu = 0, suv = 0, svv = 0;
    for (size_t i = 0; i < count; i++) {
        const double u = 1 / points[i].seconds, v = points[i].bytes / points[i].seconds;
        su += u;
        sv += v;
        suu += u * u;
        suv += u * v;
        svv += v * v;
    }
    /* By Cauchy and Schwarz this is at least 0, and 0 only if all bytes are equal; rounding then
     * leaves a small multiple of 2^-53 of either product. */
    const double determinant = suu * svv - suv * suv;
    if (!(determinant > 1e-12 * suu * svv))
        return false;
    double a = (su * svv - sv * suv) / determinant, b = (suu * sv - suv * su) / determinant;
    if (a < 0) {
        a = 0;
        b = sv / svv;
    }
    if (!(b > 0))
        return false;
    *out = (tsr_link){.latency = a, .bandwidth = 1 / b};
    return true;
}

fit_error fit_measure(const fit_point *points, size_t count, const tsr_link *link)
{
    double errors[FIT_POINTS];
    count = count < FIT_POINTS ? count : FIT_POINTS;
    for (size_t i = 0; i < count; i++)
        errors[i] = fabs(fit_seconds(link, points[i].bytes) / points[i].seconds - 1);
    const double median = sort_to_median(errors, count);
    return (fit_error){median, errors[count - 1]};
}
