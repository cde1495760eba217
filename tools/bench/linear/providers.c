/* bench product: products by each of the host's BLAS libraries, against each other and the peak
 * rate of a core. */
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/blas.h"
#include "place/peak_flops.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* What the ranks share. One rank of each process writes the results. */
typedef struct job {
    place *place;
    tsr_context *context;
    tsr_blas_provider by[BLAS_MOST]; /* the providers that multiply the dtype */
    int count, ranks;
    int64_t sizes[3]; /* m, n and k: rows and columns of c, and terms */
    tsr_dtype dtype;
    bench_settings settings;
    /* of each provider; and seconds of one floating-point operation at a core's peak rate */
    tsr_bench_result times[BLAS_MOST], peak;
} job;

/* One rank's side: a is [m,k], b [k,n], c [m,n]. */
typedef struct side {
    job *job;
    int rank;
    void *a, *b, *c;
} side;

/* The argument of a loop: one provider on one rank. */
typedef struct turn {
    const side *side;
    blas by;
} turn;

/* With a[i][p] = left(i) middle(p) and b[p][j] = middle(p) right(j), c[i][j] is left(i) right(j)
 * times the number of p where middle(p) is not 0: small integers, exact in every dtype. */
static float left(int64_t i)
{
    return (float)(i % 3 - 1);
}

static float middle(int64_t p)
{
    return (float)(p % 5 % 3 - 1);
}

static float right(int64_t j)
{
    return (float)(j % 4 - 2);
}

static tsr_dtype result_dtype(const job *j)
{
    return j->dtype == TSR_F64 ? TSR_F64 : TSR_F32;
}

/* Fills a matrix with the outer product of two functions, row by row. */
static tsr_status fill(const job *j, int64_t rows, int64_t columns, float (*of_row)(int64_t),
                       float (*of_column)(int64_t), void *matrix)
{
    void *self;
    const tsr_device_table *const host = tsr_device_driver_table(NULL, &self);
    float *const row = malloc((size_t)columns * sizeof *row);
    tsr_status status = row ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a row of a matrix");
    for (int64_t i = 0; i < rows && status == TSR_OK; i++) {
        for (int64_t k = 0; k < columns; k++)
            row[k] = of_row(i) * of_column(k);
        status = host->convert(self, 0, (char *)matrix + (size_t)(i * columns) * tsr_dtype_bytes(j->dtype), j->dtype,
                               row, TSR_F32, columns, NULL);
    }
    free(row);
    return status;
}

static tsr_status make_matrix(const job *j, int64_t rows, int64_t columns, tsr_dtype dtype, void **out)
{
    const size_t bytes = (size_t)rows * (size_t)columns * tsr_dtype_bytes(dtype);
    if (posix_memalign(out, 64, bytes) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a matrix of %lld x %lld %s", (long long)rows,
                              (long long)columns, tsr_dtype_name(j->dtype));
    memset(*out, 0x5a, bytes);
    return TSR_OK;
}

static tsr_status make_side(side *s)
{
    const job *const j = s->job;
    const int64_t m = j->sizes[0], n = j->sizes[1], k = j->sizes[2];
    TSR_TRY(make_matrix(j, m, k, j->dtype, &s->a));
    TSR_TRY(make_matrix(j, k, n, j->dtype, &s->b));
    TSR_TRY(make_matrix(j, m, n, result_dtype(j), &s->c));
    TSR_TRY(fill(j, m, k, left, middle, s->a));
    return fill(j, k, n, middle, right, s->b);
}

static tsr_status multiply(tsr_comm *comm, void *arg)
{
    const turn *const t = arg;
    (void)comm;
    const side *const s = t->side;
    const job *const j = s->job;
    const tsr_blas_gemm gemm = {.m = j->sizes[0],
                                .n = j->sizes[1],
                                .k = j->sizes[2],
                                .alpha = 1,
                                .a = s->a,
                                .b = s->b,
                                .c = s->c,
                                .lda = j->sizes[2],
                                .ldb = j->sizes[1],
                                .ldc = j->sizes[1]};
    return blas_run(&t->by, j->dtype, &gemm);
}

