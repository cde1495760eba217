#include "redistribute/cost.h"

static double link_seconds(const tsr_link *link, double bytes)
{
    return bytes > 0 ? link->latency + bytes / link->bandwidth : 0;
}

double tsr_cost_step(const tsr_cost_profile *profile, double inside_bytes, double between_bytes)
{
    const double inside = link_seconds(&profile->inside, inside_bytes), between = link_seconds(&profile->between, between_bytes);
    return inside > between ? inside : between;
}
