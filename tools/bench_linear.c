/* A column- and a row-parallel layer, forward and backward, next to the same local GEMMs called directly on every rank at once. */
#include "bench.h"
#include "blas.h"
#include "local.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define WARM_UPS 2

enum { FORWARD, BACKWARD, PASSES };
static const char *const pass_names[PASSES] = {"forward", "backward"};

/** x (tokens, hidden), w1 (intermediate, hidden), y1 (tokens, intermediate), w2 (hidden, intermediate), y2 and dy like x. */
enum { X, W1, Y1, W2, Y2, DY, TENSORS };

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
    tsr_dtensor *tensor[TENSORS]; /**< over it */
    tsr_linear_plan *column, *row;
    void *workspace;
    local result[4]; /**< of the direct GEMMs: as large as y1, y2, w1 and w2 here */
    int64_t t, h, i; /**< this rank's tokens, all hidden and this rank's intermediate features */
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
    return status == TSR_OK ? tsr_dtensor_from_local(&l->tensor, s->layout[k], NULL, &s->tensor[k]) : status;
}

static tsr_status make_tensors(side *s)
{
    static const int like[] = {Y1, Y2, W1, W2};
    for (int k = 0; k < TENSORS; k++)
        TSR_TRY(make_tensor(s, k));
    for (int k = 0; k < 4; k++) {
        TSR_TRY(local_create(s->job->place, s->comm, s->layout[like[k]], &s->result[k]));
        TSR_TRY(local_clear(&s->result[k]));
    }
    /* A rank outside the mesh has a tensor of shape {0}. */
    const tsr_tensor *const y1 = &s->memory[Y1].tensor;
    s->t = y1->ndim == 2 ? y1->shape[0] : 0;
    s->i = y1->ndim == 2 ? y1->shape[1] : 0;
    s->h = y1->ndim == 2 ? s->job->hidden : 0;
    return TSR_OK;
}

static size_t workspace_bytes(const side *s)
{
    const size_t column = tsr_linear_plan_workspace_bytes(s->column), row = tsr_linear_plan_workspace_bytes(s->row);
    return column > row ? column : row;
}

static tsr_status make_side(side *s)
{
    TSR_TRY(tsr_mesh_parse(s->comm, NULL, s->job->mesh_text, &s->mesh));
    TSR_TRY(make_layouts(s));
    TSR_TRY(tsr_linear_plan_create_on(s->layout[X], s->layout[W1], NULL, s->layout[Y1], place_device(s->job->place, s->rank), &s->column));
    TSR_TRY(tsr_linear_plan_create_on(s->layout[Y1], s->layout[W2], NULL, s->layout[Y2], place_device(s->job->place, s->rank), &s->row));
    TSR_TRY(make_tensors(s));
    return place_allocate(s->job->place, s->comm, workspace_bytes(s), &s->workspace);
}

static void finish_side(side *s)
{
    if (s->workspace != NULL)
        place_release(s->job->place, s->comm, s->workspace, workspace_bytes(s));
    for (int k = 0; k < 4; k++)
        local_free(&s->result[k]);
    tsr_linear_plan_destroy(s->column);
    tsr_linear_plan_destroy(s->row);
    for (int k = 0; k < TENSORS; k++) {
        tsr_dtensor_destroy(s->tensor[k]);
        local_free(&s->memory[k]);
        tsr_layout_destroy(s->layout[k]);
    }
    tsr_mesh_destroy(s->mesh);
}

/** The device's own product, row-major and dense, with the workspace that it wants. */
static tsr_status device_gemm(const place *p, int rank, tsr_dtype dtype, const blas_gemm *g)
{
    void *self;
    const tsr_device_table *const table = place_table(p, rank, &self);
    const tsr_gemm gemm = {.dtype = dtype,
                           .trans_a = g->trans_a,
                           .trans_b = g->trans_b,
                           .m = g->m,
                           .n = g->n,
                           .k = g->k,
                           .alpha = 1,
                           .a = g->a,
                           .b = g->b,
                           .c = g->c,
                           .lda = g->trans_a ? g->m : g->k,
                           .ldb = g->trans_b ? g->k : g->n,
                           .ldc = g->n};
    return table->gemm(self, place_device(p, rank).index, &gemm, place_stream(p, rank));
}

