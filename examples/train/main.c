/* tessera-train: trains a Llama or its kin on a mesh of ranks. */
#include "options.h"
#include "place/launch_advice.h"
#include "plot.h"
#include "program.h"
#include "random.h"
#include "report.h"
#include "settings.h"
#include "text.h"
#include "told.h"

#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most threads that one process starts. */
#define MOST_RANKS 4096

/* The files of a training. */
typedef struct opened {
    llama_config config;
    char *path;                  /* of config.json */
    tsr_safetensors *checkpoint; /* NULL: from scratch */
    train_data data, validation;
    llama_request sample;
    llama_tokens prompt; /* of it */
} opened;

static void finish(opened *o)
{
    free(o->path);
    free(o->prompt.ids);
    tsr_safetensors_destroy(o->checkpoint);
    train_data_finish(&o->data);
    train_data_finish(&o->validation);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static tsr_status open_model(const char *path, opened *o)
{
    const bool has_weights = is_folder(path);
    if (asprintf(&o->path, "%s%s", path, has_weights ? "/config.json" : "") < 0) {
        o->path = NULL;
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path in %s", path);
    }
    TSR_TRY(llama_config_load(o->path, &o->config));
    return has_weights ? tsr_safetensors_open(path, &o->checkpoint) : TSR_OK;
}

static tsr_status check_model(const train_options *options, const llama_config *config)
{
    if (config->mixture.jitters)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: router_jitter_noise is above 0; this program trains routers without noise: set it "
                              "to 0",
                              options->model);
    if (options->length > config->max_positions)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--length %lld: max_position_embeddings is %lld",
                              (long long)options->length, (long long)config->max_positions);
    return TSR_OK;
}

/* What samples are: all have one stream of random numbers, of which each step has its own part. */
static tsr_status make_sample(const train_options *options, opened *o)
{
    llama_tokens ids = {0};
    if (options->sample == 0)
        return TSR_OK;
    if (options->prompt_ids)
        TSR_TRY(llama_tokens_parse(options->prompt_ids, &ids));
    const tsr_status status = llama_tokens_prompt(&o->config, options->prompt, &ids, &o->prompt);
    free(ids.ids);
    TSR_TRY(status);
    o->sample = (llama_request){.prompt = o->prompt.ids,
                                .prompt_count = o->prompt.count,
                                .sampling = {options->temperature, llama_random_stream(options->seed, "samples")}};
    return llama_request_limit(&o->config, o->prompt.count, options->tokens, &o->sample.tokens);
}

/* Checks the folder of the plot before anything is computed, for it is written last. */
static tsr_status check_place(const char *path)
{
    char *const copy = strdup(path);
    if (!copy)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path");
    const int denied = access(dirname(copy), W_OK | X_OK);
    free(copy);
    return denied ? tsr_status_set(TSR_ERROR_IO, "--plot %s: %s", path, strerror(errno)) : TSR_OK;
}

static tsr_status open_files(const train_options *options, opened *o)
{
    if (options->plot)
        TSR_TRY(check_place(options->plot));
    TSR_TRY(open_model(options->model, o));
    TSR_TRY(check_model(options, &o->config));
    TSR_TRY(make_sample(options, o));
    TSR_TRY(train_data_open("--data", options->data, o->config.vocab_size, options->length, &o->data));
    if (options->validation)
        TSR_TRY(train_data_open("--validation", options->validation, o->config.vocab_size, options->length,
                                &o->validation));
    return TSR_OK;
}

/* Where the ranks' steps go. */
typedef struct audience {
    const train_options *options;
    const llama_config *config;
    train_plot plot;
} audience;

static tsr_status on_begin(void *user, const train_trainer *trainer)
{
    audience *const a = user;
    if (!a->options->json)
        train_report_begin(trainer);
    return a->options->plot ? train_plot_begin(&a->plot, trainer) : TSR_OK;
}

static tsr_status on_step(void *user, const train_step *step)
{
    audience *const a = user;
    TSR_TRY(train_report_step(a->config, step, a->options->json));
    return a->options->plot ? train_plot_add(&a->plot, step) : TSR_OK;
}

static train_plan plan_of(const train_options *options, const opened *o)
{
    return (train_plan){.config = &o->config,
                        .mesh = options->mesh,
                        .batch = options->batch,
                        .length = options->length,
                        .dtype = options->dtype,
                        .optimizer = options->optimizer,
                        .clip = options->clip,
                        .checkpoint = o->checkpoint,
                        .seed = options->seed,
                        .dropout = options->dropout,
                        .by_elements = options->by_elements,
                        .shards_states = options->shards_states,
                        .micro_batches = options->micro_batches,
                        .loss_scale = train_options_loss_scale(options),
                        .measures_peak = !options->json};
}

