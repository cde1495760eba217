/* A column- and a row-parallel layer, forward and backward, next to the same local GEMMs called directly on every rank at once. */
#include "bench.h"
#include "bench_product.h"
#include "blas.h"
#include "csv.h"
#include "report.h"
#include "sweep.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define WARM_UPS 2

enum { FORWARD, BACKWARD, PASSES };
static const char *const pass_names[PASSES] = {"forward", "backward"};

/** x (tokens, hidden), w1 (intermediate, hidden), y1 (tokens, intermediate), w2 (hidden, intermediate), y2 and dy like x. */
enum { X, W1, Y1, W2, Y2, DY, TENSORS };

/** Memory for results, as large as these tensors here. */
enum { LIKE_Y1, LIKE_Y2, LIKE_W1, LIKE_W2, RESULTS };

enum { FORWARD_PRODUCTS = 2, PRODUCTS = 6 };

/** What the ranks share; each writes its own rows of the samples only. */
typedef struct job {
    place *place;
    const char *mesh_text;
    tsr_mesh *mesh;
    int ranks;
    int64_t tokens, hidden, intermediate;
    tsr_dtype dtype;
    samples layers[PASSES], gemms[PASSES];
} job;

/** One rank's side. */
typedef struct side {
    job *job;
    tsr_comm *comm;
    int rank;
    tsr_mesh *mesh;
    tsr_layout *layout[TENSORS];
    local memory[TENSORS];
    local result[RESULTS]; /**< of direct products and backward passes */
    tsr_linear_plan *column, *row;
    tsr_linear_backward_plan *column_backward, *row_backward;
    tsr_gemm products[PRODUCTS]; /**< those of the forward pass first */
    void *workspace;
    size_t workspace_bytes;
} side;

/** The mesh's last dim is tensor-parallel and carries `last`; the others cut the tokens, or copy the weights. */
static tsr_status make_layout(const side *s, tsr_placement others, tsr_placement last, int64_t rows, int64_t columns, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const int64_t shape[2] = {rows, columns};
    const int ndim = tsr_mesh_ndim(s->mesh);
    for (int d = 0; d < ndim; d++)
        placements[d] = d + 1 < ndim ? others : last;
    return tsr_layout_create(s->mesh, placements, 2, shape, s->job->dtype, out);
}

static tsr_status make_layouts(side *s)
{
    const job *const j = s->job;
    const tsr_placement all = tsr_replicate(), rows = tsr_shard(0), columns = tsr_shard(1);
    TSR_TRY(make_layout(s, rows, all, j->tokens, j->hidden, &s->layout[X]));
    TSR_TRY(make_layout(s, all, rows, j->intermediate, j->hidden, &s->layout[W1]));
    TSR_TRY(make_layout(s, rows, columns, j->tokens, j->intermediate, &s->layout[Y1]));
    TSR_TRY(make_layout(s, all, columns, j->hidden, j->intermediate, &s->layout[W2]));
    s->layout[Y2] = tsr_layout_retain(s->layout[X]);
    s->layout[DY] = tsr_layout_retain(s->layout[X]);
    return TSR_OK;
}

/** Small numbers that differ, exact in every dtype: no denormals, no overflow, nothing that a GEMM could skip. */
static void fill(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)(i * 37 % 101 - 50) / 512;
}

/** Fills host memory of `count` elements. */
static tsr_status fill_as(tsr_dtype dtype, int64_t count, void *staged)
{
    double *const values = malloc((size_t)count * sizeof *values + 1);
    void *self;
    if (values == NULL)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld numbers", (long long)count);
    fill(values, count);
    const tsr_status status = tsr_device_driver_table(NULL, &self)->convert(self, 0, staged, dtype, values, TSR_F64, count, NULL);
    free(values);
    return status;
}

static tsr_status make_tensor(side *s, int k)
{
    local *const l = &s->memory[k];
    void *staged;
    TSR_TRY(local_create(s->job->place, s->comm, s->layout[k], l));
    TSR_TRY(local_stage(l, &staged));
    tsr_status status = fill_as(s->job->dtype, (int64_t)(l->bytes / tsr_dtype_bytes(s->job->dtype)), staged);
    if (status == TSR_OK)
        status = local_push(l, staged);
    local_unstage(l, staged);
    return status;
}

static tsr_status make_tensors(side *s)
{
    static const int like[RESULTS] = {[LIKE_Y1] = Y1, [LIKE_Y2] = Y2, [LIKE_W1] = W1, [LIKE_W2] = W2};
    for (int k = 0; k < TENSORS; k++)
        TSR_TRY(make_tensor(s, k));
    for (int k = 0; k < RESULTS; k++) {
        TSR_TRY(local_create(s->job->place, s->comm, s->layout[like[k]], &s->result[k]));
        TSR_TRY(local_clear(&s->result[k]));
    }
    return TSR_OK;
}

