/* tessera-llama: a Hugging Face checkpoint of a Llama or its kin, tensor-parallel on any number of
 * ranks. */
#include "options.h"
#include "place/launch_advice.h"
#include "program.h"
#include "random.h"
#include "report.h"
#include "text.h"

#include <tessera/npy.h>
#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tsr_status load_config(const llama_options *options, llama_config *out)
{
    if (options->random)
        return llama_config_load(options->random, out);
    char *path;
    if (asprintf(&path, "%s/config.json", options->directory) < 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path in %s", options->directory);
    const tsr_status status = llama_config_load(path, out);
    free(path);
    return status;
}

/* Checks the directory of the logits file before anything is computed, for the file is written
 * last. */
static tsr_status check_place(const char *path)
{
    char *const copy = strdup(path);
    if (!copy)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path");
    const int denied = access(dirname(copy), W_OK | X_OK);
    free(copy);
    return denied ? tsr_status_set(TSR_ERROR_IO, "--logits %s: %s", path, strerror(errno)) : TSR_OK;
}

static tsr_status prepare_logits(const char *path, const llama_job *job, const llama_outcome *outcome,
                                 tsr_new_file **out)
{
    const int64_t shape[] = {job->request.prompt_count, job->config->vocab_size};
    const tsr_tensor logits = tsr_tensor_contiguous(outcome->generation.logits, TSR_F32, 2, shape);
    TSR_TRY(tsr_npy_prepare(path, &logits, out));
    const tsr_status status = *out ? tsr_new_file_settle(*out) : TSR_OK;
    if (status != TSR_OK)
        tsr_new_file_discard(*out);
    return status;
}

static tsr_status finish_stdout(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}

static tsr_status report(const llama_options *options, const llama_job *job, const llama_outcome *outcome)
{
    if (options->json)
        TSR_TRY(llama_report_json(job, outcome));
    else
        llama_report(job, outcome);
    return finish_stdout();
}

/* Writes the logits, prints the report, and only then gives the logits file its name. If the report
 * fails there is no file; if the logits cannot be written there is no report. */
static tsr_status tell(const llama_options *options, const llama_job *job, const llama_outcome *outcome)
{
    tsr_new_file *logits;
    if (!options->logits)
        return report(options, job, outcome);
    TSR_TRY(prepare_logits(options->logits, job, outcome, &logits));
    const tsr_status status = report(options, job, outcome);
    if (status == TSR_OK)
        return logits ? tsr_new_file_publish(logits) : TSR_OK;
    tsr_new_file_discard(logits);
    return status;
}

static tsr_status run_job(const llama_options *options, const llama_job *job)
{
    llama_outcome outcome;
    TSR_TRY(llama_run(job, &outcome));
    if (job->processes && !llama_processes_speak(job->processes)) {
        llama_outcome_finish(&outcome);
        return TSR_OK;
    }
    const tsr_status status = tell(options, job, &outcome);
    llama_outcome_finish(&outcome);
    return status;
}

static tsr_status run_prompt(const llama_options *options, const llama_config *config,
                             const tsr_safetensors *checkpoint, const tsr_parallel_rules *plan,
                             const llama_processes *processes)
{
    llama_tokens prompt;
    TSR_TRY(llama_tokens_prompt(config, options->prompt, &options->prompt_ids, &prompt));
    llama_job job = {
        .config = config,
        .source = {checkpoint, options->seed, options->weights, options->is_q8},
        .plan = plan,
        .ranks = processes ? llama_processes_count(processes) : options->ranks,
        .processes = processes,
        .request = {.prompt = prompt.ids,
                    .prompt_count = prompt.count,
                    .sampling = {options->temperature, llama_random_stream(options->seed, "tokens")},
                    .all_logits = options->logits != NULL,
                    .on_token = options->json ? NULL : llama_print_token,
                    .user = config},
    };
    tsr_status status = llama_request_limit(config, prompt.count, options->tokens, &job.request.tokens);
    if (status == TSR_OK)
        status = run_job(options, &job);
    free(prompt.ids);
    return status;
}

/* Opens the plan that is asked for, or that config.json has. */
static tsr_status open_plan(const llama_options *options, const llama_config *config, tsr_parallel_rules **out)
{
    char path[4096];
    if (options->tp_plan)
        return tsr_parallel_rules_open(options->tp_plan, out);
    if (!config->has_plan || options->is_q8)
        return TSR_OK;
    if (options->random)
        return tsr_parallel_rules_open(options->random, out);
    snprintf(path, sizeof path, "%s/config.json", options->directory);
    return tsr_parallel_rules_open(path, out);
}

static tsr_status open_model(const llama_options *options, llama_config *config, tsr_safetensors **checkpoint,
                             tsr_parallel_rules **plan)
{
    if (options->logits)
        TSR_TRY(check_place(options->logits));
    TSR_TRY(load_config(options, config));
    if (options->is_q8 && config->mixture.experts > 0)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "--weights q8: config.json has %lld experts, whose matrices are kept in f32, f16 or bf16; "
            "give checkpoint, f32 or bf16",
            (long long)config->mixture.experts);
    TSR_TRY(open_plan(options, config, plan));
    return !options->random ? tsr_safetensors_open(options->directory, checkpoint) : TSR_OK;
}

