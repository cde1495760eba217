/* bench dlpack: how long three tensors take to DLPack and back, as operands and result of an op. */
#include "bench/run/run.h"
#include "cli/report.h"

#include <tessera/dlpack.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3 };

/* What is measured: one tensor is lent, read, and given back. */
typedef tsr_status round_trip(tsr_context *context, const tsr_tensor *tensor, tsr_dlpack_view *view);

typedef struct job {
    tsr_context *context;
    tsr_tensor tensors[TENSORS];
    bench_settings settings;
    double *seconds; /* of iterations */
    spread spread;   /* of them */
    int64_t calls, wrong;
} job;

static tsr_status go_plain(tsr_context *context, const tsr_tensor *tensor, tsr_dlpack_view *view)
{
    struct DLManagedTensor *managed;
    TSR_TRY(tsr_tensor_to_dlpack(context, tensor, NULL, NULL, &managed));
    const tsr_status status = tsr_tensor_from_dlpack(managed, NULL, view);
    tsr_dlpack_release(managed);
    return status;
}

static tsr_status go_versioned(tsr_context *context, const tsr_tensor *tensor, tsr_dlpack_view *view)
{
    struct DLManagedTensorVersioned *managed;
    TSR_TRY(tsr_tensor_to_dlpack_versioned(context, tensor, 0, NULL, NULL, &managed));
    const tsr_status status = tsr_tensor_from_dlpack_versioned(managed, NULL, view);
    tsr_dlpack_release_versioned(managed);
    return status;
}

static const struct {
    const char *name;
    round_trip *go;
} forms[] = {{"versioned", go_versioned}, {"unversioned", go_plain}};

enum { FORMS = sizeof forms / sizeof forms[0] };

/* Times a loop of `calls` round trips of all tensors, and sets the mean. */
static tsr_status time_loop(const job *j, round_trip *go, int64_t calls, double *seconds)
{
    const double begin = clock_seconds();
    for (int64_t k = 0; k < calls; k++)
        for (int i = 0; i < TENSORS; i++) {
            tsr_dlpack_view view;
            TSR_TRY(go(j->context, &j->tensors[i], &view));
        }
    *seconds = (clock_seconds() - begin) / (double)calls;
    return TSR_OK;
}

/* As many calls as take the seconds of a loop. */
static tsr_status choose_calls(job *j, round_trip *go)
{
    double seconds;
    j->calls = j->settings.calls;
    if (j->calls > 0)
        return TSR_OK;
    for (j->calls = 1;; j->calls *= 2) {
        TSR_TRY(time_loop(j, go, j->calls, &seconds));
        if (seconds * (double)j->calls >= j->settings.loop_seconds)
            return TSR_OK;
    }
}

/* A view must be the tensor itself. */
static tsr_status check(job *j, round_trip *go)
{
    j->wrong = 0;
    for (int i = 0; i < TENSORS; i++) {
        tsr_dlpack_view view;
        TSR_TRY(go(j->context, &j->tensors[i], &view));
        j->wrong += memcmp(&view.tensor, &j->tensors[i], sizeof view.tensor) != 0;
    }
    return TSR_OK;
}

static tsr_status measure_form(job *j, round_trip *go)
{
    TSR_TRY(choose_calls(j, go));
    for (int64_t i = -j->settings.warm_ups; i < j->settings.iterations; i++) {
        double seconds;
        TSR_TRY(time_loop(j, go, j->calls, &seconds));
        if (i >= 0)
            j->seconds[i] = seconds;
        progress_step(j->settings.progress);
    }
    if (j->settings.checks)
        TSR_TRY(check(j, go));
    return tsr_bench_sum_up(j->seconds, j->settings.iterations, &j->spread);
}

static json_t *form_to_json(const job *j, const char *name)
{
    const tsr_tensor *const tensor = &j->tensors[0];
    json_t *const row =
        json_pack("{ss ss si so ss so sI sI sI}", "bench", "dlpack", "form", name, "tensors", TENSORS, "shape",
                  sizes_to_json(tensor->shape, tensor->ndim), "dtype", tsr_dtype_name(tensor->dtype), "seconds",
                  spread_to_json(j->spread), "iterations", (json_int_t)j->settings.iterations, "warm_ups",
                  (json_int_t)j->settings.warm_ups, "calls", (json_int_t)j->calls);
    return json_with_field(row, "wrong", j->settings.checks ? json_integer(j->wrong) : json_null());
}

