#include "plan/answer.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static tsr_plan_sum same(int64_t value)
{
    return (tsr_plan_sum){value, value};
}

static tsr_status count_steps(const tsr_plan *plan, tsr_plan_survey *out)
{
    out->step_count = tsr_plan_step_count(plan);
    for (size_t i = 0; i < out->step_count; i++) {
        tsr_plan_step step;
        TSR_TRY(tsr_plan_step_at(plan, i, &step));
        out->steps[i] = (tsr_plan_survey_step){step.op, step.mesh_dims, same(step.bytes_received)};
    }
    return TSR_OK;
}

/* Counts the figures of the plan's rank alone. */
static tsr_status count_rank(const tsr_plan *plan, tsr_plan_survey *out)
{
    tsr_plan_figures f;
    TSR_TRY(tsr_plan_figures_of(plan, &f));
    *out = (tsr_plan_survey){.ranks = 1,
                             .bytes_received = same(f.bytes_received),
                             .bytes_sent = same(f.bytes_sent),
                             .bytes_kept = same(f.bytes_kept),
                             .lower_bound = same(f.lower_bound),
                             .ratio = f.ratio,
                             .messages_received = f.messages_received,
                             .messages_sent = f.messages_sent,
                             .workspace_bytes = f.workspace_bytes,
                             .gather_and_slice = same(f.gather_and_slice),
                             .busiest_rank = -1,
                             .seconds = f.seconds};
    return count_steps(plan, out);
}

static tsr_status make(const plan_request *request, plan_answer *a)
{
    TSR_TRY(tsr_plan_create(request->from, request->to, &request->options, &a->plan));
    return a->one_rank ? count_rank(a->plan, &a->figures) : tsr_plan_survey_of(a->plan, &a->figures);
}

/* Replaces the library's name of the option, tsr_plan_options.nodes, by --nodes. */
static int refuse(const plan_request *request)
{
    static const char own[] = "tsr_plan_options.nodes, or those that the first mesh knows,";
    const char *const reason = tsr_status_message();
    if (!request->node || strncmp(reason, own, sizeof own - 1) != 0)
        return complain_status(EXIT_REFUSED);
    return complain(EXIT_REFUSED, "--nodes%s: give the nodes of all ranks", reason + sizeof own - 1);
}

int plan_answer_make(const plan_request *request, plan_answer *out)
{
    *out = (plan_answer){.request = request, .one_rank = request->options.rank != TSR_RANK_NONE};
    return make(request, out) == TSR_OK ? EXIT_DONE : refuse(request);
}

void plan_answer_finish(plan_answer *a)
{
    tsr_plan_destroy(a->plan);
}

char *plan_step_text(const plan_answer *a, size_t step)
{
    const size_t length = tsr_plan_step_print(a->plan, step, NULL, 0);
    char *const text = malloc(length + 1);
    if (text)
        tsr_plan_step_print(a->plan, step, text, length + 1);
    return text;
}