static tsr_status run_on(const llama_options *options, const llama_processes *processes)
{
    llama_config config;
    tsr_safetensors *checkpoint = NULL;
    tsr_parallel_rules *plan = NULL;
    tsr_status status = open_model(options, &config, &checkpoint, &plan);
    if (processes)
        status = llama_processes_agree(processes, status);
    if (status == TSR_OK)
        status = run_prompt(options, &config, checkpoint, plan, processes);
    tsr_safetensors_destroy(checkpoint);
    tsr_parallel_rules_destroy(plan);
    return status;
}

/* True if ranks are processes: by --engine, else if a launcher started more than one. */
static bool of_processes(const llama_options *options)
{
    return options->engine ? strcmp(options->engine, "mpi") == 0 : tsr_launch_get().ranks > 1;
}

static int run(const llama_options *options)
{
    if (!of_processes(options))
        return run_on(options, NULL) == TSR_OK ? 0 : llama_fail(LLAMA_REFUSED);
    llama_processes processes;
    if (llama_processes_join(&processes) != TSR_OK)
        return llama_fail(LLAMA_REFUSED);
    tsr_status status = TSR_OK;
    if (options->ranks_given && options->ranks != llama_processes_count(&processes)) {
        char advice[LAUNCH_ADVICE_BYTES];
        launch_advice(options->ranks, llama_processes_count(&processes), advice);
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "--ranks %d: %s", options->ranks, advice);
    }
    if (status == TSR_OK)
        status = run_on(options, &processes);
    /* Before ranks part: where a process ends with a failure, launchers kill the rest. */
    const int code = status == TSR_OK ? 0 : llama_processes_fail(&processes, status);
    llama_processes_leave(&processes);
    return code;
}

static int answer(const llama_options *options)
{
    if (options->help)
        fputs(llama_usage, stdout);
    else if (options->version)
        printf("tessera-llama %s\n", tsr_version());
    else {
        const int code = run(options);
        if (code)
            return code;
    }
    return finish_stdout() == TSR_OK ? 0 : llama_fail(LLAMA_REFUSED);
}

int main(int argc, char **argv)
{
    llama_start(argv);
    llama_options options;
    if (llama_options_parse(argc, argv, &options) != TSR_OK)
        return tsr_launch_get().rank == 0 ? llama_fail(LLAMA_USAGE) : LLAMA_USAGE; /* all ranks have the same options */
    /* For work of a single process, only the first of the launched processes runs. */
    const bool idle = tsr_launch_get().rank > 0 && (options.help || options.version || !of_processes(&options));
    const int code = idle ? 0 : answer(&options);
    llama_options_finish(&options);
    return code;
}
