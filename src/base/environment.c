#include "base/environment.h"

#include "base/processor.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* About 31 years; small enough that its nanoseconds fit an int64_t. */
#define LONGEST_TIMEOUT_MS INT64_C(1000000000000)
#define LARGEST_SPIN       INT64_C(1000000000000)
#define LARGEST_CACHE      (INT64_C(1) << 20)

static tsr_status parse_number(const char *name, const char *value, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < low || number > high)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is \"%.64s\", not a number from %lld to %lld", name, value,
                              (long long)low, (long long)high);
    *out = number;
    return TSR_OK;
}

static tsr_status parse_setting(const char *name, const char *value, int64_t low, int64_t high, tsr_setting *out)
{
    TSR_TRY(parse_number(name, value, low, high, &out->value));
    out->is_set = true;
    return TSR_OK;
}

static tsr_status apply_log(const char *value, tsr_settings *settings)
{
    static const char *const levels[] = {"silent", "error", "warn", "info", "debug"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(value, levels[i]) == 0) {
            settings->log_level = (tsr_log_level)i;
            return TSR_OK;
        }
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "TSR_LOG is \"%.64s\", not silent, error, warn, info or debug", value);
}

static tsr_status apply_kernels(const char *value, tsr_settings *settings)
{
    return tsr_settings_set_kernels(settings, "TSR_KERNELS", value);
}

static tsr_status apply_blas(const char *value, tsr_settings *settings)
{
    settings->blas = value;
    return TSR_OK;
}

static tsr_status apply_timeout(const char *value, tsr_settings *settings)
{
    return parse_setting("TSR_TIMEOUT_MS", value, 0, LONGEST_TIMEOUT_MS, &settings->timeout_ms);
}

static tsr_status apply_spin(const char *value, tsr_settings *settings)
{
    return parse_setting("TSR_SPIN", value, -1, LARGEST_SPIN, &settings->spin);
}

static tsr_status apply_stall(const char *value, tsr_settings *settings)
{
    return parse_setting("TSR_STALL_MS", value, 0, LONGEST_TIMEOUT_MS, &settings->stall_ms);
}

static tsr_status apply_ranks(const char *value, tsr_settings *settings)
{
    return parse_setting("TSR_RANKS", value, 1, INT_MAX, &settings->ranks);
}

const char *tsr_environment_mpi(const char *name)
{
    static const char *const names[] = {"openmpi", "mpich"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return names[i];
    return NULL;
}

static tsr_status apply_mpi(const char *value, tsr_settings *settings)
{
    settings->mpi = tsr_environment_mpi(value);
    if (settings->mpi)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "TSR_MPI is \"%.64s\", not " TSR_MPI_NAMES, value);
}

static tsr_status apply_plan_cache(const char *value, tsr_settings *settings)
{
    int64_t entries = 0;
    TSR_TRY(parse_number("TSR_PLAN_CACHE", value, 1, LARGEST_CACHE, &entries));
    settings->plan_cache_entries = (size_t)entries;
    return TSR_OK;
}

static tsr_status apply_plan_entries(const char *value, tsr_settings *settings)
{
    return parse_number("TSR_PLAN_ENTRIES", value, 1, (int64_t)TSR_MOST_PLAN_ENTRIES, &settings->plan_entries);
}

static tsr_status apply_kept(const char *value, tsr_settings *settings)
{
    int64_t bytes = 0;
    TSR_TRY(parse_number("TSR_KEPT_BYTES", value, 0, INT64_MAX, &bytes));
    settings->kept_bytes = (size_t)bytes;
    return TSR_OK;
}

static tsr_status apply_cost(const char *value, tsr_settings *settings)
{
    tsr_profile *profile;
    const tsr_status status = tsr_profile_parse(value, &profile);
    if (status != TSR_OK)
        return tsr_status_set(status, "TSR_COST: %s", tsr_status_message());
    tsr_settings_set_profile(settings, profile);
    tsr_profile_destroy(profile);
    return TSR_OK;
}