static tsr_status make_plans(side *s)
{
    tsr_layout *const *const l = s->layout;
    const tsr_device device = place_device(s->job->place, s->rank);
    TSR_TRY(tsr_linear_plan_create_on(l[X], l[W1], NULL, l[Y1], device, &s->column));
    TSR_TRY(tsr_linear_plan_create_on(l[Y1], l[W2], NULL, l[Y2], device, &s->row));
    TSR_TRY(tsr_linear_backward_plan_create(l[X], l[W1], NULL, l[Y1], l[X], l[W1], NULL, device, &s->column_backward));
    return tsr_linear_backward_plan_create(l[Y1], l[W2], NULL, l[DY], l[Y1], l[W2], NULL, device, &s->row_backward);
}

/** Forward: y1 = x w1^T, y2 = y1 w2^T; backward: dy1 = dy w2, dw2 = dy^T y1, dx = dy1 w1, dw1 = dy1^T x. */
static void make_products(side *s)
{
    const local *const m = s->memory, *const r = s->result;
    const tsr_tensor *const y1 = &m[Y1].tensor;
    /* A rank outside the mesh has tensors of shape {0}. */
    const int64_t t = y1->ndim == 2 ? y1->shape[0] : 0, i = y1->ndim == 2 ? y1->shape[1] : 0, h = y1->ndim == 2 ? s->job->hidden : 0;
    const tsr_gemm products[PRODUCTS] = {
        product_make(0, 1, t, i, h, &m[X], &m[W1], &r[LIKE_Y1]),       product_make(0, 1, t, h, i, &m[Y1], &m[W2], &r[LIKE_Y2]),
        product_make(0, 0, t, i, h, &m[DY], &m[W2], &r[LIKE_Y1]),      product_make(1, 0, h, i, t, &m[DY], &m[Y1], &r[LIKE_W2]),
        product_make(0, 0, t, h, i, &r[LIKE_Y1], &m[W1], &r[LIKE_Y2]), product_make(1, 0, i, h, t, &r[LIKE_Y1], &m[X], &r[LIKE_W1]),
    };
    memcpy(s->products, products, sizeof products);
}

/** One workspace for all that runs, in turns. */
static tsr_status make_workspace(side *s)
{
    const size_t wanted[] = {tsr_linear_plan_workspace_bytes(s->column), tsr_linear_plan_workspace_bytes(s->row),
                             tsr_linear_backward_plan_workspace_bytes(s->column_backward),
                             tsr_linear_backward_plan_workspace_bytes(s->row_backward)};
    const place *const p = s->job->place;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        s->workspace_bytes = wanted[k] > s->workspace_bytes ? wanted[k] : s->workspace_bytes;
    for (int k = 0; k < PRODUCTS; k++)
        TSR_TRY(product_measure(p, s->rank, &s->products[k], &s->workspace_bytes));
    TSR_TRY(place_allocate(p, s->comm, s->workspace_bytes, &s->workspace));
    for (int k = 0; k < PRODUCTS; k++) {
        s->products[k].workspace = s->workspace;
        s->products[k].workspace_bytes = s->workspace_bytes;
    }
    return TSR_OK;
}

static tsr_status make_side(side *s)
{
    TSR_TRY(tsr_mesh_parse(s->comm, NULL, s->job->mesh_text, &s->mesh));
    TSR_TRY(make_layouts(s));
    TSR_TRY(make_plans(s));
    TSR_TRY(make_tensors(s));
    make_products(s);
    return make_workspace(s);
}

static void finish_side(side *s)
{
    if (s->workspace != NULL)
        place_release(s->job->place, s->comm, s->workspace, s->workspace_bytes);
    for (int k = 0; k < RESULTS; k++)
        local_free(&s->result[k]);
    tsr_linear_plan_destroy(s->column);
    tsr_linear_plan_destroy(s->row);
    tsr_linear_backward_plan_destroy(s->column_backward);
    tsr_linear_backward_plan_destroy(s->row_backward);
    for (int k = 0; k < TENSORS; k++) {
        local_free(&s->memory[k]);
        tsr_layout_destroy(s->layout[k]);
    }
    tsr_mesh_destroy(s->mesh);
}

static tsr_status layers_forward(void *arg)
{
    const side *const s = arg;
    const local *const t = s->memory;
    const size_t bytes = s->workspace_bytes;
    const tsr_stream stream = place_stream(s->job->place, s->rank);
    TSR_TRY(tsr_linear_plan_execute(s->column, &t[X].tensor, &t[W1].tensor, NULL, &t[Y1].tensor, s->workspace, bytes, stream));
    return tsr_linear_plan_execute(s->row, &t[Y1].tensor, &t[W2].tensor, NULL, &t[Y2].tensor, s->workspace, bytes, stream);
}