static tsr_status layers_forward(void *arg)
{
    const side *const s = arg;
    const local *const t = s->memory;
    const size_t bytes = workspace_bytes(s);
    const tsr_stream stream = place_stream(s->job->place, s->rank);
    TSR_TRY(tsr_linear_plan_execute(s->column, &t[X].tensor, &t[W1].tensor, NULL, &t[Y1].tensor, s->workspace, bytes, stream));
    return tsr_linear_plan_execute(s->row, &t[Y1].tensor, &t[W2].tensor, NULL, &t[Y2].tensor, s->workspace, bytes, stream);
}

/** Calls without a stream are on the device's default one. */
static tsr_status settle_default(const side *s)
{
    const place *const p = s->job->place;
    void *self;
    const tsr_device_table *const table = place_table(p, s->rank, &self);
    return place_enqueues(p) ? table->stream_synchronize(self, place_device(p, s->rank).index, NULL) : TSR_OK;
}

/** Gradients of x and of both weights. */
static tsr_status layers_backward(void *arg)
{
    const side *const s = arg;
    tsr_dtensor *dy1 = NULL, *dw2 = NULL, *dx = NULL, *dw1 = NULL;
    tsr_status status = tsr_linear_backward(s->tensor[Y1], s->tensor[W2], NULL, s->tensor[DY], NULL, NULL, NULL, &dy1, &dw2, NULL);
    if (status == TSR_OK)
        status = tsr_linear_backward(s->tensor[X], s->tensor[W1], NULL, dy1, NULL, NULL, NULL, &dx, &dw1, NULL);
    tsr_dtensor_destroy(dy1);
    tsr_dtensor_destroy(dw2);
    tsr_dtensor_destroy(dx);
    tsr_dtensor_destroy(dw1);
    return status == TSR_OK ? settle_default(s) : status;
}

/** One product of the direct GEMMs, of the place's device. */
static tsr_status multiply(const side *s, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const local *a, const local *b,
                           const local *c)
{
    const place *const p = s->job->place;
    const blas_gemm host = {trans_a, trans_b, m, n, k, a->tensor.data, b->tensor.data, c->tensor.data};
    if (place_enqueues(p))
        return device_gemm(p, s->rank, s->job->dtype, &host);
    blas_run(s->job->dtype, &host);
    return TSR_OK;
}

/** y1 = x w1^T, y2 = y1 w2^T */
static tsr_status gemms_forward(void *arg)
{
    const side *const s = arg;
    TSR_TRY(multiply(s, 0, 1, s->t, s->i, s->h, &s->memory[X], &s->memory[W1], &s->result[0]));
    return multiply(s, 0, 1, s->t, s->h, s->i, &s->memory[Y1], &s->memory[W2], &s->result[1]);
}

