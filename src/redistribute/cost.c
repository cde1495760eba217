#include "redistribute/cost.h"

static double link_seconds(const tsr_link *link, int64_t bytes)
{
    return bytes > 0 ? link->latency + (double)bytes / link->bandwidth : 0;
}

double tsr_cost_step(const tsr_cost_profile *profile, int64_t inside_bytes, int64_t between_bytes)
{
    const double inside = link_seconds(&profile->inside, inside_bytes), between = link_seconds(&profile->between, between_bytes);
    return inside > between ? inside : between;
}