static double element(const side *s, int64_t index)
{
    return result_dtype(s->job) == TSR_F64 ? ((const double *)s->c)[index] : (double)((const float *)s->c)[index];
}

static int64_t count_wrong(const side *s)
{
    const int64_t m = s->job->sizes[0], n = s->job->sizes[1];
    int64_t terms = 0, wrong = 0;
    for (int64_t p = 0; p < s->job->sizes[2]; p++)
        terms += middle(p) != 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            wrong += element(s, i * n + k) != (double)left(i) * (double)right(k) * (double)terms;
    return wrong;
}

/* Measures the core's peak rate: the seconds of one floating-point operation. */
static tsr_status measure_peak(tsr_comm *comm, void *arg, double *seconds)
{
    const double peak = peak_flops_measure();
    (void)comm;
    (void)arg;
    *seconds = peak > 0 ? 1 / peak : 0;
    return TSR_OK;
}

/* Multiplies once more, since all providers write the same matrix, and checks it. */
static tsr_status check(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const turn *const t = arg;
    TSR_TRY(multiply(comm, arg));
    *wrong += count_wrong(t->side);
    return TSR_OK;
}

/* Times the providers and the core's peak in turns, so that other load slows all of them. */
static tsr_status time_providers(const side *s, tsr_comm *comm, turn *turns)
{
    job *const j = s->job;
    const tsr_bench_options options = bench_options(&j->settings, j->place, s->rank);
    tsr_bench_subject subjects[BLAS_MOST + 1];
    tsr_bench_result results[BLAS_MOST + 1];
    for (int p = 0; p < j->count; p++)
        subjects[p] = (tsr_bench_subject){.call = multiply, .check = check, .arg = &turns[p]};
    subjects[j->count] = (tsr_bench_subject){.measure = measure_peak};
    TSR_TRY(tsr_bench_turns(comm, subjects, j->count + 1, &options, results));
    if (bench_keeps(j->place, s->rank)) {
        memcpy(j->times, results, (size_t)j->count * sizeof *results);
        j->peak = results[j->count];
    }
    return TSR_OK;
}

static tsr_status run_side(side *s, tsr_comm *comm, turn *turns)
{
    const job *const j = s->job;
    TSR_TRY(make_side(s));
    bench_step(&j->settings, j->place, s->rank);
    TSR_TRY(time_providers(s, comm, turns));
    if (j->settings.checks)
        bench_step(&j->settings, j->place, s->rank);
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.job = arg, .rank = tsr_comm_rank(comm)};
    turn turns[BLAS_MOST];
    for (int p = 0; p < s.job->count; p++) {
        turns[p] = (turn){&s, {&s.job->by[p]}};
        blas_take(&turns[p].by);
    }
    const tsr_status status = run_side(&s, comm, turns);
    for (int p = 0; p < s.job->count; p++)
        blas_release(&turns[p].by);
    free(s.a);
    free(s.b);
    free(s.c);
    return status;
}

static double flops(const job *j)
{
    return 2.0 * (double)j->sizes[0] * (double)j->sizes[1] * (double)j->sizes[2] * j->ranks;
}

/* The results of one provider. */
typedef struct result {
    const tsr_blas_table *table;
    const char *source;
    spread seconds;
    double rate, of_peak, of_best;
    int64_t calls, wrong;
    bool chosen;
} result;

static result make_result(const job *j, int index, double best)
{
    const spread seconds = j->times[index].seconds, peak = j->peak.seconds;
    result r = {.table = j->by[index].table,
                .source = j->by[index].source,
                .seconds = seconds,
                .calls = j->times[index].calls,
                .wrong = j->settings.checks ? j->times[index].wrong : 0};
    r.rate = seconds.median > 0 ? flops(j) / seconds.median : 0;
    /* The peak is that of f32, of which f64 has half. For narrower dtypes it is no bound: they have
     * other instructions. */
    r.of_peak = r.rate * peak.median / j->ranks * (j->dtype == TSR_F64 ? 2 : 1);
    r.of_best = seconds.median > 0 ? best / seconds.median : 0;
    r.chosen = index == 0;
    return r;
}