/** Gradients of x and of both weights, where the direct products leave theirs. */
static tsr_status layers_backward(void *arg)
{
    const side *const s = arg;
    const local *const t = s->memory, *const r = s->result;
    const tsr_stream stream = place_stream(s->job->place, s->rank);
    TSR_TRY(tsr_linear_backward_plan_execute(s->row_backward, &t[Y1].tensor, &t[W2].tensor, &t[DY].tensor, &r[LIKE_Y1].tensor,
                                             &r[LIKE_W2].tensor, NULL, s->workspace, s->workspace_bytes, stream));
    return tsr_linear_backward_plan_execute(s->column_backward, &t[X].tensor, &t[W1].tensor, &r[LIKE_Y1].tensor, &r[LIKE_Y2].tensor,
                                            &r[LIKE_W1].tensor, NULL, s->workspace, s->workspace_bytes, stream);
}

static tsr_status run_products(const side *s, int first, int end)
{
    for (int k = first; k < end; k++)
        TSR_TRY(product_run(s->job->place, s->rank, &s->products[k]));
    return TSR_OK;
}

static tsr_status products_forward(void *arg)
{
    return run_products(arg, 0, FORWARD_PRODUCTS);
}

static tsr_status products_backward(void *arg)
{
    return run_products(arg, FORWARD_PRODUCTS, PRODUCTS);
}

static tsr_status time_into(side *s, bench_body *body, samples *into, int64_t iteration)
{
    bench_seconds seconds;
    TSR_TRY(bench_time(s->job->place, s->comm, body, s, &seconds));
    if (iteration >= 0)
        into->seconds[s->rank * into->iterations + iteration] = seconds.whole;
    return TSR_OK;
}

/** Layers and GEMMs in turns, so that what slows the machine down slows both. */
static tsr_status run_side(side *s)
{
    static bench_body *const layers[PASSES] = {layers_forward, layers_backward}, *const products[PASSES] = {products_forward,
                                                                                                            products_backward};
    job *const j = s->job;
    TSR_TRY(make_side(s));
    for (int pass = 0; pass < PASSES; pass++) {
        for (int64_t i = -WARM_UPS; i < j->layers[pass].iterations; i++) {
            TSR_TRY(time_into(s, layers[pass], &j->layers[pass], i));
            TSR_TRY(time_into(s, products[pass], &j->gemms[pass], i));
        }
        TSR_TRY(samples_share(&j->layers[pass], j->place, s->comm));
        TSR_TRY(samples_share(&j->gemms[pass], j->place, s->comm));
    }
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.job = arg, .comm = comm, .rank = tsr_comm_rank(comm)};
    blas_enter();
    const tsr_status status = run_side(&s);
    finish_side(&s);
    return status;
}

static json_t *pass_to_json(const job *j, const char *mesh, int pass, spread seconds, spread gemm)
{
    return json_pack("{ss ss ss sI ss sI sI sI ss ss so so sf sI}", "bench", "linear", "engine", place_engine(j->place), "device",
                     place_device_name(j->place), "ranks", (json_int_t)tsr_mesh_count(j->mesh), "mesh", mesh, "tokens",
                     (json_int_t)j->tokens, "hidden", (json_int_t)j->hidden, "intermediate", (json_int_t)j->intermediate, "dtype",
                     tsr_dtype_name(j->dtype), "pass", pass_names[pass], "seconds", spread_to_json(seconds), "gemm_seconds",
                     spread_to_json(gemm), "of_gemm", seconds.median > 0 ? gemm.median / seconds.median : 0.0, "iterations",
                     (json_int_t)j->layers[pass].iterations);
}

static void report_pass(const job *j, int pass, spread seconds, spread gemm)
{
    const double flops = (pass == FORWARD ? 4.0 : 8.0) * (double)j->tokens * (double)j->hidden * (double)j->intermediate;
    printf("%10s %12.3f %12.3f %10.3f %10.1f\n", pass_names[pass], 1e3 * seconds.median, 1e3 * gemm.median, gemm.median / seconds.median,
           1e-9 * flops / seconds.median);
}

