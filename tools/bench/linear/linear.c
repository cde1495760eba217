/* bench linear: a column- and a row-parallel layer, forward and backward, in turns with the same
 * local GEMMs called directly on every rank at once. */
#include "bench/linear/linear.h"

#include "bench/check/linear_oracle.h"
#include "bench/linear/product.h"
#include "bench/linear/read.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/blas.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* x (tokens, hidden), w1 (intermediate, hidden), y1 (tokens, intermediate), w2 (hidden,
 * intermediate), y2 and dy like x. */
enum { X, W1, Y1, W2, Y2, DY, TENSORS };

/* Memory for results, each of the shape of a tensor. */
enum { LIKE_Y1, LIKE_Y2, LIKE_W1, LIKE_W2, RESULTS };

enum { FORWARD_PRODUCTS = 2, PRODUCTS = 6 };

/* One rank's side. */
typedef struct side {
    linear_job *job;
    tsr_comm *comm;
    int rank;
    tsr_mesh *mesh;
    tsr_layout *layout[TENSORS], *direct_layout[TENSORS];
    local memory[TENSORS];
    local source[TENSORS];   /* inputs of the direct products, if has_sources(); else they read `memory` */
    local gradient[RESULTS]; /* gradients of the layers: LIKE_Y1 of y1, LIKE_Y2 of x, the others of the weights */
    local direct[RESULTS];   /* results of the direct products */
    tsr_linear_plan *column, *row;
    tsr_linear_backward_plan *column_backward, *row_backward;
    tsr_gemm products[PRODUCTS]; /* first those of the forward pass */
    blas direct_blas;            /* the BLAS of the direct products, on the host */
    void *workspace;
    size_t workspace_bytes;
} side;

/* The dtype of a tensor; results are f32 if x and the weights differ. */
static tsr_dtype dtype_of(const linear_job *j, int tensor)
{
    if (tensor == X)
        return j->dtype;
    if (tensor == W1 || tensor == W2)
        return j->weights;
    return j->dtype == j->weights ? j->dtype : TSR_F32;
}

/* True if the direct products need inputs of their own, in f32: on the host, unless all is f32 or
 * all is f64. */
static bool has_sources(const linear_job *j)
{
    const bool known = j->dtype == j->weights && (j->dtype == TSR_F32 || j->dtype == TSR_F64);
    return !known && !place_enqueues(j->place);
}

/* The dtype of the direct products on the host. */
static tsr_dtype direct_dtype(const linear_job *j)
{
    return has_sources(j) ? TSR_F32 : j->dtype;
}

/* Makes both layouts of a tensor: the last mesh dim, the tensor-parallel one, has placement
 * `last`, the other dims `others`. */
static tsr_status make_layout(side *s, int tensor, tsr_placement others, tsr_placement last, int64_t rows,
                              int64_t columns)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const int64_t shape[2] = {rows, columns};
    const int ndim = tsr_mesh_ndim(s->mesh);
    const tsr_dtype dtype = dtype_of(s->job, tensor);
    for (int d = 0; d < ndim; d++)
        placements[d] = d + 1 < ndim ? others : last;
    TSR_TRY(tsr_layout_create(s->mesh, placements, 2, shape, dtype, &s->layout[tensor]));
    return tsr_layout_create(s->mesh, placements, 2, shape, has_sources(s->job) ? TSR_F32 : dtype,
                             &s->direct_layout[tensor]);
}

static tsr_status make_layouts(side *s)
{
    const linear_job *const j = s->job;
    const tsr_placement all = tsr_replicate(), rows = tsr_shard(0), columns = tsr_shard(1);
    TSR_TRY(make_layout(s, X, rows, all, j->tokens, j->hidden));
    TSR_TRY(make_layout(s, W1, all, rows, j->intermediate, j->hidden));
    TSR_TRY(make_layout(s, Y1, rows, columns, j->tokens, j->intermediate));
    TSR_TRY(make_layout(s, W2, all, columns, j->hidden, j->intermediate));
    TSR_TRY(make_layout(s, Y2, rows, all, j->tokens, j->hidden));
    return make_layout(s, DY, rows, all, j->tokens, j->hidden);
}

/* The part of a tensor that this rank holds; empty for a rank outside the mesh. */
static tsr_status find_tile(const tsr_layout *layout, linear_tile *out)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    int inside;
    *out = (linear_tile){.rows = 0};
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    if (!inside)
        return TSR_OK;
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, offset));
    *out = (linear_tile){offset[0], offset[1], shape[0], shape[1]};
    return TSR_OK;
}