static json_t *result_to_json(const job *j, const result *r)
{
    return json_pack("{ss ss ss ss ss sI sI sI sI ss so sf sf sf sb sI so sI sI}", "bench", "product", "provider",
                     r->table->name, "source", r->source, "version", r->table->version, "core", r->table->core, "ranks",
                     (json_int_t)j->ranks, "m", (json_int_t)j->sizes[0], "n", (json_int_t)j->sizes[1], "k",
                     (json_int_t)j->sizes[2], "dtype", tsr_dtype_name(j->dtype), "seconds", spread_to_json(r->seconds),
                     "flops", r->rate, "of_peak", r->of_peak, "of_best", r->of_best, "chosen", r->chosen, "iterations",
                     (json_int_t)j->settings.iterations, "wrong",
                     j->settings.checks ? json_integer(r->wrong) : json_null(), "warm_ups",
                     (json_int_t)j->settings.warm_ups, "calls", (json_int_t)r->calls);
}

static void print_columns(void)
{
    say("# products c[m,n] = a[m,k] b[k,n] on every rank at once, one thread each; the first provider is the "
        "layers'\n");
    say("#%5s %6s %6s %6s %5s %-16s %-16s %12s %10s %8s %8s %8s %8s\n", "ranks", "m", "n", "k", "type", "provider",
        "core", "time", "rate", "of_peak", "of_best", "#wrong", "noise");
    say("#%5s %6s %6s %6s %5s %-16s %-16s %12s %10s\n", "", "", "", "", "", "", "", "(ms)", "(GFLOP/s)");
}

static void print_result(const job *j, const result *r)
{
    char wrong[24] = "N/A";
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)r->wrong);
    say(" %5d %6lld %6lld %6lld %5s %-16s %-16.16s %12.4f %10.1f %8.3f %8.3f %8s %8.2f\n", j->ranks,
        (long long)j->sizes[0], (long long)j->sizes[1], (long long)j->sizes[2], tsr_dtype_name(j->dtype),
        r->table->name, r->table->core, 1e3 * r->seconds.median, 1e-9 * r->rate, r->of_peak, r->of_best, wrong,
        spread_noise(r->seconds));
}

static int report(bench_run *run, const job *j, bool begins_table)
{
    double best = 0;
    int64_t wrong = 0;
    int status = EXIT_DONE;
    for (int p = 0; p < j->count; p++) {
        const double seconds = j->times[p].seconds.median;
        best = p == 0 || seconds < best ? seconds : best;
    }
    progress_clear(run->settings.progress);
    if (run->format == ROWS_TEXT && begins_table)
        print_columns();
    for (int p = 0; p < j->count && status == EXIT_DONE; p++) {
        const result r = make_result(j, p, best);
        wrong += r.wrong;
        if (run->format != ROWS_TEXT)
            status = bench_run_print(run, result_to_json(j, &r));
        else
            print_result(j, &r);
    }
    return status == EXIT_DONE && wrong > 0
               ? complain(EXIT_REFUSED, "%lld elements of products are wrong", (long long)wrong)
               : status;
}

/* Opens every provider that is found, or those that TSR_BLAS names. */
static int open_providers(job *j)
{
    const tsr_blas_provider *providers;
    int count;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.blas = "auto";
    if (tsr_context_create(&options, &j->context) != TSR_OK ||
        tsr_blas_providers(j->context, &providers, &count) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    for (int p = 0; p < count && j->count < BLAS_MOST; p++)
        if (tsr_blas_find_gemm(providers[p].table, j->dtype))
            j->by[j->count++] = providers[p];
    return j->count > 0 ? EXIT_DONE
                        : complain(EXIT_REFUSED, "--dtype %s: no BLAS here multiplies it", tsr_dtype_name(j->dtype));
}

static int read_sizes(const char *text, job *j)
{
    tensor_shape shape;
    int status = parse_shape(text, &shape);
    if (status != EXIT_DONE)
        return status;
    if (shape.ndim != 3)
        return complain(EXIT_USAGE, "--shape %s: a product has three sizes, rows, columns and terms: 1024x1024x1024",
                        text);
    for (int d = 0; d < 3; d++) {
        if (shape.size[d] < 1 || shape.size[d] > INT32_MAX)
            return complain(EXIT_REFUSED,
                            "--shape %s: sizes of products are from 1 to 2^31-1, which is what a BLAS counts to", text);
        j->sizes[d] = shape.size[d];
    }
    return EXIT_DONE;
}

static int read_ranks(const char *text, job *j)
{
    int64_t ranks = place_launched(j->place) > 0 ? place_launched(j->place) : 1;
    const int status = text ? parse_count("--ranks", text, 1, &ranks) : EXIT_DONE;
    if (status == EXIT_DONE &&
        (ranks > MAX_RANK_THREADS || (place_launched(j->place) > 0 && ranks != place_launched(j->place))))
        return complain(EXIT_REFUSED,
                        "--ranks %lld: at most %d threads multiply at once, and under a launcher its ranks do",
                        (long long)ranks, MAX_RANK_THREADS);
    j->ranks = (int)ranks;
    return status;
}

static int read_job(const tool_arguments *given, job *j)
{
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = read_sizes(given->value[OPT_SHAPE], j);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &j->dtype);
    if (status == EXIT_DONE)
        status = read_ranks(given->value[OPT_RANKS], j);
    return status == EXIT_DONE ? open_providers(j) : status;
}

