#include "bench/run/sweep.h"

#include "bench/run/size_range.h"
#include "cli/parse.h"
#include "place/engines.h"

#include <stdlib.h>
#include <string.h>

/* True for options whose values contain no commas, so that they may be lists. */
static bool takes_lists(tool_option option)
{
    static const tool_option lists[] = {OPT_SHAPE,  OPT_DTYPE,  OPT_MODE,      OPT_ENGINE,
                                        OPT_DEVICE, OPT_TOKENS, OPT_HIDDEN,    OPT_INTERMEDIATE,
                                        OPT_RANKS,  OPT_KERNEL, OPT_RUN_BYTES, OPT_WEIGHTS};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i] == option)
            return true;
    return false;
}

static int add_value(sweep_list *list, const char *text, size_t length)
{
    if (list->count == MAX_GIVEN)
        return complain(EXIT_USAGE, "more than %d values are given for one option", MAX_GIVEN);
    char *const value = strndup(text, length);
    if (!value)
        return complain(EXIT_REFUSED, "there is no memory for the values of the options");
    list->values[list->count++] = value;
    return EXIT_DONE;
}

static int add_values(sweep_list *list, const char *text)
{
    int status = EXIT_DONE;
    for (const char *at = text; status == EXIT_DONE;) {
        const size_t length = takes_lists(list->option) ? strcspn(at, ",") : strlen(at);
        status = add_value(list, at, length);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return status;
}

static int read_list(const tool_arguments *given, tool_option option, sweep_list *list)
{
    int status = EXIT_DONE;
    *list = (sweep_list){.option = option};
    for (int i = 0; i < given->given_count && status == EXIT_DONE; i++)
        if (given->given[i].option == option)
            status = add_values(list, given->given[i].value);
    if (list->count == 0)
        list->count = 1;
    return status;
}

static int pair_up(sweep_axis *axis)
{
    const size_t from = axis->lists[0].count, to = axis->lists[1].count;
    if (from != to && from > 1 && to > 1)
        return complain(
            EXIT_USAGE,
            "--from is given %zu times and --to %zu times; each --from needs its --to, or one goes with all", from, to);
    axis->count = from > to ? from : to;
    return EXIT_DONE;
}

static int add_axis(const tool_arguments *given, tool_option option, sweep_axis *axis)
{
    int status = read_list(given, option, &axis->lists[0]);
    axis->list_count = 1;
    axis->count = axis->lists[0].count;
    if (status != EXIT_DONE || option != OPT_FROM)
        return status;
    status = read_list(given, OPT_TO, &axis->lists[1]);
    axis->list_count = 2;
    return status == EXIT_DONE ? pair_up(axis) : status;
}

static int check_count(tool_option option, const char *text)
{
    static const struct {
        tool_option option;
        const char *name;
    } counts[] = {{OPT_TOKENS, "--tokens"},
                  {OPT_HIDDEN, "--hidden"},
                  {OPT_INTERMEDIATE, "--intermediate"},
                  {OPT_RANKS, "--ranks"}};
    int64_t count;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].option == option)
            return parse_count(counts[i].name, text, 1, &count);
    return EXIT_DONE;
}

static int check_kernel(const char *text)
{
    static const char *const names[] = {"copy", "reduce", "reduce-to-all"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], text) == 0)
            return EXIT_DONE;
    return complain(EXIT_USAGE, "--kernel '%s' is not copy, reduce or reduce-to-all", text);
}

/* Refuses a value that does not parse, before any combination is measured. */
static int check_value(tool_option option, const char *text)
{
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_mode mode;
    tsr_mesh *mesh;
    int64_t bytes;
    if (!text)
        return EXIT_DONE;
    if (option == OPT_SHAPE)
        return parse_shape(text, &shape);
    if (option == OPT_DTYPE)
        return parse_dtype(text, &dtype);
    if (option == OPT_WEIGHTS)
        return parse_dtype_of("--weights", text, &dtype);
    if (option == OPT_MODE)
        return parse_mode(text, &mode);
    if (option == OPT_ENGINE && !engine_find(text))
        return complain_about_engine(text);
    if (option == OPT_DEVICE && !device_find(text))
        return complain_about_device(text);
    if (option == OPT_KERNEL || option == OPT_RUN_BYTES)
        return option == OPT_KERNEL ? check_kernel(text) : size_read("--run-bytes", text, &bytes);
    if (option == OPT_FROM || option == OPT_TO)
        return check_placements(option == OPT_FROM ? "--from" : "--to", text);
    if (option != OPT_MESH)
        return check_count(option, text);
    const int status = parse_mesh(text, &mesh);
    if (status == EXIT_DONE)
        tsr_mesh_destroy(mesh);
    return status;
}

static int check_values(const sweep_list *list)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < list->count && status == EXIT_DONE; i++)
        status = check_value(list->option, list->values[i]);
    return status;
}

static void apply_axis(sweep *s, const sweep_axis *axis)
{
    for (int i = 0; i < axis->list_count; i++) {
        const sweep_list *const list = &axis->lists[i];
        s->now.value[list->option] = list->values[list->count == 1 ? 0 : axis->at];
    }
}

int sweep_begin(const tool_arguments *given, const tool_option *order, int count, sweep *out)
{
    int status = EXIT_DONE;
    out->now = *given;
    for (out->axis_count = 0; out->axis_count < count && status == EXIT_DONE; out->axis_count++) {
        sweep_axis *const axis = &out->axes[out->axis_count];
        *axis = (sweep_axis){.at = 0};
        status = add_axis(given, order[out->axis_count], axis);
        for (int l = 0; l < axis->list_count && status == EXIT_DONE; l++)
            status = check_values(&axis->lists[l]);
        if (status == EXIT_DONE)
            apply_axis(out, axis);
    }
    return status;
}

void sweep_finish(sweep *s)
{
    for (int a = 0; a < s->axis_count; a++)
        for (int l = 0; l < s->axes[a].list_count; l++)
            for (size_t i = 0; i < s->axes[a].lists[l].count; i++)
                free(s->axes[a].lists[l].values[i]);
}

bool sweep_next(sweep *s)
{
    for (int a = s->axis_count - 1; a >= 0; a--) {
        sweep_axis *const axis = &s->axes[a];
        const bool carries = ++axis->at == axis->count;
        if (carries)
            axis->at = 0;
        apply_axis(s, axis);
        if (!carries)
            return true;
    }
    return false;
}

int64_t sweep_count(const sweep *s)
{
    int64_t count = 1;
    for (int a = 0; a < s->axis_count; a++)
        count *= (int64_t)s->axes[a].count;
    return count;
}