/** dy1 = dy w2, dw2 = dy^T y1, dx = dy1 w1, dw1 = dy1^T x */
static tsr_status gemms_backward(void *arg)
{
    const side *const s = arg;
    const local *const dy = &s->memory[DY], *const dy1 = &s->result[0];
    TSR_TRY(multiply(s, 0, 0, s->t, s->i, s->h, dy, &s->memory[W2], dy1));
    TSR_TRY(multiply(s, 1, 0, s->h, s->i, s->t, dy, &s->memory[Y1], &s->result[3]));
    TSR_TRY(multiply(s, 0, 0, s->t, s->h, s->i, dy1, &s->memory[W1], &s->result[1]));
    return multiply(s, 1, 0, s->i, s->h, s->t, dy1, &s->memory[X], &s->result[2]);
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
    static bench_body *const layers[PASSES] = {layers_forward, layers_backward}, *const gemms[PASSES] = {gemms_forward, gemms_backward};
    job *const j = s->job;
    TSR_TRY(make_side(s));
    for (int pass = 0; pass < PASSES; pass++) {
        for (int64_t i = -WARM_UPS; i < j->layers[pass].iterations; i++) {
            TSR_TRY(time_into(s, layers[pass], &j->layers[pass], i));
            TSR_TRY(time_into(s, gemms[pass], &j->gemms[pass], i));
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

static int report_pass_json(const job *j, const char *mesh, int pass, spread seconds, spread gemm)
{
    return print_json(json_pack("{ss ss ss sI ss sI sI sI ss ss so so sf sI}", "bench", "linear", "engine", place_engine(j->place),
                                "device", place_device_name(j->place), "ranks", (json_int_t)tsr_mesh_count(j->mesh), "mesh", mesh, "tokens",
                                (json_int_t)j->tokens, "hidden", (json_int_t)j->hidden, "intermediate", (json_int_t)j->intermediate,
                                "dtype", tsr_dtype_name(j->dtype), "pass", pass_names[pass], "seconds", spread_to_json(seconds),
                                "gemm_seconds", spread_to_json(gemm), "of_gemm", seconds.median > 0 ? gemm.median / seconds.median : 0.0,
                                "iterations", (json_int_t)j->layers[pass].iterations));
}

static void report_pass(const job *j, int pass, spread seconds, spread gemm)
{
    const double flops = (pass == FORWARD ? 4.0 : 8.0) * (double)j->tokens * (double)j->hidden * (double)j->intermediate;
    printf("%10s %12.3f %12.3f %10.3f %10.1f\n", pass_names[pass], 1e3 * seconds.median, 1e3 * gemm.median, gemm.median / seconds.median,
           1e-9 * flops / seconds.median);
}

static int report_job(const tool_arguments *given, job *j)
{
    if (!place_speaks(j->place))
        return EXIT_DONE;
    char *const mesh = mesh_text(j->mesh);
    if (mesh == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    const bool json = given->value[OPT_JSON] != NULL;
    if (!json)
        printf("# column- and row-parallel layers on mesh %s: %lld x %lld -> %lld -> %lld, %s\n%10s %12s %12s %10s %10s\n", mesh,
               (long long)j->tokens, (long long)j->hidden, (long long)j->intermediate, (long long)j->hidden, tsr_dtype_name(j->dtype),
               "pass", "time (ms)", "gemm (ms)", "of gemm", "GFLOP/s");
    int status = EXIT_DONE;
    for (int pass = 0; pass < PASSES && status == EXIT_DONE; pass++) {
        const spread seconds = samples_spread(&j->layers[pass]), gemm = samples_spread(&j->gemms[pass]);
        if (json)
            status = report_pass_json(j, mesh, pass, seconds, gemm);
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

static int run_linear(const tool_arguments *given)
{
    job j = {.ranks = 0};
    int status = read_job(given, &j);
    if (status == EXIT_DONE)
        status = make_samples(given, &j);
    if (status == EXIT_DONE && place_run(j.place, j.ranks, run_rank, &j) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = report_job(given, &j);
    finish_job(&j);
    return status;
}

const tool_command bench_linear_command = {
    .name = "bench linear",
    .summary = "a tensor-parallel MLP next to its GEMMs called directly",
    .details =
        "A column-parallel layer (hidden to intermediate) and a row-parallel one (back, reduced to every rank), without bias; forward, "
        "and backward for the gradients of x and of both weights. gemm is the time of the same local GEMMs called directly on every "
        "rank at once, in turns with the layers; of gemm is that over the layers' time, both medians of the slowest rank. The last "
        "dim of the mesh is tensor-parallel, the others cut the tokens.",
    .examples = "  tessera bench linear --mesh 2 --tokens 1024 --hidden 2048 --intermediate 8192\n"
                "  tessera bench linear --mesh dp=2,tp=2 --tokens 512 --hidden 1024 --intermediate 4096 --dtype f64 --json\n",
    .takes = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE) | TAKES(DTYPE) | TAKES(ITERATIONS) | TAKES(ENGINE) |
             TAKES(DEVICE) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE),
    .run = run_linear,
};
