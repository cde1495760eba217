/* bench program: how long runs of programs take, next to the same kernels called one by one and to
 * what the cost model says; and how long compiling takes. */
#include "bench/program/peak.h"
#include "bench/program/predict.h"
#include "bench/program/reference.h"
#include "bench/program/side.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "files/profile.h"
#include "place/place.h"
#include "place/wholes.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static const program_case cases[] = {
    {.name = "mlp", .record = model_record_mlp, .reference = reference_mlp},
    {.name = "llama-block", .record = model_record_block, .reference = reference_block},
    {.name = "llama", .record = model_record_llama},
};

enum { CASES = sizeof cases / sizeof cases[0] };

/* What is measured of a program, in turns, so that other load slows both. */
enum { PROGRAM, KERNELS, SUBJECTS };

/* Figures of which the largest of all ranks counts. */
enum { RECEIVED, WORKSPACE, COMPILE, FIGURES };

typedef struct job {
    const tool_arguments *given;
    program_case c;
    place *place;
    tsr_mesh *mesh; /* abstract */
    int ranks;
    bench_settings settings;
    tsr_bench_result results[SUBJECTS];
    double figures[FIGURES];
    tsr_profile *profile; /* of --profile; NULL: TSR_COST's */
    program_prediction predicted;
    int64_t peak;   /* bytes; -1: not counted */
    int64_t rank;   /* for which programs are compiled and not run; -1: they are run */
    spread compile; /* with `rank` */
    bool begun;     /* a line was printed */
} job;

static tsr_status run_program(tsr_comm *comm, void *arg)
{
    (void)comm;
    return program_side_run(arg);
}

static tsr_status call_kernels(tsr_comm *comm, void *arg)
{
    (void)comm;
    return program_side_call(arg);
}

static tsr_status check(tsr_comm *comm, void *arg, int64_t *wrong)
{
    (void)comm;
    return program_side_check(arg, wrong);
}

static tsr_status measure_side(job *j, program_side *s)
{
    tsr_executable_figures f;
    tsr_bench_result results[SUBJECTS];
    const int rank = tsr_comm_rank(s->comm);
    const tsr_bench_options options = bench_options(&j->settings, j->place, rank);
    const tsr_bench_subject subjects[SUBJECTS] = {
        [PROGRAM] = {.call = run_program, .check = check, .arg = s}, [KERNELS] = {.call = call_kernels, .arg = s}};
    TSR_TRY(tsr_executable_figures_of(s->x, &f));
    double figures[FIGURES] = {(double)f.bytes_received, (double)f.workspace_bytes, s->compile_seconds};
    TSR_TRY(tsr_comm_all_reduce(s->comm, figures, figures, FIGURES, TSR_F64, TSR_MAX, tsr_device_host(), NULL));
    TSR_TRY(tsr_bench_turns(s->comm, subjects, SUBJECTS, &options, results));
    if (bench_keeps(j->place, rank)) {
        memcpy(j->results, results, sizeof results);
        memcpy(j->figures, figures, sizeof figures);
    }
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    program_side s;
    tsr_kept_sentence kept;
    tsr_status status = program_side_make(&j->c, comm, j->mesh, true, &s);
    if (status == TSR_OK)
        status = measure_side(j, &s);
    tsr_status_keep(&kept);
    program_side_finish(&s);
    return status == TSR_OK ? TSR_OK : tsr_status_restore(&kept, status);
}

static double share_of_kernels(const job *j)
{
    return j->results[KERNELS].seconds.median / j->results[PROGRAM].seconds.median;
}