static const struct {
    tsr_environment_variable row;
    tsr_status (*apply)(const char *value, tsr_settings *settings);
} table[] = {
    {{"TSR_LOG", "What is logged: silent (the default), error, warn, info or debug."}, apply_log},
    {{"TSR_KERNELS",
      "Kernels of the host device: portable, avx2 or avx512 instead of the best that the processor runs, and how large "
      "moves "
      "go: measured (the default), fixed, plain, plain-ahead, plain-rows, stream, stream-ahead or stream-rows."},
     apply_kernels},
    {{"TSR_BLAS", "Which BLAS linear layers multiply by on the host: names (openblas, scipy-openblas, onednn, mkl), "
                  "paths of libraries, a list "
                  "of those, or auto; the one that libtessera links by default."},
     apply_blas},
    {{"TSR_RANKS",
      "How many rank threads a program of tsr_run() has where no launcher started it; by default as many as "
      "there are processors that it may use."},
     apply_ranks},
    {{"TSR_MPI", "The MPI that tsr_run() and --engine mpi open, where the launcher does not tell: " TSR_MPI_NAMES "."},
     apply_mpi},
    {{"TSR_TIMEOUT_MS", "How many milliseconds a rank waits for its peers; 0, the default of rank threads, for ever."},
     apply_timeout},
    {{"TSR_SPIN", "How often a waiting rank thread polls before it sleeps; -1, the default: by the number of cores, 0: "
                  "it sleeps at once."},
     apply_spin},
    {{"TSR_STALL_MS",
      "After how many milliseconds rank threads that all wait, in different communicators, count as stalled although "
      "other threads may still call for them; 0: never."},
     apply_stall},
    {{"TSR_PLAN_CACHE", "How many plans a mesh keeps for repeated redistributes; 64 by default."}, apply_plan_cache},
    {{"TSR_PLAN_ENTRIES",
      "How many entries of lists and steps one plan, or another question about layouts, may take; 8388608 by default."},
     apply_plan_entries},
    {{"TSR_KEPT_BYTES", "How many bytes of destroyed large results a context keeps as memory for new ones; 1073741824 "
                        "by default, 0: none."},
     apply_kept},
    {{"TSR_COST",
      "What links cost, by which plans are compared: inside=LATENCY,BANDWIDTH between=LATENCY,BANDWIDTH, and the "
      "tables that tessera bench calibrate measures."},
     apply_cost},
};

const tsr_environment_variable *tsr_environment_get(size_t index)
{
    return index < sizeof table / sizeof *table ? &table[index].row : NULL;
}

tsr_status tsr_environment_apply(const char *(*get)(void *user, const char *name), void *user, tsr_settings *settings)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *name = table[i].row.name;
        const char *value = get ? get(user, name) : getenv(name);
        if (value && *value)
            TSR_TRY(table[i].apply(value, settings));
    }
    return TSR_OK;
}

void tsr_settings_set_profile(tsr_settings *settings, tsr_profile *profile)
{
    tsr_profile_destroy(settings->measured);
    settings->measured =
        tsr_profile_has_tables(profile) || tsr_profile_has_kernels(profile) ? tsr_profile_retain(profile) : NULL;
    settings->profile = tsr_profile_links(profile);
}

static tsr_status set_instructions(tsr_settings *settings, const char *source, const char *name)
{
    if (!tsr_processor_runs(name))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s is \"%s\", but the best that this processor runs is \"%s\"",
                              source, name, tsr_processor_kernels());
    settings->kernels = name;
    return TSR_OK;
}

/* One word of the list: a set of instructions or a way. */
static tsr_status set_word(tsr_settings *settings, const char *source, const char *text, const char *word,
                           size_t length)
{
    char copy[16] = "";
    if (length < sizeof copy)
        memcpy(copy, word, length);
    const char *const name = tsr_processor_name(copy);
    const tsr_way way = tsr_way_find(word, length);
    if (name)
        return set_instructions(settings, source, name);
    if (way == TSR_WAY_END)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s is \"%.64s\", not portable, avx2 or avx512, nor " TSR_WAY_NAMES
                              ", nor one of each with a comma between",
                              source, text);
    settings->way = way;
    return TSR_OK;
}

tsr_status tsr_settings_set_kernels(tsr_settings *settings, const char *source, const char *kernels)
{
    const char *word = kernels;
    for (;;) {
        const size_t length = strcspn(word, ",");
        TSR_TRY(set_word(settings, source, kernels, word, length));
        if (!word[length])
            return TSR_OK;
        word += length + 1;
    }
}