static tsr_status allocate_numbers(linear_tile tile, double **out)
{
    const int64_t count = tile.rows * tile.columns;
    *out = malloc((size_t)count * sizeof **out + 1);
    if (!*out)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld numbers", (long long)count);
    return TSR_OK;
}

/* Converts the elements of a tile on the host. */
static tsr_status convert(void *to, tsr_dtype to_dtype, const void *from, tsr_dtype from_dtype, linear_tile tile)
{
    void *self;
    return tsr_device_driver_table(NULL, &self)
        ->convert(self, 0, to, to_dtype, from, from_dtype, tile.rows * tile.columns, NULL);
}

/* Fills with small numbers of many bits, so that no GEMM meets denormals or overflow, or has zeros
 * to skip. */
static void fill_densely(int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)(i * 37 % 101 - 50) / 512;
}

/* The input of the oracle that a tensor holds; RESULT for results, which begin with other numbers
 * than they must end with. */
#define RESULT (-1)
static const int contents[TENSORS] = {
    [X] = LINEAR_X, [W1] = LINEAR_W1, [Y1] = RESULT, [W2] = LINEAR_W2, [Y2] = RESULT, [DY] = LINEAR_DY};

static void fill(const linear_job *j, int content, linear_tile tile, double *values)
{
    if (j->settings.checks && content != RESULT)
        linear_oracle_fill(&j->oracle, (linear_input)content, tile, values);
    else
        fill_densely(tile.rows * tile.columns, values);
}

static tsr_status make_tensor(const side *s, const tsr_layout *layout, int content, local *l)
{
    const tsr_dtype dtype = tsr_layout_dtype(layout);
    linear_tile tile;
    double *values;
    void *staged;
    TSR_TRY(local_create(s->job->place, s->comm, layout, l));
    TSR_TRY(find_tile(layout, &tile));
    TSR_TRY(allocate_numbers(tile, &values));
    tsr_status status = local_stage(l, &staged);
    if (status != TSR_OK)
        goto free_values;
    fill(s->job, content, tile, values);
    status = convert(staged, dtype, values, TSR_F64, tile);
    if (status == TSR_OK)
        status = local_push(l, staged);
    local_unstage(l, staged);
free_values:
    free(values);
    return status;
}

/* Layers and direct products write to different memory, so that the check sees the layers'
 * results. */
