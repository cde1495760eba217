#include "bench/run/run.h"

#include "bench/run/idle_threads.h"
#include "cli/report.h"

#include <string.h>

/* Refuses both sizes and shapes, and neither. */
static int check_sizes(const bench_kind *kind, const tool_arguments *given)
{
    const bool shapes = given->value[OPT_SHAPE] != NULL, sizes = given->value[OPT_BEGIN] != NULL;
    if (shapes && sizes)
        return complain(EXIT_USAGE, "--shape and --begin both say how large; give one of them");
    if (!shapes && !sizes && !given->value[OPT_END])
        return complain(EXIT_USAGE, "%s needs --shape SHAPE, or sizes by --begin; try 'tessera %s --help'", kind->name,
                        kind->name);
    return EXIT_DONE;
}

/* A size of a combination, with its shape. */
typedef struct sized {
    int64_t bytes; /* 0 before the first and past the last */
    char shape[SHAPE_TEXT_BYTES];
} sized;

/* Writes the shape of about `bytes` under the layouts of `now`. */
static int print_size(const tool_arguments *now, int64_t bytes, char text[SHAPE_TEXT_BYTES])
{
    tsr_mesh *mesh;
    tsr_dtype dtype;
    tensor_shape shape;
    int status = parse_dtype(now->value[OPT_DTYPE], &dtype);
    if (status == EXIT_DONE)
        status = parse_mesh(now->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    status = choose_shape(mesh, now->value[OPT_FROM], now->value[OPT_TO], dtype, bytes, &shape);
    if (status == EXIT_DONE)
        print_shape(shape.ndim, shape.size, text);
    tsr_mesh_destroy(mesh);
    return status;
}

/* True if the current combination belongs to the table of the one before: they differ only in axes
 * that may differ within a table. */
static bool continues_table(const bench_run *run)
{
    const sweep *const s = &run->sweep;
    for (int a = s->axis_count - run->kind->within; a < s->axis_count; a++)
        if (s->axes[a].at > 0)
            return true;
    return false;
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    const int status = run->kind->measure(run, now, begins_table);
    fflush(stdout);
    run->settings.warm_seconds = 0;
    return status;
}

static bool steps_through_sizes(const bench_run *run)
{
    return run->kind->sizes == SIZES_FOR_SHAPES && run->sizes.begin > 0;
}

/* Advances to the next size with another shape: several small sizes may have one shape. */
static int next_size(const bench_run *run, sized *at)
{
    const sized before = *at;
    int status = EXIT_DONE;
    do {
        at->bytes = at->bytes > 0 ? size_range_next(&run->sizes, at->bytes) : run->sizes.begin;
        if (at->bytes > 0)
            status = print_size(&run->sweep.now, at->bytes, at->shape);
    } while (status == EXIT_DONE && at->bytes > 0 && strcmp(at->shape, before.shape) == 0);
    return status;
}

/* Measures all sizes of the current combination, or its --shape. */
static int measure_sizes(bench_run *run)
{
    bool begins_table = !continues_table(run);
    if (!steps_through_sizes(run))
        return measure(run, &run->sweep.now, begins_table);
    sized at = {.bytes = 0};
    int status = next_size(run, &at);
    while (status == EXIT_DONE && at.bytes > 0) {
        tool_arguments now = run->sweep.now;
        now.value[OPT_SHAPE] = at.shape;
        status = measure(run, &now, begins_table);
        begins_table = false;
        if (status == EXIT_DONE)
            status = next_size(run, &at);
    }
    return status;
}

/* Counts the sizes of the current combination that are measured. */
static int count_sizes(const bench_run *run, int64_t *out)
{
    *out = 1;
    if (!steps_through_sizes(run))
        return EXIT_DONE;
    sized at = {.bytes = 0};
    int status = next_size(run, &at);
    for (*out = 0; status == EXIT_DONE && at.bytes > 0; ++*out)
        status = next_size(run, &at);
    return status;
}

/* Counts the steps of all combinations, and leaves the sweep at its first. */
static int count_steps(bench_run *run)
{
    int64_t rows = 0, sizes;
    int status;
    do {
        int64_t steps = bench_settings_steps(&run->settings);
        status = count_sizes(run, &sizes);
        if (status == EXIT_DONE && run->kind->steps)
            status = run->kind->steps(run, &run->sweep.now, &steps);
        run->steps += sizes * steps;
        rows += sizes;
    } while (sweep_next(&run->sweep) && status == EXIT_DONE);
    run->single = rows == 1;
    return status;
}

int bench_run_begin(const bench_kind *kind, const tool_arguments *given, bench_run *out)
{
    *out = (bench_run){.kind = kind, .settings = kind->settings};
    int status = row_format_read(given, &out->format);
    if (status == EXIT_DONE && kind->sizes == SIZES_FOR_SHAPES)
        status = check_sizes(kind, given);
    if (status == EXIT_DONE && kind->sizes != SIZES_NONE)
        status = size_range_read(given, &out->sizes);
    if (status == EXIT_DONE)
        status = bench_settings_read(given, &out->settings);
    if (status == EXIT_DONE)
        status = sweep_begin(given, kind->axes, kind->axis_count, &out->sweep);
    return status == EXIT_DONE ? count_steps(out) : status;
}

void bench_run_finish(bench_run *run)
{
    sweep_finish(&run->sweep);
}

int bench_run_go(bench_run *run, progress *line)
{
    int status = EXIT_DONE;
    bool more = true;
    run->settings.progress = line;
    (void)idle_threads_await(); /* if they still run, measure anyway */
    while (more) {
        status = measure_sizes(run);
        more = status == EXIT_DONE && sweep_next(&run->sweep);
    }
    progress_clear(line);
    return status;
}

int bench_run_alone(const bench_kind *kind, const tool_arguments *given)
{
    bench_run run;
    progress line;
    int status = bench_run_begin(kind, given, &run);
    progress_begin(&line, run.steps);
    if (status == EXIT_DONE)
        status = bench_run_go(&run, &line);
    bench_run_finish(&run);
    return status;
}

int bench_run_print(bench_run *run, json_t *row)
{
    return print_row(run->format, row, run->rows++ == 0);
}
