#include "placement/meter.h"

#include "base/settings.h"
#include "placement/print.h"

#include <tessera/sys/status.h>

#include <stdio.h>

/* Bytes for a layout in a sentence; a longer text, with many ranks or sizes, is cut. */
#define LAYOUT_TEXT 200

tsr_meter tsr_meter_of(const char *call, const tsr_layout *from, const tsr_layout *to)
{
    return (tsr_meter){call, from, to, 0, tsr_context_settings(from->context)->plan_entries};
}

tsr_status tsr_meter_refuse(const tsr_meter *meter, double wanted)
{
    char from[LAYOUT_TEXT], to[LAYOUT_TEXT] = "";
    tsr_layout_describe(meter->from, from, sizeof from);
    if (meter->to)
        tsr_layout_describe(meter->to, to, sizeof to);
    const long long set = meter->limit / (meter->plans > 0 ? meter->plans : 1);
    char allowed[64], instead[64] = "";
    (void)snprintf(allowed, sizeof allowed, meter->plans > 0 ? "%lld for a plan, %d times as many here" : "%lld", set,
                   meter->plans);
    if (meter->plans > 0)
        (void)snprintf(instead, sizeof instead, "ask for one rank's plan (tessera plan --rank), ");
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: %s%s%s: about %.0f entries of lists and steps are needed, but "
                          "tsr_context_options.plan_entries (TSR_PLAN_ENTRIES) "
                          "allows %s: raise it, %sor use layouts with fewer and longer intervals, or fewer ranks",
                          meter->call, from, meter->to ? " to " : "", to, wanted, allowed, instead);
}

tsr_status tsr_meter_take_on_way(tsr_meter *meter, int64_t count, int64_t begun, int64_t at, int64_t length)
{
    if (count <= meter->limit - meter->used) {
        meter->used += count;
        return TSR_OK;
    }
    const double taken = (double)(meter->used - begun + count), share = at > 0 ? (double)at / (double)length : 1;
    return tsr_meter_refuse(meter, (double)begun + taken / share);
}
