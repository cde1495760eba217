#include "redistribute/match/cost.h"

void tsr_load_add(tsr_load *load, double bytes)
{
    load->steps += bytes > 0;
    load->bytes += bytes;
}

static double link_seconds(const tsr_link *link, tsr_load load)
{
    return load.steps > 0 ? load.steps * link->latency + load.bytes / link->bandwidth : 0;
}

double tsr_cost_seconds(const tsr_cost_profile *profile, tsr_load inside, tsr_load between)
{
    const double within = link_seconds(&profile->inside, inside), across = link_seconds(&profile->between, between);
    return within > across ? within : across;
}