/* Tells what memory a training would take. */
static tsr_status tell(const train_options *given)
{
    opened o = {0};
    train_options options = *given;
    tsr_status status = given->resume ? train_settings_resume(given->resume, &options) : TSR_OK;
    if (status == TSR_OK)
        status = open_model(options.model, &o);
    if (status == TSR_OK)
        status = check_model(&options, &o.config);
    if (status == TSR_OK) {
        const train_plan plan = plan_of(&options, &o);
        status = train_tell_memory(&plan, options.validation != NULL, options.json);
    }
    finish(&o);
    return status;
}

static tsr_status train(const train_options *options, const opened *o, int ranks, const llama_processes *processes)
{
    audience told = {.options = options, .config = &o->config};
    const train_job job = {
        .plan = plan_of(options, o),
        .batches = {&o->data, options->batch, options->length, options->random,
                    llama_random_stream(options->seed, "windows")},
        .validation = options->validation ? &o->validation : NULL,
        .schedule = {sizeof(tsr_schedule), options->schedule, options->rate, options->final_rate, options->warm_up,
                     options->steps},
        .steps = options->steps,
        .every = options->every,
        .sample = o->sample,
        .sample_every = options->sample,
        .save = options->save,
        .saves_in_background = options->background,
        .settings = train_settings_of(options),
        .resume = options->resume,
        .ranks = ranks,
        .processes = processes,
        .config = o->path,
        .on_begin = on_begin,
        .on_step = on_step,
        .user = &told,
    };
    tsr_status status = train_run(&job);
    if (status == TSR_OK && options->plot && (!processes || llama_processes_speak(processes)))
        status = train_plot_write(&told.plot, options->plot);
    train_plot_finish(&told.plot);
    return status;
}

/* Completes the options with those of the state from which the run goes on. */
static tsr_status resume_options(train_options *options)
{
    TSR_TRY(train_settings_resume(options->resume, options));
    return train_options_complete(options);
}

static tsr_status run_on(const train_options *given, int ranks, const llama_processes *processes)
{
    opened o = {0};
    train_options options = *given;
    tsr_status status = TSR_OK;
    if (given->resume)
        status = resume_options(&options);
    if (status == TSR_OK)
        status = open_files(&options, &o);
    if (processes)
        status = llama_processes_agree(processes, status);
    if (status == TSR_OK)
        status = train(&options, &o, ranks, processes);
    finish(&o);
    return status;
}

/* The number of ranks of the mesh, whose text is checked. */
static tsr_status count_ranks(const char *mesh, int *out)
{
    static const llama_config any = {.kv_heads = 1};
    train_layouts layouts;
    TSR_TRY(train_layouts_init(&layouts, &any, NULL, NULL, mesh));
    const int64_t ranks = tsr_mesh_count(layouts.mesh);
    const bool is_plain = !strchr(mesh, '@');
    train_layouts_finish(&layouts);
    if (!is_plain || ranks > MOST_RANKS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--mesh %s: a training has all ranks from 0 on, at most %d", mesh,
                              MOST_RANKS);
    *out = (int)ranks;
    return TSR_OK;
}

/* True if ranks are processes: by --engine, else if a launcher started more than one. */
static bool of_processes(const train_options *options)
{
    return options->engine ? strcmp(options->engine, "mpi") == 0 : tsr_launch_get().ranks > 1;
}

static int run(const train_options *options)
{
    int ranks = 0;
    if (count_ranks(options->mesh, &ranks) != TSR_OK)
        return llama_fail(LLAMA_REFUSED);
    if (!of_processes(options))
        return run_on(options, ranks, NULL) == TSR_OK ? 0 : llama_fail(LLAMA_REFUSED);
    llama_processes processes;
    if (llama_processes_join(&processes) != TSR_OK)
        return llama_fail(LLAMA_REFUSED);
    tsr_status status = TSR_OK;
    if (ranks != llama_processes_count(&processes)) {
        char advice[LAUNCH_ADVICE_BYTES];
        launch_advice(ranks, llama_processes_count(&processes), advice);
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "--mesh %s: %s", options->mesh, advice);
    }
    if (status == TSR_OK)
        status = run_on(options, ranks, &processes);
    /* Before ranks part: where a process ends with a failure, launchers kill the rest. */
    const int code = status == TSR_OK ? 0 : llama_processes_fail(&processes, status);
    llama_processes_leave(&processes);
    return code;
}

static int answer(const train_options *options)
{
    if (options->help)
        fputs(train_usage, stdout);
    else if (options->version)
        printf("tessera-train %s\n", tsr_version());
    else if (!options->memory)
        return run(options);
    else if (tell(options) != TSR_OK)
        return llama_fail(LLAMA_REFUSED);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    (void)tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return llama_fail(LLAMA_REFUSED);
}

int main(int argc, char **argv)
{
    llama_start(argv);
    train_options options;
    if (train_options_parse(argc, argv, &options) != TSR_OK)
        return tsr_launch_get().rank == 0 ? llama_fail(LLAMA_USAGE) : LLAMA_USAGE; /* all ranks have the same options */
    /* For work of a single process, only the first of the launched processes runs. */
    const bool idle =
        tsr_launch_get().rank > 0 && (options.help || options.version || options.memory || !of_processes(&options));
    return idle ? 0 : answer(&options);
}
