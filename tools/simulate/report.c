#include "simulate/report.h"

#include "cli/order.h"
#include "cli/report.h"
#include "files/profile.h"

#include <stdlib.h>

static json_t *sum_to_json(tsr_plan_sum sum)
{
    return json_pack("{so so}", "max", sum.max < 0 ? json_null() : json_integer(sum.max), "total",
                     sum.total < 0 ? json_null() : json_integer(sum.total));
}

static json_t *row_to_json(const simulation *s)
{
    const tsr_plan_survey *const f = &s->figures;
    const int64_t node = s->options.nodes.ranks_per_node;
    char links[LINKS_TEXT_BYTES];
    profile_print_links(s->links, links);
    return json_pack(
        "{ss sI ss so ss ss ss ss ss so ss sb sI sb sf so so so s{sI} sI}", "bench", "simulate", "ranks",
        (json_int_t)s->ranks, "mesh", s->mesh, "shape", sizes_to_json(s->shape.size, s->shape.ndim), "dtype",
        tsr_dtype_name(s->dtype), "from", s->from, "to", s->to, "mode", mode_name(s->options.mode), "objective",
        objective_name(s->options.objective), "ranks_per_node", node > 0 ? json_integer(node) : json_null(), "links",
        links, "tables", tsr_profile_has_tables(s->links), "planned", (json_int_t)s->planned, "estimated", s->estimated,
        "seconds", f->seconds, "bytes_received", sum_to_json(f->bytes_received), "lower_bound",
        sum_to_json(f->lower_bound), "ratio", f->ratio < 0 ? json_null() : json_real(f->ratio), "messages_received",
        "max", (json_int_t)f->messages_received, "workspace_bytes", (json_int_t)f->workspace_bytes);
}

static json_t *error_to_json(fit_error error)
{
    return json_pack("{sf sf}", "median", error.median, "max", error.max);
}

static json_t *measured_to_json(const simulation *s, const place *p)
{
    const measured_links *const links = s->measured_links;
    return json_pack("{ss ss si s{so so} so sf}", "engine", place_engine(p), "device", place_device_name(p), "nodes",
                     links->node_count, "links_error", "inside",
                     links->has_inside ? error_to_json(links->inside) : json_null(), "between",
                     links->node_count > 1 ? error_to_json(links->between) : json_null(), "measured_seconds",
                     spread_to_json(s->measured), "error", simulation_error(s));
}

static json_t *whole_row_to_json(const simulation *s, const place *p)
{
    return p ? json_with_fields(row_to_json(s), measured_to_json(s, p)) : row_to_json(s);
}

static int print_rows(row_format format, const simulation_rows *all)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < all->count && status == EXIT_DONE; i++)
        status = print_row(format, whole_row_to_json(&all->rows[i], all->place), i == 0);
    return status;
}

/* Prints the error of the model over all rows. */
static int print_errors(const simulation_rows *all)
{
    double *const errors = calloc(all->count, sizeof *errors);
    if (!errors)
        return complain(EXIT_REFUSED, "there is no memory for %zu errors", all->count);
    for (size_t i = 0; i < all->count; i++)
        errors[i] = simulation_error(&all->rows[i]);
    const double median = sort_to_median(errors, all->count);
    say("# relative error of the model: %.2f in the median, %.2f at worst\n", median, errors[all->count - 1]);
    free(errors);
    return EXIT_DONE;
}

static bool is_first_of_its_links(const simulation_rows *all, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (all->rows[i].measured_links == all->rows[row].measured_links)
            return false;
    return true;
}

static void print_error(const char *where, bool measured, fit_error error)
{
    if (measured)
        say("%s %.2f in the median, %.2f at worst", where, error.median, error.max);
    else
        say("%s none was measured", where);
}

static void print_links(const measured_links *links)
{
    char text[LINKS_TEXT_BYTES];
    profile_print_links(links->profile, text);
    say("# links of %d ranks on %d node%s, %s: %s\n", links->ranks, links->node_count,
        links->node_count == 1 ? "" : "s", mode_name(links->mode), text);
    say_text("#   relative error of the calibration: ");
    print_error("inside a node", links->has_inside, links->inside);
    say_text("; ");
    print_error("between nodes", links->node_count > 1, links->between);
    say_text("\n");
}