static void say_form(const job *j, const char *name, bool begins_table)
{
    char shape[SHAPE_TEXT_BYTES], wrong[24] = "N/A";
    print_shape(j->tensors[0].ndim, j->tensors[0].shape, shape);
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)j->wrong);
    if (begins_table) {
        say("# %d tensors to DLPack and back\n", TENSORS);
        say("#%12s %20s %6s %12s %12s %12s %7s\n", "form", "shape", "type", "time", "min", "max", "#wrong");
        say("#%12s %20s %6s %12s %12s %12s\n", "", "", "", "(us)", "(us)", "(us)");
    }
    say(" %12s %20s %6s %12.3f %12.3f %12.3f %7s\n", name, shape, tsr_dtype_name(j->tensors[0].dtype),
        1e6 * j->spread.median, 1e6 * j->spread.min, 1e6 * j->spread.max, wrong);
}

static int measure_forms(bench_run *run, job *j, bool begins_table)
{
    int status = EXIT_DONE;
    for (int f = 0; f < FORMS && status == EXIT_DONE; f++) {
        if (measure_form(j, forms[f].go) != TSR_OK)
            return complain_status(EXIT_REFUSED);
        progress_clear(run->settings.progress);
        if (run->format == ROWS_TEXT)
            say_form(j, forms[f].name, begins_table && f == 0);
        else
            status = bench_run_print(run, form_to_json(j, forms[f].name));
        if (status == EXIT_DONE && j->wrong > 0)
            status = complain(EXIT_REFUSED, "%lld of %d views are wrong", (long long)j->wrong, TENSORS);
    }
    return status;
}

/* Tensors of that shape and dtype. Their elements are not looked at, so that any memory will do. */
static int make_tensors(const tool_arguments *now, job *out)
{
    static _Alignas(64) char memory[64];
    const char *const shape_text = now->value[OPT_SHAPE], *const dtype_text = now->value[OPT_DTYPE];
    tensor_shape shape = {.ndim = 2, .size = {64, 64}};
    tsr_dtype dtype = TSR_F32;
    int status = shape_text ? parse_shape(shape_text, &shape) : EXIT_DONE;
    if (status == EXIT_DONE && dtype_text)
        status = parse_dtype(dtype_text, &dtype);
    for (int i = 0; i < TENSORS; i++)
        out->tensors[i] = tsr_tensor_contiguous(memory, dtype, shape.ndim, shape.size);
    return status;
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    job j = {.settings = run->settings};
    int status = make_tensors(now, &j);
    if (status == EXIT_DONE && tsr_context_create(NULL, &j.context) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    j.seconds = calloc((size_t)j.settings.iterations, sizeof *j.seconds);
    if (status == EXIT_DONE && !j.seconds)
        status = complain(EXIT_REFUSED, "there is no memory for %lld times", (long long)j.settings.iterations);
    if (status == EXIT_DONE)
        status = measure_forms(run, &j, begins_table);
    free(j.seconds);
    tsr_context_destroy(j.context);
    return status;
}

static int count_steps(const bench_run *run, const tool_arguments *now, int64_t *out)
{
    (void)now;
    *out = FORMS * (run->settings.warm_ups + run->settings.iterations);
    return EXIT_DONE;
}

static const tool_option axes[] = {OPT_DTYPE, OPT_SHAPE};

static const bench_kind kind = {.name = "bench dlpack",
                                .axes = axes,
                                .axis_count = sizeof axes / sizeof *axes,
                                .within = 2,
                                .settings = {.iterations = 11, .warm_ups = 2, .loop_seconds = 2e-3, .checks = true},
                                .measure = measure,
                                .steps = count_steps};

static int run_bench(const tool_arguments *given)
{
    return bench_run_alone(&kind, given);
}

const tool_command bench_dlpack_command = {
    .name = "bench dlpack",
    .summary = "what three tensors take to DLPack and back",
    .details = "Lends three tensors by DLPack, reads them back and gives them back, as the operands and the result of "
               "an op cross into another framework: by the form with a version and by the one without. Elements are "
               "not touched. --shape (64x64 where it is not given) and --dtype may be repeated and be lists.",
    .examples = "  tessera bench dlpack\n"
                "  tessera bench dlpack --shape 8,4096x4096,2x3x4x5x6x7x8x9 --dtype bf16 --json\n",
    .takes = TAKES(SHAPE) | TAKES(DTYPE) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) |
             TAKES(JSON) | TAKES(CSV),
    .repeats = TAKES(SHAPE) | TAKES(DTYPE),
    .defaults = {{OPT_SHAPE, "64x64"}},
    .run = run_bench,
};
