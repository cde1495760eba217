/* What a small redistribute costs when it is repeated: rendezvous and bookkeeping, hardly any bytes. */
#include "bench.h"
#include "csv.h"
#include "local.h"
#include "report.h"
#include "sweep.h"

#include <stdlib.h>
#include <tessera/sys/status.h>

#define LOOPS 11
/** About how long a loop takes where --iterations does not say how many calls it has. */
#define LOOP_SECONDS 0.02
#define WARM_SECONDS 0.3
#define FIRST_CALLS  256
/** Calls of a loop on a device whose calls only enqueue: more would wait for room in its queue. */
#define ENQUEUED_CALLS 32

typedef struct job {
    move_setup setup;
    double warm_seconds; /**< before the first loop */
    int64_t calls;       /**< in a loop; 0: found out by rank 0 */
    samples loops;
} job;

typedef struct pair {
    local from, to;
    tsr_dtensor *x, *y;
    tsr_stream stream;
} pair;

static tsr_status call(void *arg)
{
    const pair *const p = arg;
    return tsr_redistribute_into(p->x, p->y, p->stream);
}

/** Warms up for longer than a BLAS that was just loaded lets its idle threads spin, then finds the length of a loop. */
static tsr_status settle_calls(tsr_comm *comm, const job *j, bench_loop *l)
{
    const place *const p = j->setup.place;
    if (place_enqueues(p))
        l->runs = ENQUEUED_CALLS;
    TSR_TRY(bench_loop_fill(p, comm, l, j->warm_seconds));
    if (place_enqueues(p))
        l->runs = ENQUEUED_CALLS;
    else
        TSR_TRY(bench_loop_fill(p, comm, l, LOOP_SECONDS));
    if (j->calls > 0)
        l->runs = j->calls;
    return TSR_OK;
}

static tsr_status run_loops(tsr_comm *comm, job *j, pair *p)
{
    const place *const where = j->setup.place;
    const int rank = tsr_comm_rank(comm);
    bench_loop l = {call, p, FIRST_CALLS};
    TSR_TRY(settle_calls(comm, j, &l));
    for (int64_t i = 0; i < LOOPS; i++) {
        bench_seconds seconds;
        TSR_TRY(bench_time(where, comm, bench_loop_run, &l, &seconds));
        j->loops.seconds[rank * LOOPS + i] = (place_enqueues(where) ? seconds.enqueue : seconds.whole) / (double)l.runs;
    }
    if (rank == 0)
        j->calls = l.runs;
    return samples_share(&j->loops, where, comm);
}

static tsr_status make_pair(const place *where, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to, pair *p)
{
    p->stream = place_stream(where, tsr_comm_rank(comm));
    TSR_TRY(local_create(where, comm, from, &p->from));
    TSR_TRY(local_create(where, comm, to, &p->to));
    TSR_TRY(local_clear(&p->from));
    TSR_TRY(tsr_dtensor_from_local(&p->from.tensor, from, NULL, &p->x));
    return tsr_dtensor_from_local(&p->to.tensor, to, NULL, &p->y);
}

static void finish_pair(pair *p)
{
    tsr_dtensor_destroy(p->x);
    tsr_dtensor_destroy(p->y);
    local_free(&p->to);
    local_free(&p->from);
}

static tsr_status run_on_mesh(tsr_comm *comm, job *j, const tsr_mesh *mesh)
{
    const move_request *const request = &j->setup.request;
    tsr_layout *from = NULL, *to = NULL;
    pair p = {.x = NULL};
    tsr_status status = tsr_layout_parse(mesh, request->from, request->shape.ndim, request->shape.size, request->dtype, &from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, request->to, request->shape.ndim, request->shape.size, request->dtype, &to);
    if (status == TSR_OK)
        status = make_pair(j->setup.place, comm, from, to, &p);
    if (status == TSR_OK)
        status = run_loops(comm, j, &p);
    finish_pair(&p);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    return status;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    tsr_mesh *mesh;
    tsr_status status = tsr_mesh_parse(comm, NULL, j->setup.request.mesh, &mesh);
    if (status != TSR_OK)
        return status;
    status = run_on_mesh(comm, j, mesh);
    tsr_mesh_destroy(mesh);
    return status;
}