/* Prints the links of each number of ranks and mode, with their errors. */
static void print_measured_links(const simulation_rows *all)
{
    say("# engine %s, device %s\n", place_engine(all->place), place_device_name(all->place));
    for (size_t i = 0; i < all->count; i++)
        if (is_first_of_its_links(all, i))
            print_links(all->rows[i].measured_links);
}

static void print_given_links(const simulation *first)
{
    char links[LINKS_TEXT_BYTES];
    profile_print_links(first->links, links);
    say("# links: %s; ", links);
    if (first->options.nodes.ranks_per_node > 0)
        say("%lld ranks a node\n", (long long)first->options.nodes.ranks_per_node);
    else
        say_text("one node\n");
}

static void print_columns(bool measured)
{
    say("#%9s %12s %16s %7s %20s %8s %14s %17s %21s %9s %10s %14s%s", "ranks", "mesh", "shape", "type", "move", "mode",
        "time", "received", "received", "ratio", "messages", "workspace", measured ? "" : "\n");
    if (measured)
        say(" %12s %6s\n", "measured", "error");
    say("#%9s %12s %16s %7s %20s %8s %14s %17s %21s %9s %10s %14s%s", "", "", "", "", "", "", "(us)", "(most, B)",
        "(all, B)", "", "(most)", "(B)", measured ? "" : "\n");
    if (measured)
        say(" %12s\n", "(us)");
}

/* Prints a figure in a column, with ~ before an estimate. */
static void print_figure(const simulation *s, int width, const char *text)
{
    char marked[64];
    snprintf(marked, sizeof marked, "%s%s", s->estimated && text[0] != '-' ? "~" : "", text);
    say(" %*s", width, marked);
}

/* Prints a real number; "-" if it is below 0, which stands for unknown. */
static void print_real(const simulation *s, int width, int decimals, double value)
{
    char text[48] = "-";
    if (value >= 0)
        snprintf(text, sizeof text, "%.*f", decimals, value);
    print_figure(s, width, text);
}

static void print_count(const simulation *s, int width, int64_t value)
{
    char text[48] = "-";
    if (value >= 0)
        snprintf(text, sizeof text, "%lld", (long long)value);
    print_figure(s, width, text);
}

/* Prints both layouts in a column of 20, or wider: layouts have any length. */
static void print_move(const simulation *s)
{
    const int used = snprintf(NULL, 0, "%s -> %s", s->from, s->to);
    say(" %*s%s -> %s", used < 20 ? 20 - used : 0, "", s->from, s->to);
}

static void print_figures(const simulation *s, bool measured)
{
    char shape[SHAPE_TEXT_BYTES];
    const tsr_plan_survey *const f = &s->figures;
    print_shape(s->shape.ndim, s->shape.size, shape);
    say("%10lld %12s %16s %7s", (long long)s->ranks, s->mesh, shape, tsr_dtype_name(s->dtype));
    print_move(s);
    say(" %8s", mode_name(s->options.mode));
    print_real(s, 14, 2, 1e6 * f->seconds);
    print_count(s, 17, f->bytes_received.max);
    print_count(s, 21, f->bytes_received.total);
    print_real(s, 9, 3, f->ratio);
    print_count(s, 10, f->messages_received);
    print_count(s, 14, (int64_t)f->workspace_bytes);
    if (measured)
        say(" %12.2f %6.2f", 1e6 * s->measured.median, simulation_error(s));
    say_text("\n");
}

static int print_table(const simulation_rows *all)
{
    const bool measured = all->place != NULL;
    int status = EXIT_DONE;
    if (measured) {
        print_measured_links(all);
        status = print_errors(all);
    } else
        print_given_links(&all->rows[0]);
    print_columns(measured);
    for (size_t i = 0; i < all->count; i++)
        print_figures(&all->rows[i], measured);
    return status;
}

int simulation_report(row_format format, const simulation_rows *all)
{
    return format != ROWS_TEXT ? print_rows(format, all) : print_table(all);
}
