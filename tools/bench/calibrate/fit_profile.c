#include "bench/calibrate/fit_profile.h"

static bool fit_points(link_points points, tsr_link *link)
{
    return points.count == 0 || fit_link(points.at, points.count, link);
}

static fit_error measure_points(link_points points, const tsr_link *link)
{
    return points.count > 0 ? fit_measure(points.at, points.count, link) : (fit_error){0, 0};
}

bool fit_profile(link_points inside, link_points between, tsr_cost_profile *profile, fit_error error[2])
{
    tsr_cost_profile p = *profile;
    if (!fit_points(inside, &p.inside) || !fit_points(between, &p.between))
        return false;
    if (p.between.latency < p.inside.latency) {
        if (inside.count > 0)
            p.between.latency = p.inside.latency;
        else
            p.inside.latency = p.between.latency;
    }
    error[0] = measure_points(inside, &p.inside);
    error[1] = measure_points(between, &p.between);
    *profile = p;
    return true;
}
