#include "bench/moves/moves.h"

#include "bench/moves/columns.h"
#include "cli/report.h"

const tool_option move_axes[MOVE_AXES] = {OPT_ENGINE, OPT_DEVICE, OPT_MODE, OPT_MESH, OPT_FROM, OPT_DTYPE, OPT_SHAPE};

static json_t *spread_or_nulls(row_format format, bool exists, spread s)
{
    if (exists)
        return spread_to_json(s);
    return format == ROWS_CSV ? json_pack("{sn sn sn}", "median", "min", "max") : json_null();
}

static json_t *row_to_json(row_format format, const move_bench *b, const move_figures *f)
{
    const move_setup *const s = &b->setup;
    const move_request *const request = &s->request;
    json_t *row = json_pack(
        "{ss ss ss ss sI ss so ss ss ss sI so sf sf sf ss sI so sf sf so sI sI sI ss sf sf so}", "bench", b->way->bench,
        "engine", place_engine(s->place), "device", place_device_name(s->place), "mode", mode_name(request->mode),
        "ranks", (json_int_t)tsr_mesh_count(s->mesh), "mesh", s->names.mesh, "shape",
        sizes_to_json(request->shape.size, request->shape.ndim), "dtype", tsr_dtype_name(request->dtype), "from",
        s->names.from, "to", s->names.to, "payload_bytes", (json_int_t)b->result.bytes, "seconds",
        spread_to_json(f->time), "bandwidth", f->bandwidth, "peak_bandwidth", f->peak_bandwidth, "of_peak", f->of_peak,
        "peak_copy", f->peak_copy, "iterations", (json_int_t)b->settings.iterations, "wrong",
        b->settings.checks ? json_integer(f->wrong) : json_null(), "limit_bandwidth", f->limit_bandwidth, "of_limit",
        f->of_limit, "enqueue_seconds", spread_or_nulls(format, place_enqueues(s->place), f->enqueue), "warm_ups",
        (json_int_t)b->settings.warm_ups, "calls", (json_int_t)b->result.calls, "size_bytes", (json_int_t)f->size,
        "redop", f->reduction, "algbw", f->algbw, "busbw", f->busbw, "ratio",
        f->ratio < 0 ? json_null() : json_real(f->ratio));
    /* the former name of "iterations" in rows of dispatch */
    if (b->way->dtensors) {
        row = json_with_field(row, "loops", json_integer(b->settings.iterations));
        row = json_with_field(row, "new_result", json_boolean(b->way->new_results));
        row = json_with_field(row, "kept_hits", json_integer((json_int_t)b->kept.hits));
        row = json_with_field(row, "kept_misses", json_integer((json_int_t)b->kept.misses));
    }
    return row;
}

/* True if --shape has several values: rows of one size are then told apart by a line with the
 * shape. */
static bool steps_through_shapes(const bench_run *run)
{
    for (int a = 0; a < run->sweep.axis_count; a++)
        if (run->sweep.axes[a].lists[0].option == OPT_SHAPE)
            return run->sweep.axes[a].count > 1;
    return false;
}

/* Prints a row; in a table, the names of the columns before it if a new table begins. */
static int print_figures(bench_run *run, const move_bench *b, const move_figures *f, bool begins_table)
{
    if (run->format != ROWS_TEXT)
        return bench_run_print(run, row_to_json(run->format, b, f));
    if (begins_table)
        columns_begin(b, f, run->single);
    if (steps_through_shapes(run))
        columns_name_shape(b);
    columns_print(b, f);
    return EXIT_DONE;
}

static int report(bench_run *run, move_bench *b, bool begins_table)
{
    move_figures f;
    int status = move_bench_sum_up(b, &f);
    if (status != EXIT_DONE)
        return status;
    if (!place_speaks(b->setup.place))
        return f.wrong > 0 ? EXIT_REFUSED : EXIT_DONE;
    status = print_figures(run, b, &f, begins_table);
    if (status == EXIT_DONE && f.wrong > 0)
        return complain(EXIT_REFUSED, "%lld elements are not what %s -> %s must give", (long long)f.wrong,
                        b->setup.names.from, b->setup.names.to);
    return status;
}

int bench_moves_measure(bench_run *run, const tool_arguments *now, bool begins_table, const move_way *way)
{
    move_bench b;
    int status = move_bench_run(now, &run->settings, way, &b);
    if (status == EXIT_DONE)
        status = report(run, &b, begins_table);
    move_bench_finish(&b);
    return status;
}