static void finish_job(job *j)
{
    tsr_context_destroy(j->context);
    place_close(j->place);
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    job j = {.settings = run->settings};
    int status = read_job(now, &j);
    status = bench_on_ranks(&run->settings, status, j.place, j.ranks, run_rank, &j);
    if (status == EXIT_DONE && place_speaks(j.place))
        status = report(run, &j, begins_table);
    finish_job(&j);
    return status;
}

static const tool_option axes[] = {OPT_RANKS, OPT_DTYPE, OPT_SHAPE};

static const bench_kind bench_product_kind = {.name = "bench product",
                                              .axes = axes,
                                              .axis_count = sizeof axes / sizeof *axes,
                                              .within = 3,
                                              .settings = {.iterations = 11, .warm_ups = 1, .loop_seconds = 0.02},
                                              .measure = measure};

/* Without --shape, runs two usual sizes. */
static int run_bench(const tool_arguments *given)
{
    static const char sizes[] = "1024x1024x1024,4096x4096x4096";
    tool_arguments all = *given;
    if (!all.value[OPT_SHAPE] && all.given_count < MAX_GIVEN) {
        all.value[OPT_SHAPE] = sizes;
        all.given[all.given_count].option = OPT_SHAPE;
        all.given[all.given_count++].value = sizes;
    }
    return bench_run_alone(&bench_product_kind, &all);
}

const tool_command bench_product_command = {
    .name = "bench product",
    .summary = "what the BLAS libraries that are there multiply",
    .details = "Multiplies c[m,n] = a[m,k] b[k,n], given as --shape MxNxK (1024x1024x1024 and 4096x4096x4096 without "
               "it), by every BLAS that is "
               "found, or by those that TSR_BLAS names and the linked one, in turns, on --ranks threads at once (1), "
               "each of which has matrices "
               "of its own. of_peak is the share of the f32 multiply-adds that the cores can do, measured in the same "
               "turns (of half of those "
               "for f64); of_best the share of the fastest library. The first row is the library that layers take. "
               "With --dtype bf16 or f16, c "
               "is f32.\n\n"
               "After the last run every element is compared with what it must be: #wrong. --shape, --dtype and "
               "--ranks may be repeated and be "
               "lists: every combination is run.",
    .examples =
        "  tessera bench product\n"
        "  tessera bench product --shape 1024x1024x1024,64x4096x4096 --ranks 1,2 --json\n"
        "  TSR_BLAS=/opt/lib/libscipy_openblas.so,/opt/lib/libdnnl.so.3 tessera bench product --dtype f32,bf16\n",
    .takes = TAKES(SHAPE) | TAKES(DTYPE) | TAKES(RANKS) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) |
             TAKES(CHECK) | TAKES(JSON) | TAKES(CSV),
    .repeats = TAKES(SHAPE) | TAKES(DTYPE) | TAKES(RANKS),
    .defaults = {{OPT_SHAPE, "1024x1024x1024,4096x4096x4096"}, {OPT_RANKS, "1"}, {OPT_WARM_UP, "1"}},
    .run = run_bench,
};
