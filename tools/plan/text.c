#include "cli/report.h"
#include "cli/words.h"
#include "plan/answer.h"

#include <stdlib.h>

/* Prints a line of the table: the maximum and the total of bytes, or the bytes of --rank. */
static void print_row(text_buffer *to, const plan_answer *a, const char *name, tsr_plan_sum sum, const char *remark)
{
    char most[BYTES_TEXT], total[BYTES_TEXT];
    print_bytes(sum.max, most);
    print_bytes(sum.total, total);
    text_buffer_print(to, "  %-18s", name);
    if (a->one_rank)
        text_buffer_print(to, "  %s", sum.max < 0 ? "-" : most);
    else
        text_buffer_print(to, "  %-28s  %s", sum.max < 0 ? "-" : most, total);
    text_buffer_print(to, "%s%s\n", *remark != '\0' ? "; " : "", remark);
}

static void print_question(text_buffer *to, const plan_request *r, const char *shape, const char *const texts[4])
{
    const tsr_layout *const from = r->from;
    const char *const dtype = tsr_dtype_name(tsr_layout_dtype(from));
    if (tsr_mesh_equal(tsr_layout_mesh(from), tsr_layout_mesh(r->to)))
        text_buffer_print(to, "%s %s on mesh %s, from %s to %s\n", shape, dtype, texts[0], texts[1], texts[3]);
    else
        text_buffer_print(to, "%s %s, from %s on mesh %s to %s on mesh %s\n", shape, dtype, texts[1], texts[0],
                          texts[3], texts[2]);
}

/* Prints shape, dtype, meshes and layouts. */
static int print_head(text_buffer *to, const plan_answer *a)
{
    const plan_request *const r = a->request;
    char shape[SHAPE_TEXT_BYTES];
    char *const texts[4] = {mesh_text(tsr_layout_mesh(r->from)), layout_text(r->from),
                            mesh_text(tsr_layout_mesh(r->to)), layout_text(r->to)};
    int status = EXIT_DONE;
    print_shape(tsr_layout_ndim(r->from), tsr_layout_shape(r->from), shape);
    if (texts[0] && texts[1] && texts[2] && texts[3])
        print_question(to, r, shape, (const char *const *)texts);
    else
        status = complain(EXIT_REFUSED, "there is no memory for the layouts' text");
    for (int i = 0; i < 4; i++)
        free(texts[i]);
    return status;
}

static void print_relabel(text_buffer *to, const plan_request *r)
{
    const tsr_relabel_report *const report = &r->relabel;
    char given[BYTES_TEXT], chosen[BYTES_TEXT], greedy[BYTES_TEXT];
    print_bytes(report->bytes_kept_given, given);
    print_bytes(report->bytes_kept, chosen);
    print_bytes(report->bytes_kept_greedy, greedy);
    text_buffer_print(to,
                      "relabelled (%s): %s stay in place, %s in the order given, %s by greedy choice; %lld rank%s at "
                      "other coordinates\n",
                      report->method == TSR_ASSIGNMENT_EXACT ? "exact" : "greedy", chosen, given, greedy,
                      (long long)report->moved_ranks, report->moved_ranks == 1 ? "" : "s");
}

/* Prints the mesh dims in whose coordinate some sender and receiver differ, as " along mesh dims
 * dp, 1"; nothing without any. */
static void print_dims(text_buffer *to, const tsr_mesh *mesh, unsigned dims)
{
    const char *joint = (dims & (dims - 1)) != 0 ? " along mesh dims " : " along mesh dim ";
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++) {
        if ((dims >> d & 1) == 0)
            continue;
        if (tsr_mesh_name(mesh, d))
            text_buffer_print(to, "%s%s", joint, tsr_mesh_name(mesh, d));
        else
            text_buffer_print(to, "%s%d", joint, d);
        joint = ", ";
    }
}

static int print_step(text_buffer *to, const plan_answer *a, size_t index)
{
    const tsr_plan_survey_step *const step = &a->figures.steps[index];
    char *const text = plan_step_text(a, index), most[BYTES_TEXT], total[BYTES_TEXT];
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the text of a step");
    text_buffer_print(to, "  %zu. %s", index + 1, tsr_step_op_name(step->op));
    print_dims(to, tsr_layout_mesh(a->request->from), step->mesh_dims);
    text_buffer_print(to, ": %s\n", text);
    free(text);
    print_bytes(step->bytes_received.max, most);
    print_bytes(step->bytes_received.total, total);
    if (step->bytes_received.total > 0 && a->one_rank)
        text_buffer_print(to, "     it receives %s\n", total);
    else if (step->bytes_received.total > 0)
        text_buffer_print(to, "     a rank receives at most %s, all together %s\n", most, total);
    return EXIT_DONE;
}

