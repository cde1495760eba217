#include "redistribute/cost.h"

static double link_seconds(const tsr_link *link, tsr_load load)
{
    return load.steps > 0 ? load.steps * link->latency + load.bytes / link->bandwidth : 0;
}

double tsr_cost_seconds(const tsr_cost_profile *profile, tsr_load inside, tsr_load between)
{
    const double within = link_seconds(&profile->inside, inside), across = link_seconds(&profile->between, between);
    return within > across ? within : across;
}

double tsr_cost_step(const tsr_cost_profile *profile, double inside_bytes, double between_bytes)
{
    return tsr_cost_seconds(profile, (tsr_load){inside_bytes > 0, inside_bytes}, (tsr_load){between_bytes > 0, between_bytes});
}