static tsr_status make_tensors(side *s)
{
    static const int like[RESULTS] = {[LIKE_Y1] = Y1, [LIKE_Y2] = Y2, [LIKE_W1] = W1, [LIKE_W2] = W2};
    for (int k = 0; k < TENSORS; k++) {
        TSR_TRY(make_tensor(s, s->layout[k], contents[k], &s->memory[k]));
        if (has_sources(s->job))
            TSR_TRY(make_tensor(s, s->direct_layout[k], contents[k], &s->source[k]));
    }
    for (int k = 0; k < RESULTS; k++) {
        TSR_TRY(make_tensor(s, s->layout[like[k]], RESULT, &s->gradient[k]));
        TSR_TRY(make_tensor(s, s->direct_layout[like[k]], RESULT, &s->direct[k]));
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

/* Forward: y1 = x w1^T, y2 = y1 w2^T; backward: dy1 = dy w2, dw2 = dy^T y1, dx = dy1 w1, dw1 =
 * dy1^T x. */
static void make_products(side *s)
{
    const local *const m = has_sources(s->job) ? s->source : s->memory, *const r = s->direct;
    const tsr_tensor *const y1 = &m[Y1].tensor;
    /* tensors of a rank outside the mesh have shape {0} */
    const int64_t t = y1->ndim == 2 ? y1->shape[0] : 0, i = y1->ndim == 2 ? y1->shape[1] : 0,
                  h = y1->ndim == 2 ? s->job->hidden : 0;
    const tsr_gemm products[PRODUCTS] = {
        product_make(0, 1, t, i, h, &m[X], &m[W1], &r[LIKE_Y1]),
        product_make(0, 1, t, h, i, &m[Y1], &m[W2], &r[LIKE_Y2]),
        product_make(0, 0, t, i, h, &m[DY], &m[W2], &r[LIKE_Y1]),
        product_make(1, 0, h, i, t, &m[DY], &m[Y1], &r[LIKE_W2]),
        product_make(0, 0, t, h, i, &r[LIKE_Y1], &m[W1], &r[LIKE_Y2]),
        product_make(1, 0, i, h, t, &r[LIKE_Y1], &m[X], &r[LIKE_W1]),
    };
    memcpy(s->products, products, sizeof products);
}

/* Makes one workspace, large enough for each plan and each product; they use it in turn. */
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
    if (s->workspace)
        place_release(s->job->place, s->comm, s->workspace, s->workspace_bytes);
    for (int k = 0; k < RESULTS; k++) {
        local_free(&s->gradient[k]);
        local_free(&s->direct[k]);
    }
    tsr_linear_plan_destroy(s->column);
    tsr_linear_plan_destroy(s->row);
    tsr_linear_backward_plan_destroy(s->column_backward);
    tsr_linear_backward_plan_destroy(s->row_backward);
    for (int k = 0; k < TENSORS; k++) {
        local_free(&s->memory[k]);
        local_free(&s->source[k]);
        tsr_layout_destroy(s->layout[k]);
        tsr_layout_destroy(s->direct_layout[k]);
    }
    tsr_mesh_destroy(s->mesh);
}

static tsr_status layers_forward(tsr_comm *comm, void *arg)
{
    const side *const s = arg;
    const local *const t = s->memory;
    const size_t bytes = s->workspace_bytes;
    const tsr_stream stream = place_stream(s->job->place, s->rank);
    (void)comm;
    TSR_TRY(tsr_linear_plan_execute(s->column, &t[X].tensor, &t[W1].tensor, NULL, &t[Y1].tensor, s->workspace, bytes,
                                    stream));
    return tsr_linear_plan_execute(s->row, &t[Y1].tensor, &t[W2].tensor, NULL, &t[Y2].tensor, s->workspace, bytes,
                                   stream);
}

/* Computes the gradients of x and of both weights. */
static tsr_status layers_backward(tsr_comm *comm, void *arg)
{
    const side *const s = arg;
    const local *const t = s->memory, *const r = s->gradient;
    const tsr_stream stream = place_stream(s->job->place, s->rank);
    (void)comm;
    TSR_TRY(tsr_linear_backward_plan_execute(s->row_backward, &t[Y1].tensor, &t[W2].tensor, &t[DY].tensor,
                                             &r[LIKE_Y1].tensor, &r[LIKE_W2].tensor, NULL, s->workspace,
                                             s->workspace_bytes, stream));
    return tsr_linear_backward_plan_execute(s->column_backward, &t[X].tensor, &t[W1].tensor, &r[LIKE_Y1].tensor,
                                            &r[LIKE_Y2].tensor, &r[LIKE_W1].tensor, NULL, s->workspace,
                                            s->workspace_bytes, stream);
}

static tsr_status run_products(const side *s, int first, int end)
{
    for (int k = first; k < end; k++)
        TSR_TRY(product_run(s->job->place, s->rank, &s->direct_blas, &s->products[k]));
    return TSR_OK;
}

static tsr_status products_forward(tsr_comm *comm, void *arg)
{
    (void)comm;
    return run_products(arg, 0, FORWARD_PRODUCTS);
}

static tsr_status products_backward(tsr_comm *comm, void *arg)
{
    (void)comm;
    return run_products(arg, FORWARD_PRODUCTS, PRODUCTS);
}

/* Reads the rank's weights and does nothing else. */
static tsr_status read_weights(tsr_comm *comm, void *arg)
{
    const side *const s = arg;
    (void)comm;
    bench_read(s->memory[W1].tensor.data, s->memory[W1].bytes);
    bench_read(s->memory[W2].tensor.data, s->memory[W2].bytes);
    return TSR_OK;
}

static tsr_status check_result(const side *s, linear_result result, const tsr_layout *layout, const local *l,
                               int64_t *wrong)
{
    const linear_job *const j = s->job;
    int64_t more = 0;
    linear_tile tile;
    double *values;
    void *staged;
    TSR_TRY(find_tile(layout, &tile));
    TSR_TRY(allocate_numbers(tile, &values));
    tsr_status status = local_stage(l, &staged);
    if (status != TSR_OK)
        goto free_values;
    status = local_pull(l, staged);
    if (status == TSR_OK)
        status = convert(values, TSR_F64, staged, tsr_layout_dtype(layout), tile);
    if (status == TSR_OK)
        status = linear_oracle_count_wrong(&j->oracle, result, tile, values, &more);
    if (status == TSR_OK)
        *wrong += more;
    local_unstage(l, staged);
free_values:
    free(values);
    return status;
}

static tsr_status check_forward(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const side *const s = arg;
    const local *const t = s->memory;
    (void)comm;
    TSR_TRY(check_result(s, LINEAR_Y1, s->layout[Y1], &t[Y1], wrong));
    return check_result(s, LINEAR_Y2, s->layout[Y2], &t[Y2], wrong);
}

static tsr_status check_backward(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const side *const s = arg;
    const local *const g = s->gradient;
    (void)comm;
    TSR_TRY(check_result(s, LINEAR_DY1, s->layout[Y1], &g[LIKE_Y1], wrong));
    TSR_TRY(check_result(s, LINEAR_DW2, s->layout[W2], &g[LIKE_W2], wrong));
    TSR_TRY(check_result(s, LINEAR_DX, s->layout[X], &g[LIKE_Y2], wrong));
    return check_result(s, LINEAR_DW1, s->layout[W1], &g[LIKE_W1], wrong);
}

/* What is measured of a pass, in turns, so that other load slows all of it. */
enum { LAYERS, GEMMS, READS, SUBJECTS };

static tsr_status time_pass(side *s, int pass)
{
    linear_job *const j = s->job;
    const bool forward = pass == FORWARD;
    const tsr_bench_options options = bench_options(&j->settings, j->place, s->rank);
    const tsr_bench_subject subjects[SUBJECTS] = {
        [LAYERS] = {.call = forward ? layers_forward : layers_backward,
                    .check = forward ? check_forward : check_backward,
                    .arg = s},
        [GEMMS] = {.call = forward ? products_forward : products_backward, .arg = s},
        [READS] = {.call = read_weights, .arg = s}};
    tsr_bench_result results[SUBJECTS] = {{.calls = 0}};
    TSR_TRY(tsr_bench_turns(s->comm, subjects, forward && linear_job_reads(j) ? SUBJECTS : READS, &options, results));
    if (bench_keeps(j->place, s->rank)) {
        j->layers[pass] = results[LAYERS];
        j->gemms[pass] = results[GEMMS];
        j->reads = forward ? results[READS] : j->reads;
    }
    return TSR_OK;
}

static tsr_status count_weights(const side *s)
{
    int64_t bytes = (int64_t)(s->memory[W1].bytes + s->memory[W2].bytes);
    TSR_TRY(tsr_comm_all_reduce(s->comm, &bytes, &bytes, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    if (bench_keeps(s->job->place, s->rank))
        s->job->weight_bytes = bytes;
    return TSR_OK;
}

static tsr_status run_side(side *s)
{
    const linear_job *const j = s->job;
    TSR_TRY(make_side(s));
    TSR_TRY(count_weights(s));
    bench_step(&j->settings, j->place, s->rank);
    for (int pass = 0; pass < PASSES; pass++) {
        TSR_TRY(time_pass(s, pass));
        if (j->settings.checks)
            bench_step(&j->settings, j->place, s->rank);
    }
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.job = arg, .comm = comm, .rank = tsr_comm_rank(comm)};
    tsr_status status =
        place_enqueues(s.job->place) ? TSR_OK : blas_hold(tsr_comm_context(comm), direct_dtype(s.job), &s.direct_blas);
    if (status == TSR_OK)
        status = run_side(&s);
    finish_side(&s);
    blas_release(&s.direct_blas);
    return status;
}

static int check_dtype(const linear_job *j)
{
    const bool half = j->dtype == TSR_F16 || j->dtype == TSR_BF16;
    if (j->dtype != TSR_F32 && j->dtype != TSR_F64 && !half)
        return complain(EXIT_REFUSED, "--dtype %s: linear layers are f64, f32, f16 and bf16", tsr_dtype_name(j->dtype));
    if (j->weights == j->dtype || (j->dtype == TSR_F32 && (j->weights == TSR_F16 || j->weights == TSR_BF16)))
        return EXIT_DONE;
    return complain(EXIT_REFUSED,
                    "--weights %s with --dtype %s: weights are of --dtype, or f16 or bf16 where that is f32",
                    tsr_dtype_name(j->weights), tsr_dtype_name(j->dtype));
}

/* Reads --dtype and --weights, which is --dtype by default. */
static int read_dtypes(const tool_arguments *given, linear_job *j)
{
    int status = parse_dtype(given->value[OPT_DTYPE], &j->dtype);
    j->weights = j->dtype;
    if (status == EXIT_DONE && given->value[OPT_WEIGHTS])
        status = parse_dtype_of("--weights", given->value[OPT_WEIGHTS], &j->weights);
    return status == EXIT_DONE ? check_dtype(j) : status;
}

static int read_job(const tool_arguments *given, linear_job *j)
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
        status = read_dtypes(given, j);
    if (status == EXIT_DONE && (j->tokens > INT32_MAX || j->hidden > INT32_MAX || j->intermediate > INT32_MAX))
        status = complain(EXIT_REFUSED,
                          "--tokens, --hidden and --intermediate are at most 2^31-1, which is what the BLAS counts to");
    if (status == EXIT_DONE)
        status = parse_mesh(j->mesh_text, &j->mesh);
    return status == EXIT_DONE ? place_count_ranks(j->place, j->mesh, NULL, &j->ranks) : status;
}

static void finish_job(linear_job *j)
{
    tsr_mesh_destroy(j->mesh);
    place_close(j->place);
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    linear_job j = {.settings = run->settings};
    int status = read_job(now, &j);
    j.oracle = linear_oracle_make(j.tokens, j.hidden, j.intermediate, j.weights);
    status = bench_on_ranks(&run->settings, status, j.place, j.ranks, run_rank, &j);
    if (status == EXIT_DONE)
        status = linear_report(run, &j, begins_table);
    finish_job(&j);
    return status;
}

/* Counts the step of filling, and for each pass its iterations and check. */
static int count_steps(const bench_run *run, const tool_arguments *now, int64_t *out)
{
    (void)now;
    *out = 1 + PASSES * (bench_settings_steps(&run->settings) - 1);
    return EXIT_DONE;
}

static const tool_option axes[] = {OPT_ENGINE, OPT_DEVICE,       OPT_MESH,  OPT_TOKENS,
                                   OPT_HIDDEN, OPT_INTERMEDIATE, OPT_DTYPE, OPT_WEIGHTS};

const bench_kind bench_linear_kind = {.name = "bench linear",
                                      .axes = axes,
                                      .axis_count = sizeof axes / sizeof *axes,
                                      .within = 5,
                                      .settings = {.iterations = 11, .warm_ups = 2, .loop_seconds = 0.02},
                                      .measure = measure,
                                      .steps = count_steps};

static int run_bench(const tool_arguments *given)
{
    return bench_run_alone(&bench_linear_kind, given);
}

const tool_command bench_linear_command = {
    .name = "bench linear",
    .summary = "a tensor-parallel MLP next to its GEMMs called directly",
    .details = "A column-parallel layer (hidden to intermediate) and a row-parallel one (back, reduced to every rank), "
               "without bias, "
               "planned; forward, "
               "and backward for the gradients of x and of both weights. gemm is the time of the same local GEMMs "
               "called directly on every "
               "rank at once, in turns with the layers; of gemm is that over the layers' time, both medians of the "
               "slowest rank, whose times "
               "are means of as many calls as take about 20 ms. noise is half of what the times spread over, relative "
               "to their median. The "
               "last dim of the mesh is tensor-parallel, the others cut the tokens.\n\n"
               "After the last run every result is compared with what it must be: #wrong. Inputs are -1, 0 and 1, with "
               "as many zeros as "
               "keep sums exact in the dtype; with -c 0 they are of many bits instead.\n\n"
               "--weights gives the weights another dtype: f16 or bf16 beside --dtype f32, for which they are widened. "
               "The GEMMs of the host are "
               "then of f32 throughout, as they are with --dtype f16 and bf16. Up to 16 tokens, as in decoding, "
               "weights are what a layer on the "
               "host waits for: in turns with the layers all ranks read their weights once and do nothing else, and of "
               "read is the time of that "
               "over the forward's.\n\n"
               "--mesh may be repeated; the sizes, --dtype, --weights, --engine and --device may be repeated and be "
               "lists: every combination is "
               "run.",
    .examples =
        "  tessera bench linear --mesh 2 --tokens 1024 --hidden 2048 --intermediate 8192\n"
        "  tessera bench linear --mesh dp=2,tp=2 --tokens 512 --hidden 1024 --intermediate 4096 --dtype f64 --json\n"
        "  tessera bench linear --mesh 1 --mesh 2 --tokens 1 --hidden 4096 --intermediate 16384 --weights f32,bf16\n",
    .takes = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE) | TAKES(DTYPE) | TAKES(WEIGHTS) |
             TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(ENGINE) | TAKES(DEVICE) |
             TAKES(JSON) | TAKES(CSV),
    .repeats = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE) | TAKES(DTYPE) | TAKES(WEIGHTS) |
               TAKES(ENGINE) | TAKES(DEVICE),
    .requires_all = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE),
    .run = run_bench,
};
