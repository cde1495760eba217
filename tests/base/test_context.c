#include "base/context.h"
#include "base/processor.h"
#include "base/settings.h"
#include "counted_memory.h"

#include <tessera/sys/log.h>
#include <tessera/sys/options.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* "NAME=value" pairs, ended by NULL, as an environment. */
static const char *listed_environment(void *user, const char *name)
{
    const size_t length = strlen(name);
    for (const char *const *pair = user; *pair; pair++)
        if (strncmp(*pair, name, length) == 0 && (*pair)[length] == '=')
            return *pair + length + 1;
    return NULL;
}

static tsr_status create_with(const char *pair, tsr_context **out)
{
    const char *pairs[] = {pair, NULL};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.environment = listed_environment;
    options.environment_user = pairs;
    return tsr_context_create(&options, out);
}

static tsr_context *with(const char *pair)
{
    tsr_context *context = NULL;
    assert_int_equal(create_with(pair, &context), TSR_OK);
    return context;
}

static void options_that_are_left_out_have_defaults(void **state)
{
    (void)state;
    tsr_context *context = with("UNRELATED=1");
    const tsr_settings *settings = tsr_context_settings(context);
    assert_int_equal(settings->plan_cache_entries, 64);
    assert_int_equal(settings->plan_entries, 1 << 23);
    assert_int_equal(settings->kept_bytes, 1 << 30);
    assert_false(settings->timeout_ms.is_set);
    assert_false(settings->spin.is_set);
    assert_int_equal(settings->log_level, TSR_LOG_SILENT);
    const tsr_cost_profile profile = tsr_cost_default();
    assert_memory_equal(&settings->profile, &profile, sizeof profile);
    assert_string_equal(tsr_context_kernels(context), tsr_processor_kernels());
    tsr_context_destroy(context);
}

static void each_variable_overrides_its_setting(void **state)
{
    (void)state;
    tsr_context *context = with("TSR_LOG=debug");
    assert_int_equal(tsr_context_settings(context)->log_level, TSR_LOG_DEBUG);
    tsr_context_destroy(context);
    context = with("TSR_KERNELS=portable");
    assert_string_equal(tsr_context_kernels(context), "portable");
    tsr_context_destroy(context);
    context = with("TSR_TIMEOUT_MS=1500");
    assert_int_equal(tsr_context_settings(context)->timeout_ms.value, 1500);
    assert_int_equal(tsr_context_timeout_ms(context, 7), 1500);
    tsr_context_destroy(context);
    context = with("TSR_BLAS=mkl,/opt/libblas.so");
    assert_string_equal(tsr_context_blas(context), "mkl,/opt/libblas.so");
    tsr_context_destroy(context);
    context = with("TSR_SPIN=0");
    assert_int_equal(tsr_context_timeout_ms(context, 7), 7);
    tsr_context_destroy(context);
    context = with("TSR_SPIN=-1");
    assert_int_equal(tsr_context_settings(context)->spin.value, -1);
    tsr_context_destroy(context);
    context = with("TSR_STALL_MS=0");
    assert_true(tsr_context_settings(context)->stall_ms.is_set);
    assert_int_equal(tsr_context_settings(context)->stall_ms.value, 0);
    tsr_context_destroy(context);
    context = with("TSR_PLAN_CACHE=3");
    assert_int_equal(tsr_context_settings(context)->plan_cache_entries, 3);
    tsr_context_destroy(context);
    context = with("TSR_PLAN_ENTRIES=77");
    assert_int_equal(tsr_context_settings(context)->plan_entries, 77);
    tsr_context_destroy(context);
    context = with("TSR_KEPT_BYTES=123456");
    assert_int_equal(tsr_context_settings(context)->kept_bytes, 123456);
    assert_int_equal(tsr_context_kept_statistics(context).most_bytes, 123456);
    tsr_context_destroy(context);
    context = with("TSR_KEPT_BYTES=0");
    assert_int_equal(tsr_context_settings(context)->kept_bytes, 0);
    tsr_context_destroy(context);
    context = with("TSR_COST=inside=1e-6,2e10");
    assert_true(tsr_context_settings(context)->profile.inside.latency == 1e-6);
    assert_true(tsr_context_settings(context)->profile.inside.bandwidth == 2e10);
    tsr_context_destroy(context);
}

