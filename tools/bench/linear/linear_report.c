#include "bench/linear/linear.h"
#include "bench/run/csv.h"
#include "cli/report.h"

#include <stdlib.h>

static const char *const pass_names[PASSES] = {"forward", "backward"};

bool linear_job_reads(const linear_job *j)
{
    return j->tokens <= LINEAR_FEW_TOKENS && !place_enqueues(j->place);
}

static double rate_of_weights(const linear_job *j, double seconds)
{
    return seconds > 0 ? (double)j->weight_bytes / seconds : 0;
}

static double share_of_reading(spread read, spread seconds)
{
    return seconds.median > 0 ? read.median / seconds.median : 0;
}

/* Adds the fields of reading the weights; null, but for weight_bytes, if it was not measured. */
static json_t *with_reading(const linear_job *j, int pass, spread seconds, json_t *row)
{
    const bool reads = pass == FORWARD && linear_job_reads(j);
    const spread read = j->reads.seconds;
    row = json_with_field(row, "weight_bytes", json_integer(j->weight_bytes));
    row = json_with_field(row, "weight_bandwidth", reads ? json_real(rate_of_weights(j, seconds.median)) : json_null());
    row = json_with_field(row, "read_seconds", reads ? json_real(read.median) : json_null());
    row = json_with_field(row, "read_bandwidth", reads ? json_real(rate_of_weights(j, read.median)) : json_null());
    row = json_with_field(row, "of_read", reads ? json_real(share_of_reading(read, seconds)) : json_null());
    return json_with_field(row, "read_calls", reads ? json_integer(j->reads.calls) : json_null());
}

static json_t *pass_to_json(const linear_job *j, const char *mesh, int pass, spread seconds, spread gemm)
{
    json_t *const row = json_pack(
        "{ss ss ss sI ss sI sI sI ss ss ss so so sf sI so sI sI sI}", "bench", "linear", "engine",
        place_engine(j->place), "device", place_device_name(j->place), "ranks", (json_int_t)tsr_mesh_count(j->mesh),
        "mesh", mesh, "tokens", (json_int_t)j->tokens, "hidden", (json_int_t)j->hidden, "intermediate",
        (json_int_t)j->intermediate, "dtype", tsr_dtype_name(j->dtype), "weights", tsr_dtype_name(j->weights), "pass",
        pass_names[pass], "seconds", spread_to_json(seconds), "gemm_seconds", spread_to_json(gemm), "of_gemm",
        seconds.median > 0 ? gemm.median / seconds.median : 0.0, "iterations", (json_int_t)j->settings.iterations,
        "wrong", j->settings.checks ? json_integer(j->layers[pass].wrong) : json_null(), "warm_ups",
        (json_int_t)j->settings.warm_ups, "calls", (json_int_t)j->layers[pass].calls, "gemm_calls",
        (json_int_t)j->gemms[pass].calls);
    return with_reading(j, pass, seconds, row);
}

static void print_pass(const linear_job *j, int pass, spread seconds, spread gemm)
{
    const double flops =
        (pass == FORWARD ? 4.0 : 8.0) * (double)j->tokens * (double)j->hidden * (double)j->intermediate;
    char wrong[24] = "N/A", of_read[24] = "N/A", type[16];
    snprintf(type, sizeof type, "%s%s%s", tsr_dtype_name(j->dtype), j->weights == j->dtype ? "" : ",",
             j->weights == j->dtype ? "" : tsr_dtype_name(j->weights));
    if (pass == FORWARD && linear_job_reads(j))
        snprintf(of_read, sizeof of_read, "%.3f", share_of_reading(j->reads.seconds, seconds));
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)j->layers[pass].wrong);
    say(" %9lld %9lld %12lld %8s %9s %12.4f %12.4f %8.3f %10.1f %8s %8.2f %8.2f %8s\n", (long long)j->tokens,
        (long long)j->hidden, (long long)j->intermediate, type, pass_names[pass], 1e3 * seconds.median,
        1e3 * gemm.median, gemm.median / seconds.median, 1e-9 * flops / seconds.median, wrong, spread_noise(seconds),
        spread_noise(gemm), of_read);
}

static void print_columns(const linear_job *j, const char *mesh)
{
    say("# column- and row-parallel layers on mesh %s, engine %s, device %s\n", mesh, place_engine(j->place),
        place_device_name(j->place));
    say("#%9s %9s %12s %8s %9s %12s %12s %8s %10s %8s %8s %8s %8s\n", "tokens", "hidden", "intermediate", "type",
        "pass", "time", "gemm", "of_gemm", "rate", "#wrong", "noise", "noise", "of_read");
    say("#%9s %9s %12s %8s %9s %12s %12s %8s %10s %8s %8s %8s %8s\n", "", "", "", "", "", "(ms)", "(ms)", "",
        "(GFLOP/s)", "", "(time)", "(gemm)", "");
}

static int print_passes(bench_run *run, const linear_job *j, const char *mesh, bool begins_table)
{
    int status = EXIT_DONE;
    if (run->format == ROWS_TEXT && begins_table)
        print_columns(j, mesh);
    for (int pass = 0; pass < PASSES && status == EXIT_DONE; pass++) {
        const spread seconds = j->layers[pass].seconds, gemm = j->gemms[pass].seconds;
        if (run->format != ROWS_TEXT)
            status = bench_run_print(run, pass_to_json(j, mesh, pass, seconds, gemm));
        else
            print_pass(j, pass, seconds, gemm);
    }
    return status;
}

int linear_report(bench_run *run, const linear_job *j, bool begins_table)
{
    const int64_t wrong = j->settings.checks ? j->layers[FORWARD].wrong + j->layers[BACKWARD].wrong : 0;
    if (!place_speaks(j->place))
        return wrong > 0 ? EXIT_REFUSED : EXIT_DONE;
    char *const mesh = mesh_text(j->mesh);
    if (!mesh)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    int status = print_passes(run, j, mesh, begins_table);
    if (status == EXIT_DONE && wrong > 0)
        status = complain(EXIT_REFUSED, "%lld elements are not what the layers on mesh %s must give", (long long)wrong,
                          mesh);
    free(mesh);
    return status;
}