static int print_steps(text_buffer *to, const plan_answer *a)
{
    int status = EXIT_DONE;
    text_buffer_print(to, "\nsteps\n");
    if (a->figures.step_count == 0)
        text_buffer_print(to, "  none: there is nothing to do\n");
    for (size_t i = 0; i < a->figures.step_count && status == EXIT_DONE; i++)
        status = print_step(to, a, i);
    return status;
}

/* The remark on the bytes received, against the least possible. */
static const char *judge(const plan_answer *a, char text[64])
{
    const double ratio = a->figures.ratio;
    if (ratio < 0 && a->one_rank)
        return "a rank alone has none where terms are reduced or made";
    if (ratio < 0)
        return "nothing need be received";
    if (a->figures.bytes_received.total == a->figures.lower_bound.total)
        return "ratio 1.00, the least possible";
    snprintf(text, 64, "ratio %.2f%s", ratio,
             a->request->options.objective == TSR_OBJECTIVE_TIME ? ", for less time" : "");
    return text;
}

static const char *compare_with_gather(const plan_answer *a, char text[64])
{
    const int64_t here = a->figures.bytes_received.total, there = a->figures.gather_and_slice.total;
    if (here == 0)
        return there == 0 ? "as much" : "where this move receives nothing";
    snprintf(text, 64, "%.2f times as much", (double)there / (double)here);
    return text;
}

static void print_table(text_buffer *to, const plan_answer *a)
{
    const tsr_plan_survey *const f = &a->figures;
    char remark[64], whose[32], busiest[48] = "";
    snprintf(whose, sizeof whose,
             a->one_rank     ? "rank %lld"
             : f->ranks == 1 ? "%lld rank"
                             : "%lld ranks",
             (long long)(a->one_rank ? a->request->options.rank : f->ranks));
    if (a->one_rank)
        text_buffer_print(to, "\n%s\n", whose);
    else
        text_buffer_print(to, "\n%-20s  %-28s  %s\n", whose, "at most by one", "all together");
    if (f->busiest_rank >= 0)
        snprintf(busiest, sizeof busiest, "rank %lld is the busiest", (long long)f->busiest_rank);
    print_row(to, a, "received", f->bytes_received, busiest);
    print_row(to, a, "sent", f->bytes_sent, "");
    print_row(to, a, "kept in place", f->bytes_kept, "");
    print_row(to, a, "least to receive", f->lower_bound, judge(a, remark));
    print_row(to, a, "gather and slice", f->gather_and_slice, compare_with_gather(a, remark));
}

static void print_costs(text_buffer *to, const plan_answer *a)
{
    const tsr_plan_survey *const f = &a->figures;
    char workspace[BYTES_TEXT], seconds[BYTES_TEXT];
    print_bytes((int64_t)f->workspace_bytes, workspace);
    print_seconds(f->seconds, seconds);
    const char *const most = a->one_rank ? "" : "at most ";
    text_buffer_print(to, "  %-18s  %s%lld received, %s%lld sent\n", "messages", most, (long long)f->messages_received,
                      most, (long long)f->messages_sent);
    text_buffer_print(to, "  %-18s  %s%s\n", "workspace", f->workspace_bytes > 0 ? most : "",
                      f->workspace_bytes > 0 ? workspace : "none");
    text_buffer_print(to, "  %-18s  %s by the model of the links\n", "time", seconds);
}

int plan_write_text(const plan_answer *a, text_buffer *to)
{
    const plan_request *const r = a->request;
    int status = print_head(to, a);
    if (status != EXIT_DONE)
        return status;
    text_buffer_print(to, "%s, %s\n", mode_name(r->options.mode),
                      r->options.objective == TSR_OBJECTIVE_TIME ? "least time" : "fewest bytes");
    if (r->relabelled)
        print_relabel(to, r);
    status = print_steps(to, a);
    if (status != EXIT_DONE)
        return status;
    print_table(to, a);
    print_costs(to, a);
    return EXIT_DONE;
}
