#include "redistribute/schedule/plan_text.h"

#include "base/profile.h"
#include "base/text/text.h"
#include "placement/print.h"
#include "redistribute/schedule/plan.h"

#include <string.h>

/* Appends the options that are not the defaults: ranks whose layouts agree may differ in these. */
static void describe_options(const tsr_plan *plan, tsr_text *text)
{
    const tsr_plan_options *o = &plan->options;
    const tsr_cost_profile usual = tsr_cost_default();
    if (o->objective == TSR_OBJECTIVE_TIME)
        tsr_text_append(text, ", in least time");
    if (o->max_workspace > 0)
        tsr_text_append(text, ", in %zu bytes of workspace", o->max_workspace);
    if (plan->nodes) {
        tsr_text_append(text, ", ");
        tsr_node_map_append(text, plan->nodes);
    }
    if (o->no_split)
        tsr_text_append(text, ", without splitting");
    if (o->reduction == TSR_REDUCTION_ANY_ORDER)
        tsr_text_append(text, ", reduced in any order");
    if (plan->measured || memcmp(&plan->profile, &usual, sizeof usual) != 0) {
        char links[128];
        tsr_cost_print(&plan->profile, links, sizeof links);
        tsr_text_append(text, ", links %s", links);
    }
    if (plan->measured)
        tsr_text_append(text, " with tables (fingerprint %016llx)", (unsigned long long)plan->measured->hash);
}

void tsr_plan_describe_call(const void *arg, char *buffer, size_t capacity)
{
    const tsr_plan *plan = arg;
    char src[512], dst[512];
    tsr_text text = {buffer, capacity, 0};
    tsr_text_append(&text, "redistribute %s -> %s, %s", tsr_layout_describe(plan->items[0].given_src, src, sizeof src),
                    tsr_layout_describe(plan->items[0].given_dst, dst, sizeof dst),
                    plan->options.mode == TSR_MODE_DIRECT ? "direct" : "by messages");
    describe_options(plan, &text);
    if (plan->count > 1)
        tsr_text_append(&text, " (the first of %zu tensors)", plan->count);
}
