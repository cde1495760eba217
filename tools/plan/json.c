#include "cli/report.h"
#include "plan/answer.h"

#include <stdlib.h>

/* A number; null if it is negative, which stands for unknown. */
static json_t *number_or_null(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *sum_to_json(tsr_plan_sum sum)
{
    return json_pack("{so sI}", "max", number_or_null(sum.max), "total", (json_int_t)sum.total);
}

static json_t *layout_to_json(const tsr_layout *layout)
{
    return json_pack("{so so}", "mesh", mesh_to_json(tsr_layout_mesh(layout)), "placements",
                     placements_to_json(layout));
}

static json_t *dims_to_json(unsigned dims)
{
    int64_t list[TSR_MAX_DIMS];
    int count = 0;
    for (int d = 0; d < TSR_MAX_DIMS; d++)
        if ((dims >> d & 1) != 0)
            list[count++] = d;
    return sizes_to_json(list, count);
}

static json_t *steps_to_json(const plan_answer *a)
{
    json_t *array = json_array();
    for (size_t i = 0; i < a->figures.step_count; i++) {
        const tsr_plan_survey_step *const step = &a->figures.steps[i];
        char *const text = plan_step_text(a, i);
        array = json_with_item(array, !text ? NULL
                                            : json_pack("{ss so so ss}", "op", tsr_step_op_name(step->op), "mesh_dims",
                                                        dims_to_json(step->mesh_dims), "bytes_received",
                                                        sum_to_json(step->bytes_received), "text", text));
        free(text);
    }
    return array;
}

/* A list of transfers, written one by one, since a rank of a large mesh may have millions. */
typedef struct transfer_list {
    text_buffer *to;
    const char *peer; /* "from", "to" */
    const char *joint;
} transfer_list;

static tsr_status write_transfer(const tsr_plan_transfer *t, void *user)
{
    transfer_list *const list = user;
    text_buffer_print(list->to, "%s{\"step\": %zu, \"%s\": %lld, \"box\": [", list->joint, t->step, list->peer,
                      (long long)t->peer);
    for (int d = 0; d < t->ndim; d++)
        text_buffer_print(list->to, "%s[%lld, %lld]", d > 0 ? ", " : "", (long long)t->begin[d], (long long)t->end[d]);
    text_buffer_print(list->to, "], \"bytes\": %lld}", (long long)t->bytes);
    list->joint = ", ";
    return TSR_OK;
}

/* Writes the last fields of the object: the transfers that --rank receives and sends. */
static int write_transfers(const tsr_plan *plan, text_buffer *to)
{
    transfer_list receives = {to, "from", ""}, sends = {to, "to", ""};
    text_buffer_print(to, ", \"receives\": [");
    if (tsr_plan_visit_receives(plan, write_transfer, &receives) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    text_buffer_print(to, "], \"sends\": [");
    if (tsr_plan_visit_sends(plan, write_transfer, &sends) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    text_buffer_print(to, "]}\n");
    return EXIT_DONE;
}

static json_t *relabel_to_json(const plan_request *r)
{
    const tsr_relabel_report *const report = &r->relabel;
    return json_pack("{ss s{sI sI sI} sI so}", "method", report->method == TSR_ASSIGNMENT_EXACT ? "exact" : "greedy",
                     "bytes_kept", "given", (json_int_t)report->bytes_kept_given, "chosen",
                     (json_int_t)report->bytes_kept, "greedy", (json_int_t)report->bytes_kept_greedy, "moved_ranks",
                     (json_int_t)report->moved_ranks, "ranks", ranks_to_json(tsr_layout_mesh(r->to)));
}

/* Adds the fields of --relabel, and "rank" with --rank or "busiest_rank" without. */
static json_t *with_extras(const plan_answer *a, json_t *json)
{
    const plan_request *const r = a->request;
    if (r->relabelled)
        json = json_with_field(json, "relabel", relabel_to_json(r));
    if (a->one_rank)
        return json_with_field(json, "rank", json_integer(r->options.rank));
    return json_with_field(json, "busiest_rank", number_or_null(a->figures.busiest_rank));
}

static json_t *question_to_json(const plan_request *r)
{
    return json_pack("{so ss ss ss so so}", "shape", sizes_to_json(tsr_layout_shape(r->from), tsr_layout_ndim(r->from)),
                     "dtype", tsr_dtype_name(tsr_layout_dtype(r->from)), "mode", mode_name(r->options.mode),
                     "objective", objective_name(r->options.objective), "from", layout_to_json(r->from), "to",
                     layout_to_json(r->to));
}

static json_t *figures_to_json(const plan_answer *a)
{
    const tsr_plan_survey *const f = &a->figures;
    json_t *const bound = a->one_rank && f->lower_bound.max < 0 ? json_null() : sum_to_json(f->lower_bound);
    return json_pack("{so so so so so so s{sI} sI sf so}", "steps", steps_to_json(a), "bytes_received",
                     sum_to_json(f->bytes_received), "bytes_sent", sum_to_json(f->bytes_sent), "bytes_kept",
                     sum_to_json(f->bytes_kept), "lower_bound", bound, "ratio",
                     f->ratio < 0 ? json_null() : json_real(f->ratio), "messages_received", "max",
                     (json_int_t)f->messages_received, "workspace_bytes", (json_int_t)f->workspace_bytes, "seconds",
                     f->seconds, "gather_and_slice", sum_to_json(f->gather_and_slice));
}

/* The answer without the transfers; NULL if there is no memory. */
static json_t *answer_to_json(const plan_answer *a)
{
    return with_extras(a, json_with_fields(question_to_json(a->request), figures_to_json(a)));
}

int plan_write_json(const plan_answer *a, text_buffer *to)
{
    json_t *const json = answer_to_json(a);
    if (!a->one_rank)
        return write_json(json, to);
    const int status = write_open_json(json, to);
    return status == EXIT_DONE ? write_transfers(a->plan, to) : status;
}