static void an_empty_variable_counts_as_not_set(void **state)
{
    (void)state;
    for (size_t i = 0; tsr_environment_get(i); i++) {
        char pair[64];
        snprintf(pair, sizeof pair, "%s=", tsr_environment_get(i)->name);
        tsr_context_destroy(with(pair));
    }
}

static void the_environment_wins_over_the_options(void **state)
{
    (void)state;
    const char *pairs[] = {"TSR_LOG=error", "TSR_PLAN_CACHE=5", "TSR_COST=between=1,1", NULL};
    const tsr_cost_profile given = {{1, 2}, {3, 4}};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.environment = listed_environment;
    options.environment_user = pairs;
    options.log_level = TSR_LOG_INFO;
    options.plan_cache_entries = 9;
    options.profile = &given;
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_context_settings(context)->log_level, TSR_LOG_ERROR);
    assert_int_equal(tsr_context_settings(context)->plan_cache_entries, 5);
    /* The variable replaces the whole profile: values that it leaves out are the defaults. */
    assert_true(tsr_context_settings(context)->profile.inside.latency == tsr_cost_default().inside.latency);
    assert_true(tsr_context_settings(context)->profile.between.latency == 1);
    tsr_context_destroy(context);
}

static void a_bad_variable_is_refused_by_name_and_value(void **state)
{
    (void)state;
    const char *const bad[] = {"TSR_LOG=loud",
                               "TSR_LOG=DEBUG",
                               "TSR_KERNELS=sse2",
                               "TSR_TIMEOUT_MS=soon",
                               "TSR_TIMEOUT_MS=-1",
                               "TSR_TIMEOUT_MS=1s",
                               "TSR_TIMEOUT_MS=99999999999999999999",
                               "TSR_SPIN=-2",
                               "TSR_SPIN=x",
                               "TSR_STALL_MS=-1",
                               "TSR_PLAN_CACHE=0",
                               "TSR_PLAN_CACHE=99999999",
                               "TSR_PLAN_ENTRIES=0",
                               "TSR_PLAN_ENTRIES=1e6",
                               "TSR_PLAN_ENTRIES=1099511627777",
                               "TSR_KEPT_BYTES=-1",
                               "TSR_KEPT_BYTES=1G",
                               "TSR_RANKS=0",
                               "TSR_RANKS=2147483648",
                               "TSR_MPI=lam",
                               "TSR_COST=fast",
                               "TSR_COST=inside=1,0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tsr_context *context = NULL;
        if (create_with(bad[i], &context) != TSR_ERROR_ARGUMENT || context)
            fail_msg("%s was not refused", bad[i]);
        const char *equals = strchr(bad[i], '=');
        char name[32] = {0};
        memcpy(name, bad[i], (size_t)(equals - bad[i]));
        assert_non_null(strstr(tsr_status_message(), name));
        assert_non_null(strstr(tsr_status_message(), equals + 1));
    }
}

static void the_table_of_variables_has_distinct_names_and_a_sentence_each(void **state)
{
    (void)state;
    size_t rows = 0;
    for (; tsr_environment_get(rows); rows++) {
        assert_memory_equal(tsr_environment_get(rows)->name, "TSR_", 4);
        assert_true(strlen(tsr_environment_get(rows)->help) > 10);
        for (size_t i = 0; i < rows; i++)
            assert_string_not_equal(tsr_environment_get(i)->name, tsr_environment_get(rows)->name);
    }
    assert_int_equal(rows, 12);
    assert_null(tsr_environment_get(SIZE_MAX));
}

