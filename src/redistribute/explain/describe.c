#include "base/text/decimal.h"
#include "base/text/text.h"
#include "placement/print.h"
#include "redistribute/explain/figures.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

/* "7 ranks" */
static void append_ranks(tsr_text *text, int64_t count)
{
    tsr_text_append(text, "%lld %s", (long long)count, count == 1 ? "rank" : "ranks");
}

static void append_moves(tsr_text *text, const tsr_plan *plan)
{
    char src[512], dst[512];
    for (size_t i = 0; i < plan->count; i++)
        tsr_text_append(text, "redistribute %s -> %s\n", tsr_layout_describe(plan->items[i].given_src, src, sizeof src),
                        tsr_layout_describe(plan->items[i].given_dst, dst, sizeof dst));
}

static void append_options(tsr_text *text, const tsr_plan *plan)
{
    const tsr_node_map *nodes = tsr_told_nodes(plan);
    tsr_text_append(text, "%s, %s",
                    plan->options.mode == TSR_MODE_DIRECT ? "straight out of peers' memory" : "by messages",
                    plan->options.objective == TSR_OBJECTIVE_TIME ? "for time" : "for bytes");
    if (nodes) {
        tsr_text_append(text, ", ");
        tsr_node_map_append(text, nodes);
    }
    tsr_text_append(text, "\n");
}

static void append_step(tsr_text *text, const tsr_plan *plan, size_t index, const tsr_plan_step *step)
{
    char words[512];
    tsr_plan_step_print(plan, index, words, sizeof words);
    tsr_text_append(text, "step %zu, %s: %s\n", index, tsr_step_op_name(step->op), words);
    if (step->bytes_received == 0 && step->bytes_sent == 0)
        return;
    tsr_text_append(text, "    receives %lld bytes from ", (long long)step->bytes_received);
    append_ranks(text, step->messages_received);
    tsr_text_append(text, ", sends %lld to ", (long long)step->bytes_sent);
    append_ranks(text, step->messages_sent);
    tsr_text_append(text, "\n");
}

static void append_bound(tsr_text *text, const tsr_plan_figures *f)
{
    if (f->lower_bound < 0)
        tsr_text_append(text, ", where only the total over ranks has a lower bound");
    else if (f->bytes_received == f->lower_bound)
        tsr_text_append(text, ", the least possible");
    else
        tsr_text_append(text, ", where %lld would do", (long long)f->lower_bound);
}

static void append_figures(tsr_text *text, const tsr_plan *plan, const tsr_plan_figures *f)
{
    tsr_text_append(text, "rank %lld receives %lld bytes", (long long)plan->options.rank, (long long)f->bytes_received);
    append_bound(text, f);
    tsr_text_append(text, "; sends %lld, keeps %lld\n", (long long)f->bytes_sent, (long long)f->bytes_kept);
    tsr_text_append(text, "workspace %zu bytes, ", f->workspace_bytes);
    tsr_decimal_append(text, f->seconds);
    tsr_text_append(text, " seconds by the cost model; gathering and slicing would receive %lld bytes\n",
                    (long long)f->gather_and_slice);
}

tsr_status tsr_plan_describe(const tsr_plan *plan, char *buffer, size_t capacity, size_t *length)
{
    if (!plan || !length || (!buffer && capacity > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_describe: %s is NULL",
                              !plan     ? "plan"
                              : !length ? "length"
                                        : "text");
    tsr_measure measure;
    TSR_TRY(tsr_measure_plan(plan, &measure));
    tsr_text text = {buffer, capacity, 0};
    append_moves(&text, plan);
    append_options(&text, plan);
    for (size_t i = 0; i < tsr_plan_step_count(plan); i++)
        append_step(&text, plan, i, &measure.steps[i]);
    if (plan->options.rank >= 0)
        append_figures(&text, plan, &measure.figures);
    *length = text.length;
    return TSR_OK;
}
