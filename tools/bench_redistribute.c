/* How fast redistributions are, next to plain copies of as many bytes in the same run, and whether they were right: one, or a sweep over
 * meshes, placements, dtypes, sizes, engines, devices and modes. */
#include "columns.h"
#include "csv.h"
#include "report.h"
#include "size_range.h"
#include "sweep.h"

#define ITERATIONS 11
#define WARM_UPS   2

typedef struct job {
    row_format format;
    size_range sizes;
    bench_settings settings;
    progress progress;
    int64_t rows; /**< printed so far */
    bool single;  /**< there will be one row */
    sweep sweep;
} job;

static json_t *spread_or_nulls(const job *j, bool exists, spread s)
{
    if (exists)
        return spread_to_json(s);
    return j->format == ROWS_CSV ? json_pack("{sn sn sn}", "median", "min", "max") : json_null();
}

static json_t *row_to_json(const job *j, const move_bench *b, const move_figures *f)
{
    const move_setup *const s = &b->setup;
    const move_request *const request = &s->request;
    return json_pack("{ss ss ss ss sI ss so ss ss ss sI so sf sf sf ss sI so sf sf so sI sI sI ss sf sf so}", "bench", "redistribute",
                     "engine", place_engine(s->place), "device", place_device_name(s->place), "mode", mode_name(request->mode), "ranks",
                     (json_int_t)tsr_mesh_count(s->mesh), "mesh", s->names.mesh, "shape",
                     sizes_to_json(request->shape.size, request->shape.ndim), "dtype", tsr_dtype_name(request->dtype), "from",
                     s->names.from, "to", s->names.to, "payload_bytes", (json_int_t)b->peak.payload, "seconds", spread_to_json(f->seconds),
                     "bandwidth", f->bandwidth, "peak_bandwidth", f->peak_bandwidth, "of_peak", f->of_peak, "peak_copy", f->peak_copy,
                     "iterations", (json_int_t)b->settings.iterations, "wrong", b->settings.checks ? json_integer(f->wrong) : json_null(),
                     "limit_bandwidth", f->limit_bandwidth, "of_limit", f->of_limit, "enqueue_seconds",
                     spread_or_nulls(j, place_enqueues(s->place), f->enqueue), "warm_ups", (json_int_t)b->settings.warm_ups, "calls",
                     (json_int_t)b->calls, "size_bytes", (json_int_t)f->size, "redop", f->reduction, "algbw", f->algbw, "busbw", f->busbw,
                     "ratio", f->ratio < 0 ? json_null() : json_real(f->ratio));
}

/** The columns' names come again where a row differs from the one before in more than its size. */
static int print_figures(job *j, const move_bench *b, const move_figures *f, bool same_table)
{
    if (j->format != ROWS_TEXT)
        return print_row(j->format, row_to_json(j, b, f), j->rows == 0);
    if (!same_table)
        columns_begin(b, f, j->single);
    columns_print(b, f);
    return EXIT_DONE;
}

static int report(job *j, move_bench *b, bool same_table)
{
    move_figures f;
    int status = move_bench_sum_up(b, &f);
    if (status != EXIT_DONE)
        return status;
    progress_clear(&j->progress);
    if (!place_speaks(b->setup.place))
        return f.wrong > 0 ? EXIT_REFUSED : EXIT_DONE;
    status = print_figures(j, b, &f, same_table);
    fflush(stdout);
    j->rows++;
    if (status == EXIT_DONE && f.wrong > 0)
        return complain(EXIT_REFUSED, "%lld elements are not what %s -> %s must give", (long long)f.wrong, b->setup.names.from,
                        b->setup.names.to);
    return status;
}

static int run_one(job *j, const tool_arguments *given, bool same_table)
{
    move_bench b;
    int status = move_bench_run(given, &j->settings, &b);
    if (status == EXIT_DONE)
        status = report(j, &b, same_table);
    else
        progress_clear(&j->progress);
    move_bench_finish(&b);
    return status;
}

/** The shape of so many bytes under the layouts that are at hand. */
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

/** The sizes of one combination, or the shape that is its own. Dtypes and shapes, which are stepped last, go on with a table. */
static int run_sizes(job *j)
{
    const sweep_axis *const last = &j->sweep.axes[j->sweep.axis_count - 1];
    const bool same_table = last[0].at > 0 || last[-1].at > 0;
    if (j->sizes.begin == 0)
        return run_one(j, &j->sweep.now, same_table);
    int status = EXIT_DONE;
    for (int64_t size = j->sizes.begin; size > 0 && status == EXIT_DONE; size = size_range_next(&j->sizes, size)) {
        char text[SHAPE_TEXT_BYTES];
        tool_arguments now = j->sweep.now;
        status = print_size(&now, size, text);
        now.value[OPT_SHAPE] = text;
        if (status == EXIT_DONE)
            status = run_one(j, &now, same_table || size > j->sizes.begin);
    }
    return status;
}