/* The fields of a program's line before its figures. */
static json_t *facts_to_json(const job *j)
{
    const model_sizes *const s = &j->c.sizes;
    char *const mesh = mesh_text(j->mesh);
    json_t *row = json_object();
    row = json_with_field(row, "bench", json_string("program"));
    row = json_with_field(row, "program", json_string(j->c.name));
    row = json_with_field(row, "ranks", json_integer(j->rank < 0 ? j->ranks : (json_int_t)tsr_mesh_count(j->mesh)));
    row = json_with_field(row, "mesh", json_string(mesh));
    if (!j->c.reference)
        row = json_with_field(row, "layers", json_integer(s->layers));
    row = json_with_field(row, "sequences", json_integer(j->c.reference ? s->sequences : 1));
    row = json_with_field(row, "tokens", json_integer(s->tokens));
    row = json_with_field(row, "hidden", json_integer(s->hidden));
    row = json_with_field(row, "intermediate", json_integer(s->intermediate));
    row = json_with_field(row, "heads", json_integer(s->heads));
    row = json_with_field(row, "kv_heads", json_integer(s->kv_heads));
    free(mesh);
    return json_with_field(row, "dtype", json_string("f32"));
}

static json_t *row_to_json(const job *j)
{
    json_t *row = facts_to_json(j);
    row = json_with_field(row, "seconds", spread_to_json(j->results[PROGRAM].seconds));
    row = json_with_field(row, "predicted_seconds", json_real(j->predicted.seconds));
    row = json_with_field(row, "kernel_seconds", spread_to_json(j->results[KERNELS].seconds));
    row = json_with_field(row, "of_kernels", json_real(share_of_kernels(j)));
    row = json_with_field(row, "bytes_received", json_integer((json_int_t)j->figures[RECEIVED]));
    row = json_with_field(row, "compile_seconds", json_real(j->figures[COMPILE]));
    row = json_with_field(row, "workspace_bytes", json_integer((json_int_t)j->figures[WORKSPACE]));
    row = json_with_field(row, "predicted_peak_bytes", json_integer(j->predicted.peak_bytes));
    row = json_with_field(row, "peak_bytes", j->peak < 0 ? json_null() : json_integer(j->peak));
    row = json_with_field(row, "wrong", j->settings.checks ? json_integer(j->results[PROGRAM].wrong) : json_null());
    return json_with_field(row, "calls", json_integer((json_int_t)j->results[PROGRAM].calls));
}

static json_t *compiled_to_json(const job *j)
{
    json_t *row = facts_to_json(j);
    row = json_with_field(row, "rank", json_integer(j->rank));
    row = json_with_field(row, "seconds", spread_to_json(j->compile));
    row = json_with_field(row, "steps", json_integer(j->predicted.steps));
    row = json_with_field(row, "predicted_seconds", json_real(j->predicted.seconds));
    row = json_with_field(row, "bytes_received", json_integer(j->predicted.received));
    row = json_with_field(row, "workspace_bytes", json_integer(j->predicted.workspace_bytes));
    return json_with_field(row, "predicted_peak_bytes", json_integer(j->predicted.peak_bytes));
}

static void say_names(void)
{
    say("#%-12s %6s %8s %12s %12s %12s %10s %12s %12s %12s %12s %10s %7s %7s\n", " program", "ranks", "tokens", "time",
        "predicted", "kernels", "of_kernels", "received", "workspace", "peak", "predicted", "compile", "#wrong",
        "noise");
    say("#%-12s %6s %8s %12s %12s %12s %10s %12s %12s %12s %12s %10s %7s %7s\n", "", "", "", "(us)", "(us)", "(us)", "",
        "(B)", "(B)", "(B)", "(B)", "(us)", "", "(%)");
}