static void refuse(const tsr_context_options *options, tsr_status status, const char *says)
{
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(options, &context), status);
    assert_null(context);
    if (!strstr(tsr_status_message(), says))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), says);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    counted_memory memory = {0};
    const tsr_context_options good = counted_options(&memory);
    tsr_context_options bad = good;
    bad.allocator.release = NULL;
    refuse(&bad, TSR_ERROR_ARGUMENT, "allocator has allocate but no release");
    bad = good;
    bad.allocator.allocate = NULL;
    refuse(&bad, TSR_ERROR_ARGUMENT, "allocator has release but no allocate");
    bad = good;
    bad.log_level = (tsr_log_level)5;
    refuse(&bad, TSR_ERROR_ARGUMENT, "log_level is 5");
    bad = good;
    bad.log_level = (tsr_log_level)-1;
    refuse(&bad, TSR_ERROR_ARGUMENT, "log_level is -1");
    bad = good;
    bad.kernels = "fastest";
    refuse(&bad, TSR_ERROR_ARGUMENT, "options.kernels is \"fastest\"");
    bad = good;
    bad.plan_entries = SIZE_MAX;
    refuse(&bad, TSR_ERROR_ARGUMENT, "options.plan_entries is");
    bad = good;
    bad.size = 0;
    refuse(&bad, TSR_ERROR_ARGUMENT, "options.size is 0");
    bad.size = sizeof bad + 8;
    refuse(&bad, TSR_ERROR_ARGUMENT, "options.size is");
    assert_int_equal(tsr_context_create(&good, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(memory.allocations, 0);
}

static void a_shorter_option_struct_leaves_the_rest_at_its_defaults(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context_options options = counted_options(&memory);
    options.size = offsetof(tsr_context_options, plan_cache_entries);
    options.plan_cache_entries = 7;
    options.kernels = "not read";
    options.profile = (const tsr_cost_profile *)1;
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_context_settings(context)->plan_cache_entries, 64);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void kernels_are_a_set_a_way_or_both(void **state)
{
    static const struct {
        const char *text, *kernels, *way;
    } cases[] = {{"portable", "portable", "measured"},    {"fixed", NULL, "fixed"},
                 {"measured", NULL, "measured"},          {"stream-rows", NULL, "stream-rows"},
                 {"portable,plain", "portable", "plain"}, {"plain-ahead,portable", "portable", "plain-ahead"}};
    static const char *const refused[] = {
        "", ",", "portable,", "plain,,portable", "plain stream", "stream-", "streamed", "portable,plain,fast"};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    (void)state;
    options.environment = no_environment;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.kernels = cases[i].text;
        assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
        assert_string_equal(tsr_context_kernels(context),
                            cases[i].kernels ? cases[i].kernels : tsr_processor_kernels());
        assert_string_equal(tsr_context_kernel_way(context), cases[i].way);
        tsr_context_destroy(context);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        options.kernels = refused[i];
        assert_int_equal(tsr_context_create(&options, &context), TSR_ERROR_ARGUMENT);
        assert_non_null(strstr(tsr_status_message(), "options.kernels is"));
        assert_non_null(strstr(tsr_status_message(), "stream-rows"));
    }
}

static void kernels_run_up_to_the_best_of_this_processor(void **state)
{
    (void)state;
    const char *const names[] = {"portable", "avx2", "avx512"};
    bool expected = true;
    for (size_t i = 0; i < 3; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        options.environment = no_environment;
        options.kernels = names[i];
        tsr_context *context = NULL;
        assert_int_equal(tsr_processor_runs(names[i]), expected);
        assert_int_equal(tsr_context_create(&options, &context), expected ? TSR_OK : TSR_ERROR_UNAVAILABLE);
        if (expected)
            assert_string_equal(tsr_context_kernels(context), names[i]);
        tsr_context_destroy(context);
        if (strcmp(names[i], tsr_processor_kernels()) == 0)
            expected = false;
    }
    assert_false(expected);
    assert_false(tsr_processor_runs("neon"));
    assert_false(tsr_processor_runs(""));
    assert_null(tsr_processor_name("avx"));
}