static int read_settings(const tool_arguments *given, bench_settings *s)
{
    s->warm_ups = WARM_UPS;
    int status = parse_iterations(given->value[OPT_ITERATIONS], ITERATIONS, &s->iterations);
    if (status == EXIT_DONE && given->value[OPT_WARM_UP] != NULL)
        status = parse_index("--warm-up", given->value[OPT_WARM_UP], &s->warm_ups);
    if (status == EXIT_DONE && s->warm_ups > MAX_ITERATIONS)
        return complain(EXIT_REFUSED, "--warm-up is %s; %lld are the most", given->value[OPT_WARM_UP], (long long)MAX_ITERATIONS);
    return status == EXIT_DONE ? parse_check(given->value[OPT_CHECK], &s->checks) : status;
}

/** Sizes or shapes, one of the two. */
static int check_sizes(const tool_arguments *given)
{
    if (given->value[OPT_SHAPE] != NULL && given->value[OPT_BEGIN] != NULL)
        return complain(EXIT_USAGE, "--shape and --begin both say how large; give one of them");
    if (given->value[OPT_SHAPE] == NULL && given->value[OPT_BEGIN] == NULL && given->value[OPT_END] == NULL)
        return complain(EXIT_USAGE, "bench redistribute needs --shape SHAPE, or sizes by --begin; try 'tessera bench redistribute --help'");
    return EXIT_DONE;
}

static int run_sweep(job *j)
{
    const int64_t rows = sweep_count(&j->sweep) * (j->sizes.begin > 0 ? size_range_count(&j->sizes) : 1);
    int status = EXIT_DONE;
    bool more = true;
    j->single = rows == 1;
    progress_begin(&j->progress, rows * (j->settings.iterations + j->settings.warm_ups));
    j->settings.progress = &j->progress;
    while (more) {
        status = run_sizes(j);
        more = status == EXIT_DONE && sweep_next(&j->sweep);
    }
    return status;
}

static int run_bench(const tool_arguments *given)
{
    static const tool_option order[] = {OPT_ENGINE, OPT_DEVICE, OPT_MODE, OPT_MESH, OPT_FROM, OPT_DTYPE, OPT_SHAPE};
    job j = {.rows = 0};
    int status = row_format_read(given, &j.format);
    if (status == EXIT_DONE)
        status = check_sizes(given);
    if (status == EXIT_DONE)
        status = size_range_read(given, &j.sizes);
    if (status == EXIT_DONE)
        status = read_settings(given, &j.settings);
    if (status != EXIT_DONE)
        return status;
    status = sweep_begin(given, order, sizeof order / sizeof *order, &j.sweep);
    if (status == EXIT_DONE)
        status = run_sweep(&j);
    sweep_finish(&j.sweep);
    return status;
}

const tool_command bench_redistribute_command = {
    .name = "bench redistribute",
    .summary = "how fast a move is, next to plain copies, and whether it is right",
    .details =
        "Times are those of the slowest rank from barrier to barrier, medians after a warm-up; calls that take less than 0.2 ms are made "
        "so often in between, and the mean is taken. bandwidth is the payload, the bytes of all "
        "destination shards, over that; the peak that it is compared with is the best plain copy (memcpy or non-temporal stores, by its "
        "median) of as many bytes, by as many threads as ranks but at most the cores, in turns with the moves. The limit is the rate of a "
        "move that reads every term of the source once and writes every result once, as fast as the copy moves bytes. After the last move "
        "every element is compared with what its global index says that it must be: #wrong.\n\n"
        "On GPUs the copy is the device's own, from device to device; streams are idle before either barrier, and what the call costs the "
        "host, which only enqueues, is reported beside.\n\n"
        "The columns are those of nccl-tests. size is the largest shard of any rank, before or after: what nccl-tests calls size for the "
        "all-gather, reduce-scatter, all-reduce and all-to-all that S(0) to R, P to S(0), P to R and S(0) to S(1) are. algbw is size over "
        "time; busbw is the most bytes that any rank receives from others over time, hence algbw times (n-1)/n or 2(n-1)/n for them. "
        "ratio is the bytes that all ranks receive over the least possible; of_peak and of_limit are shares of the copy's rate and of the "
        "limit; noise is half of what the times spread over, relative to their median.\n\n"
        "A sweep: -b, -e and -f take the place of --shape and step through sizes, of matrices that are about square; --mesh and the pair "
        "of "
        "--from and --to may be repeated; --shape, --dtype, --mode, --engine and --device may be repeated and be lists. Every combination "
        "is run, sizes fastest.",
    .examples =
        "  tessera bench redistribute --mesh 2 --shape 8192x8192 --dtype f32 --from 'S(0)' --to 'S(1)'\n"
        "  tessera bench redistribute --mesh 2x2 --shape 4096x4096 --dtype bf16 --from 'P,R' --to 'S(0),S(1)' --iterations 21 --json\n"
        "  tessera bench redistribute --mesh 2 -b 64 -e 256M -f 4 -n 21 -w 5 -c 1 --dtype f32,bf16 --from 'S(0)' --to R --from P --to R\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) |
             TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CHECK) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO),
    .run = run_bench,
};