static void say_row(const job *j)
{
    char wrong[24] = "N/A", peak[24] = "N/A";
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)j->results[PROGRAM].wrong);
    if (j->peak >= 0)
        snprintf(peak, sizeof peak, "%lld", (long long)j->peak);
    if (!j->begun)
        say_names();
    say(" %-12s %6d %8lld %12.2f %12.2f %12.2f %10.3f %12.0f %12.0f %12s %12lld %10.1f %7s %7.1f\n", j->c.name,
        j->ranks, (long long)j->c.sizes.sequences * (long long)j->c.sizes.tokens,
        1e6 * j->results[PROGRAM].seconds.median, 1e6 * j->predicted.seconds, 1e6 * j->results[KERNELS].seconds.median,
        share_of_kernels(j), j->figures[RECEIVED], j->figures[WORKSPACE], peak, (long long)j->predicted.peak_bytes,
        1e6 * j->figures[COMPILE], wrong, 100 * spread_noise(j->results[PROGRAM].seconds));
}

static void say_compiled(const job *j)
{
    if (!j->begun)
        say("#%-12s %8s %8s %6s %10s %12s %12s %12s %14s %14s\n#%-12s %8s %8s %6s %10s %12s %12s %12s %14s %14s\n",
            " program", "ranks", "rank", "steps", "compile", "predicted", "received", "workspace", "predicted", "noise",
            "", "", "", "", "(us)", "(us)", "(B)", "(B)", "(peak, B)", "(%)");
    say(" %-12s %8lld %8lld %6lld %10.1f %12.2f %12lld %12lld %14lld %14.1f\n", j->c.name,
        (long long)tsr_mesh_count(j->mesh), (long long)j->rank, (long long)j->predicted.steps, 1e6 * j->compile.median,
        1e6 * j->predicted.seconds, (long long)j->predicted.received, (long long)j->predicted.workspace_bytes,
        (long long)j->predicted.peak_bytes, 100 * spread_noise(j->compile));
}

/* Records and compiles for j->rank over and over. */
static tsr_status time_compiles(job *j, const tsr_mesh *mesh, double *seconds)
{
    for (int64_t i = -j->settings.warm_ups; i < j->settings.iterations; i++) {
        TSR_TRY(program_predict(&j->c, mesh, j->rank, &j->predicted));
        if (i >= 0)
            seconds[i] = j->predicted.compile_seconds;
    }
    return tsr_bench_sum_up(seconds, j->settings.iterations, &j->compile);
}

static tsr_status compile_in(job *j, tsr_context *context)
{
    tsr_mesh *mesh;
    double *const seconds = calloc((size_t)j->settings.iterations, sizeof *seconds);
    if (!seconds)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the times of %lld compilations",
                              (long long)j->settings.iterations);
    tsr_status status = wholes_mesh(NULL, context, j->mesh, &mesh);
    if (status == TSR_OK) {
        status = time_compiles(j, mesh, seconds);
        tsr_mesh_destroy(mesh);
    }
    free(seconds);
    return status;
}