static void a_context_lives_until_its_last_reference(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_context *again = NULL;
    assert_ptr_equal(tsr_context_retain(context), context);
    assert_int_equal(tsr_context_resolve(context, &again), TSR_OK);
    assert_ptr_equal(again, context);
    tsr_context_destroy(context);
    tsr_context_destroy(context);
    assert_int_equal(memory.live_blocks, 1);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    tsr_context_destroy(NULL);
    assert_null(tsr_context_retain(NULL));
}

static void a_failed_allocation_leaves_the_output_alone(void **state)
{
    (void)state;
    counted_memory memory = {.fail_at = 1};
    const tsr_context_options options = counted_options(&memory);
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&options, &context), TSR_ERROR_MEMORY);
    assert_null(context);
    assert_nothing_leaked(&memory);
}

/* What a sink got. */
typedef struct heard {
    int count;
    tsr_log_level level;
    char line[2048];
} heard;

static void hear(void *user, tsr_log_level level, const char *line)
{
    heard *ear = user;
    ear->count++;
    ear->level = level;
    snprintf(ear->line, sizeof ear->line, "%s", line);
}

static void the_log_passes_on_exactly_the_levels_asked_for(void **state)
{
    (void)state;
    for (tsr_log_level limit = TSR_LOG_SILENT; limit <= TSR_LOG_DEBUG; limit++) {
        heard ear = {0};
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        options.environment = no_environment;
        options.log = hear;
        options.log_user = &ear;
        options.log_level = limit;
        tsr_context *context = NULL;
        assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
        for (tsr_log_level level = TSR_LOG_ERROR; level <= TSR_LOG_DEBUG; level++) {
            const int before = ear.count;
            tsr_log(context, level, "%d of %s", (int)level, "four");
            assert_int_equal(ear.count, before + (level <= limit));
        }
        if (limit > TSR_LOG_SILENT) {
            assert_int_equal(ear.level, limit);
            assert_string_equal(ear.line + 1, " of four");
        }
        tsr_context_destroy(context);
    }
}

static void without_a_sink_the_log_goes_to_standard_error(void **state)
{
    (void)state;
    tsr_context *context = with("TSR_LOG=info");
    char line[64] = "";
    FILE *file = tmpfile();
    const int kept = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    tsr_log(context, TSR_LOG_INFO, "%d plans", 2);
    tsr_log(context, TSR_LOG_DEBUG, "not this");
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(file);
    assert_int_equal(fread(line, 1, sizeof line - 1, file), strlen("tessera info: 2 plans\n"));
    assert_string_equal(line, "tessera info: 2 plans\n");
    fclose(file);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_left_out_have_defaults),
        cmocka_unit_test(each_variable_overrides_its_setting),
        cmocka_unit_test(an_empty_variable_counts_as_not_set),
        cmocka_unit_test(the_environment_wins_over_the_options),
        cmocka_unit_test(a_bad_variable_is_refused_by_name_and_value),
        cmocka_unit_test(the_table_of_variables_has_distinct_names_and_a_sentence_each),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_shorter_option_struct_leaves_the_rest_at_its_defaults),
        cmocka_unit_test(kernels_are_a_set_a_way_or_both),
        cmocka_unit_test(kernels_run_up_to_the_best_of_this_processor),
        cmocka_unit_test(a_context_lives_until_its_last_reference),
        cmocka_unit_test(a_failed_allocation_leaves_the_output_alone),
        cmocka_unit_test(the_log_passes_on_exactly_the_levels_asked_for),
        cmocka_unit_test(without_a_sink_the_log_goes_to_standard_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
