#include "base/links.h"

#include "base/text/decimal.h"
#include "base/text/text.h"

#include <tessera/sys/status.h>

#include <math.h>

#define NUMBER_BYTES 32

tsr_cost_profile tsr_cost_default(void)
{
    return (tsr_cost_profile){.inside = {0.5e-6, 16e9}, .between = {5e-6, 12.5e9}};
}

static const char *number(double value, char text[NUMBER_BYTES])
{
    tsr_text out = {text, NUMBER_BYTES, 0};
    tsr_decimal_append(&out, value);
    return text;
}

static tsr_status check_link(const char *source, const char *name, const tsr_link *link)
{
    char text[NUMBER_BYTES];
    if (!isfinite(link->latency) || link->latency < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s.latency is %s; it is a number of seconds, 0 or more", source,
                              name, number(link->latency, text));
    if (!isfinite(link->bandwidth) || link->bandwidth <= 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %s.bandwidth is %s; it is a number of bytes a second, more than 0", source, name,
                              number(link->bandwidth, text));
    return TSR_OK;
}

tsr_status tsr_profile_check(const char *source, const tsr_cost_profile *profile)
{
    char inside[NUMBER_BYTES], between[NUMBER_BYTES];
    TSR_TRY(check_link(source, "inside", &profile->inside));
    TSR_TRY(check_link(source, "between", &profile->between));
    if (profile->inside.latency > profile->between.latency)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: inside.latency is %s, more than between.latency, %s; the model needs a step inside a node to begin no "
            "later than one between nodes",
            source, number(profile->inside.latency, inside), number(profile->between.latency, between));
    return TSR_OK;
}