/* Compiles a program for one rank; nothing runs. */
static int compile_case(job *j)
{
    tsr_context *context;
    tsr_status status = program_context(j->profile, &context);
    if (status == TSR_OK) {
        status = compile_in(j, context);
        tsr_context_destroy(context);
    }
    if (status != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (j->given->value[OPT_JSON])
        return print_json(compiled_to_json(j));
    say_compiled(j);
    return EXIT_DONE;
}

/* Predicts a program, and counts its memory where ranks are threads. */
static int predict_case(job *j)
{
    tsr_status status = program_predict_all(&j->c, j->mesh, j->profile, &j->predicted);
    j->peak = -1;
    if (status == TSR_OK && place_launched(j->place) == 0)
        status = program_count_peak(&j->c, j->mesh, &j->peak);
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int run_case(job *j)
{
    int status = predict_case(j);
    status = bench_on_ranks(&j->settings, status, j->place, j->ranks, run_rank, j);
    if (status != EXIT_DONE || !place_speaks(j->place))
        return status;
    if (j->given->value[OPT_JSON])
        status = print_json(row_to_json(j));
    else
        say_row(j);
    if (status == EXIT_DONE && j->settings.checks && j->results[PROGRAM].wrong > 0)
        status = complain(EXIT_REFUSED, "%s: %lld elements are wrong", j->c.name, (long long)j->results[PROGRAM].wrong);
    return status;
}

static int measure_case(job *j, const program_case *c)
{
    const model_sizes sizes = j->c.sizes;
    j->c = *c;
    j->c.sizes = sizes;
    const int status = j->rank < 0 ? run_case(j) : compile_case(j);
    j->begun = true;
    return status;
}

/* Without names, all programs that can be run. */
static bool is_chosen(const tool_arguments *given, const program_case *c)
{
    bool chosen = given->operand_count == 0 && c->reference;
    for (int i = 0; i < given->operand_count; i++)
        chosen = chosen || strcmp(given->operand[i], c->name) == 0;
    return chosen;
}

static int check_names(const tool_arguments *given)
{
    for (int i = 0; i < given->operand_count; i++) {
        int at = 0;
        while (at < CASES && strcmp(cases[at].name, given->operand[i]) != 0)
            at++;
        if (at == CASES)
            return complain(EXIT_USAGE, "bench program has no program '%s'; it has mlp, llama-block and llama",
                            given->operand[i]);
        if (!cases[at].reference && !given->value[OPT_RANK])
            return complain(EXIT_USAGE, "%s is compiled and not run: --rank says for which rank of --mesh",
                            cases[at].name);
    }
    return EXIT_DONE;
}

static int check_sizes(const model_sizes *s)
{
    if (s->hidden % s->heads != 0 || s->hidden / s->heads % 2 != 0)
        return complain(EXIT_REFUSED, "--hidden %lld must be an even multiple of --heads %lld", (long long)s->hidden,
                        (long long)s->heads);
    if (s->heads % s->kv_heads != 0)
        return complain(EXIT_REFUSED, "--heads %lld must be a multiple of --kv-heads %lld", (long long)s->heads,
                        (long long)s->kv_heads);
    return EXIT_DONE;
}

static int read_sizes(const tool_arguments *given, model_sizes *s)
{
    const struct {
        const char *name;
        tool_option option;
        int64_t otherwise, *size;
    } rows[] = {{"--tokens", OPT_TOKENS, 512, &s->tokens}, {"--hidden", OPT_HIDDEN, 1024, &s->hidden},
                {"--heads", OPT_HEADS, 16, &s->heads},     {"--kv-heads", OPT_KV_HEADS, 4, &s->kv_heads},
                {"--layers", OPT_LAYERS, 32, &s->layers},  {"--intermediate", OPT_INTERMEDIATE, 0, &s->intermediate}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int status = parse_count(rows[i].name, given->value[rows[i].option], rows[i].otherwise, rows[i].size);
        if (status != EXIT_DONE)
            return status;
    }
    s->intermediate = s->intermediate ? s->intermediate : 4 * s->hidden;
    return check_sizes(s);
}

/* Reads --rank, of the ranks of the mesh. */
static int read_rank(job *j)
{
    j->rank = -1;
    if (!j->given->value[OPT_RANK])
        return EXIT_DONE;
    const int status = parse_index("--rank", j->given->value[OPT_RANK], &j->rank);
    if (status == EXIT_DONE && j->rank >= tsr_mesh_count(j->mesh))
        return complain(EXIT_REFUSED, "--rank is %lld, but --mesh %s has ranks 0 to %lld", (long long)j->rank,
                        j->given->value[OPT_MESH] ? j->given->value[OPT_MESH] : "1",
                        (long long)tsr_mesh_count(j->mesh) - 1);
    return status;
}

/* Opens the place in which programs run. */
static int open_place(job *j)
{
    int status = place_open(j->given, &j->place);
    if (status == EXIT_DONE)
        status = place_count_ranks(j->place, j->mesh, NULL, &j->ranks);
    if (status == EXIT_DONE && j->ranks != tsr_mesh_count(j->mesh))
        status = complain(EXIT_REFUSED, "--mesh %s: bench program takes a mesh of ranks 0, 1, ..",
                          j->given->value[OPT_MESH]);
    return status;
}

static int read_job(const tool_arguments *given, job *j)
{
    int status = bench_settings_read(given, &j->settings);
    if (status == EXIT_DONE)
        status = check_names(given);
    if (status == EXIT_DONE)
        status = read_sizes(given, &j->c.sizes);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH] ? given->value[OPT_MESH] : "1", &j->mesh);
    if (status == EXIT_DONE)
        status = read_rank(j);
    if (status == EXIT_DONE && given->value[OPT_PROFILE])
        status = profile_read(given->value[OPT_PROFILE], &j->profile);
    if (status == EXIT_DONE && j->rank < 0)
        status = open_place(j);
    if (status == EXIT_DONE)
        j->c.sizes.sequences = tsr_mesh_count(j->mesh) / tsr_mesh_size(j->mesh, tsr_mesh_ndim(j->mesh) - 1);
    return status;
}