static int report_job(const job *j, row_format format, bool first)
{
    const move_setup *const s = &j->setup;
    const move_request *const request = &s->request;
    const spread seconds = samples_spread(&j->loops);
    if (!place_speaks(s->place))
        return EXIT_DONE;
    if (format != ROWS_TEXT)
        return print_row(format,
                         json_pack("{ss ss ss sI ss so ss ss ss so sI si}", "bench", "dispatch", "engine", place_engine(s->place), "device",
                                   place_device_name(s->place), "ranks", (json_int_t)tsr_mesh_count(s->mesh), "mesh", s->names.mesh,
                                   "shape", sizes_to_json(request->shape.size, request->shape.ndim), "dtype",
                                   tsr_dtype_name(request->dtype), "from", s->names.from, "to", s->names.to, "seconds",
                                   spread_to_json(seconds), "calls", (json_int_t)j->calls, "loops", LOOPS),
                         first);
    printf("# %s -> %s on mesh %s: microseconds a call, mean over %lld calls, of %d such loops\n", s->names.from, s->names.to,
           s->names.mesh, (long long)j->calls, LOOPS);
    printf("%12s %12s %12s\n%12.3f %12.3f %12.3f\n", "median", "min", "max", 1e6 * seconds.median, 1e6 * seconds.min, 1e6 * seconds.max);
    return EXIT_DONE;
}

static int run_job(const tool_arguments *given, job *j, bool first)
{
    row_format format;
    int status = row_format_read(given, &format);
    if (status == EXIT_DONE)
        status = parse_iterations(given->value[OPT_ITERATIONS], 0, &j->calls);
    if (status == EXIT_DONE)
        status = samples_create(j->setup.ranks, LOOPS, &j->loops);
    if (status != EXIT_DONE)
        return status;
    if (place_run(j->setup.place, j->setup.ranks, run_rank, j) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    else
        status = report_job(j, format, first);
    free(j->loops.seconds);
    return status;
}

static int run_one(const tool_arguments *given, bool first)
{
    job j = {.warm_seconds = first ? WARM_SECONDS : LOOP_SECONDS};
    int status = move_setup_read(given, &j.setup);
    if (status == EXIT_DONE)
        status = run_job(given, &j, first);
    move_setup_finish(&j.setup);
    return status;
}

static int run_dispatch(const tool_arguments *given)
{
    static const tool_option order[] = {OPT_ENGINE, OPT_DEVICE, OPT_MESH, OPT_FROM, OPT_DTYPE, OPT_SHAPE};
    return sweep_run(given, order, sizeof order / sizeof *order, run_one);
}

const tool_command bench_dispatch_command = {
    .name = "bench dispatch",
    .summary = "what a small repeated redistribute costs",
    .details =
        "Repeats one redistribute into the same memory. Reported is the mean of a loop of calls on its slowest rank: median, least and "
        "most of several loops, after a warm-up that plans. --iterations is the number of calls in a loop; by default a loop takes "
        "about 20 ms. With --device cuda it is what a call costs the host, which only enqueues: the GPU's work is not waited for, and a "
        "loop has 32 calls by default, so that they never wait for room in the GPU's queue.\n\n"
        "--mesh and the pair of --from and --to may be repeated, --shape, --dtype, --engine and --device may be repeated and be lists: "
        "every combination is run.",
    .examples = "  tessera bench dispatch --mesh 2 --shape 16 --dtype f32 --from 'S(0)' --to R\n"
                "  tessera bench dispatch --mesh 4 --shape 64x64 --dtype f32 --from P --to R --iterations 10000 --json\n"
                "  tessera bench dispatch --mesh 2 --shape 16,64x16,64x64 --from 'S(0)' --to R --from P --to R --csv\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(ITERATIONS) | TAKES(ENGINE) | TAKES(DEVICE) |
             TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_dispatch,
};