static int report_job(job *j, row_format format, bool first)
{
    if (!place_speaks(j->place))
        return EXIT_DONE;
    char *const mesh = mesh_text(j->mesh);
    if (mesh == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    if (format == ROWS_TEXT)
        printf("# column- and row-parallel layers on mesh %s: %lld x %lld -> %lld -> %lld, %s\n%10s %12s %12s %10s %10s\n", mesh,
               (long long)j->tokens, (long long)j->hidden, (long long)j->intermediate, (long long)j->hidden, tsr_dtype_name(j->dtype),
               "pass", "time (ms)", "gemm (ms)", "of gemm", "GFLOP/s");
    int status = EXIT_DONE;
    for (int pass = 0; pass < PASSES && status == EXIT_DONE; pass++) {
        const spread seconds = samples_spread(&j->layers[pass]), gemm = samples_spread(&j->gemms[pass]);
        if (format != ROWS_TEXT)
            status = print_row(format, pass_to_json(j, mesh, pass, seconds, gemm), first && pass == 0);
        else
            report_pass(j, pass, seconds, gemm);
    }
    free(mesh);
    return status;
}

static int check_dtype(const job *j)
{
    const bool enqueues = place_enqueues(j->place), half = j->dtype == TSR_F16 || j->dtype == TSR_BF16;
    if (j->dtype == TSR_F32 || j->dtype == TSR_F64 || (enqueues && half))
        return EXIT_DONE;
    return complain(EXIT_REFUSED, "--dtype %s: linear layers on device %s are %s", tsr_dtype_name(j->dtype), place_device_name(j->place),
                    enqueues ? "f64, f32, f16 and bf16" : "f32 and f64");
}

static int read_job(const tool_arguments *given, job *j)
{
    j->mesh_text = given->value[OPT_MESH];
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = parse_count("--tokens", given->value[OPT_TOKENS], 1, &j->tokens);
    if (status == EXIT_DONE)
        status = parse_count("--hidden", given->value[OPT_HIDDEN], 1, &j->hidden);
    if (status == EXIT_DONE)
        status = parse_count("--intermediate", given->value[OPT_INTERMEDIATE], 1, &j->intermediate);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &j->dtype);
    if (status == EXIT_DONE)
        status = check_dtype(j);
    if (status == EXIT_DONE && (j->tokens > INT32_MAX || j->hidden > INT32_MAX || j->intermediate > INT32_MAX))
        status = complain(EXIT_REFUSED, "--tokens, --hidden and --intermediate are at most 2^31-1, which is what the BLAS counts to");
    if (status == EXIT_DONE)
        status = parse_mesh(j->mesh_text, &j->mesh);
    return status == EXIT_DONE ? place_count_ranks(j->place, j->mesh, &j->ranks) : status;
}

static int make_samples(const tool_arguments *given, job *j)
{
    int64_t iterations;
    int status = parse_iterations(given->value[OPT_ITERATIONS], 11, &iterations);
    for (int pass = 0; pass < PASSES && status == EXIT_DONE; pass++) {
        status = samples_create(j->ranks, iterations, &j->layers[pass]);
        if (status == EXIT_DONE)
            status = samples_create(j->ranks, iterations, &j->gemms[pass]);
    }
    return status;
}

static void finish_job(job *j)
{
    for (int pass = 0; pass < PASSES; pass++) {
        free(j->layers[pass].seconds);
        free(j->gemms[pass].seconds);
    }
    tsr_mesh_destroy(j->mesh);
    place_close(j->place);
}

static int run_one(const tool_arguments *given, bool first)
{
    job j = {.ranks = 0};
    row_format format;
    int status = row_format_read(given, &format);
    if (status == EXIT_DONE)
        status = read_job(given, &j);
    if (status == EXIT_DONE)
        status = make_samples(given, &j);
    if (status == EXIT_DONE && place_run(j.place, j.ranks, run_rank, &j) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = report_job(&j, format, first);
    finish_job(&j);
    return status;
}

static int run_linear(const tool_arguments *given)
{
    static const tool_option order[] = {OPT_ENGINE, OPT_DEVICE, OPT_MESH, OPT_TOKENS, OPT_HIDDEN, OPT_INTERMEDIATE, OPT_DTYPE};
    return sweep_run(given, order, sizeof order / sizeof *order, run_one);
}

const tool_command bench_linear_command = {
    .name = "bench linear",
    .summary = "a tensor-parallel MLP next to its GEMMs called directly",
    .details = "A column-parallel layer (hidden to intermediate) and a row-parallel one (back, reduced to every rank), without bias, "
               "planned; forward, "
               "and backward for the gradients of x and of both weights. gemm is the time of the same local GEMMs called directly on every "
               "rank at once, in turns with the layers; of gemm is that over the layers' time, both medians of the slowest rank. The last "
               "dim of the mesh is tensor-parallel, the others cut the tokens.\n\n"
               "--mesh may be repeated; the sizes, --dtype, --engine and --device may be repeated and be lists: every combination is run.",
    .examples = "  tessera bench linear --mesh 2 --tokens 1024 --hidden 2048 --intermediate 8192\n"
                "  tessera bench linear --mesh dp=2,tp=2 --tokens 512 --hidden 1024 --intermediate 4096 --dtype f64 --json\n",
    .takes = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE) | TAKES(DTYPE) | TAKES(ITERATIONS) | TAKES(ENGINE) |
             TAKES(DEVICE) | TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE),
    .run = run_linear,
};