static int run_bench(const tool_arguments *given)
{
    job j = {.given = given, .settings = {.iterations = 9, .warm_ups = 1, .loop_seconds = 2e-2, .checks = true}};
    int status = read_job(given, &j);
    for (int i = 0; i < CASES && status == EXIT_DONE; i++)
        if (is_chosen(given, &cases[i]))
            status = measure_case(&j, &cases[i]);
    place_close(j.place);
    tsr_mesh_destroy(j.mesh);
    tsr_profile_destroy(j.profile);
    return status == EXIT_DONE ? finish_stdout() : status;
}

const tool_command bench_program_command = {
    .name = "bench program",
    .summary = "how long runs of programs take",
    .details =
        "Records, compiles and runs an MLP with a gate, and a block of a Llama around it, of f32. The last mesh dim "
        "cuts weights, between heads; each rank along the others has a sequence of its own. Times are those of the "
        "slowest rank from barrier to barrier, medians. kernels is the time of the same kernels on the same local "
        "shapes, called one after the other on every rank at once, in turns with the program: nothing is moved. "
        "received and workspace are those of the rank that has most; compile is recording and compiling. The last "
        "row of each sequence is compared with plain loops in f64.\n\n"
        "predicted is what the cost model says before anything runs: the time by --profile, and the most memory of a "
        "rank. peak is what a rank had of memory at a time in a run of its own, counted by the allocator: its tensors, "
        "the workspace, and all that the library allocates, but not what the BLAS does.\n\n"
        "With --rank programs are compiled for that rank of --mesh, which may have a million ranks, and nothing runs; "
        "llama, a whole model of --layers with lengths and caches, is only compiled. Without names the first two are "
        "measured.",
    .examples = "  tessera bench program\n"
                "  tessera bench program llama-block --mesh dp=2,tp=2 --hidden 512 --heads 8 --tokens 256 --json\n"
                "  tessera bench program llama --mesh dp=131072,tp=8 --rank 0 --kv-heads 8\n",
    .operands = "[mlp|llama-block|llama ..]",
    .optional_operands = CASES,
    .takes = TAKES(MESH) | TAKES(TOKENS) | TAKES(HIDDEN) | TAKES(INTERMEDIATE) | TAKES(HEADS) | TAKES(KV_HEADS) |
             TAKES(LAYERS) | TAKES(RANK) | TAKES(PROFILE) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) |
             TAKES(CHECK) | TAKES(JSON),
    .defaults = {{OPT_MESH, "1"},
                 {OPT_TOKENS, "512"},
                 {OPT_HIDDEN, "1024"},
                 {OPT_INTERMEDIATE, "four times --hidden"},
                 {OPT_HEADS, "16"},
                 {OPT_KV_HEADS, "4"},
                 {OPT_LAYERS, "32"},
                 {OPT_RANK, "programs are run on all ranks"},
                 {OPT_ITERATIONS, "9"},
                 {OPT_WARM_UP, "1"}},
    .run = run_bench,
};
