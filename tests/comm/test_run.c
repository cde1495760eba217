/* Tests of tsr_run() without MPI: how many rank threads there are, and what is recognized as a
 * launch. tests/mpi runs it under launchers. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/run.h>
#include <tessera/sys/library.h>
#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_VARIABLES = 6 };

/* Every variable that launchers set, and those of the library that decide about ranks. */
static const char *const variables[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",     "PMI_RANK",  "PMIX_RANK",
    "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",         "SLURM_NTASKS", "TSR_RANKS", "TSR_MPI"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

/* Sets variables by pairs of a name and a value, ended by NULL. */
static void set_environment(const char *const *pairs)
{
    clear_environment(NULL);
    for (; pairs[0]; pairs += 2)
        setenv(pairs[0], pairs[1], 1);
}

/* What the ranks of a run have seen. */
typedef struct seen {
    atomic_int mains, ranks;
} seen;

static tsr_status look(tsr_comm *comm, void *arg)
{
    seen *const all = arg;
    if (strcmp(tsr_comm_engine(comm), "threads") != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "the engine is %s", tsr_comm_engine(comm));
    atomic_fetch_add(&all->mains, 1);
    atomic_store(&all->ranks, tsr_comm_size(comm));
    return tsr_comm_barrier(comm);
}

/* Runs with the options, which may be NULL, and expects as many rank threads. */
static void expect_threads(const tsr_run_options *options, int ranks)
{
    seen all = {0};
    assert_int_equal(tsr_run_with(0, NULL, look, &all, options), TSR_OK);
    assert_int_equal(all.mains, ranks);
    assert_int_equal(all.ranks, ranks);
}

static void expect_refusal(const tsr_run_options *options, tsr_status status, const char *words)
{
    seen all = {0};
    assert_int_equal(tsr_run_with(0, NULL, look, &all, options), status);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" is not in \"%s\"", words, tsr_status_message());
    assert_int_equal(all.mains, 0);
}

static void a_program_by_itself_has_a_rank_for_each_processor(void **state)
{
    char *arguments[] = {"program", NULL};
    cpu_set_t set;
    seen all = {0};
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(tsr_run(1, arguments, look, &all), TSR_OK);
    assert_int_equal(all.mains, CPU_COUNT(&set));
    assert_int_equal(all.ranks, CPU_COUNT(&set));
}

static void options_and_then_the_environment_say_how_many(void **state)
{
    tsr_context_options deaf = TSR_CONTEXT_OPTIONS_INIT;
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    (void)state;
    options.ranks = 5;
    expect_threads(&options, 5);
    setenv("TSR_RANKS", "3", 1);
    expect_threads(NULL, 3);
    expect_threads(&options, 3);
    deaf.environment = no_environment;
    assert_int_equal(tsr_context_create(&deaf, &options.context), TSR_OK);
    expect_threads(&options, 5);
    tsr_context_destroy(options.context);
}

static void unfit_numbers_and_names_are_refused(void **state)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    (void)state;
    setenv("TSR_RANKS", "0", 1);
    expect_refusal(NULL, TSR_ERROR_ARGUMENT, "TSR_RANKS is \"0\"");
    setenv("TSR_RANKS", "four", 1);
    expect_refusal(NULL, TSR_ERROR_ARGUMENT, "TSR_RANKS is \"four\"");
    setenv("TSR_RANKS", "", 1);
    setenv("TSR_MPI", "lam", 1);
    expect_refusal(NULL, TSR_ERROR_ARGUMENT, "TSR_MPI is \"lam\", not openmpi or mpich");
    unsetenv("TSR_MPI");
    options.ranks = -1;
    expect_refusal(&options, TSR_ERROR_ARGUMENT, "options.ranks is -1");
    options = (tsr_run_options)TSR_RUN_OPTIONS_INIT;
    options.engine = "processes";
    expect_refusal(&options, TSR_ERROR_ARGUMENT, "options.engine is \"processes\", not threads or mpi");
    options = (tsr_run_options)TSR_RUN_OPTIONS_INIT;
    options.mpi = "lam";
    expect_refusal(&options, TSR_ERROR_ARGUMENT, "options.mpi is \"lam\", not openmpi or mpich");
    options = (tsr_run_options)TSR_RUN_OPTIONS_INIT;
    options.timeout_ms = -2;
    expect_refusal(&options, TSR_ERROR_ARGUMENT, "options.timeout_ms is -2");
    expect_refusal(&(tsr_run_options){0}, TSR_ERROR_ARGUMENT, "tsr_run: ");
    assert_int_equal(tsr_run(0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_job_create(0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_job_run(NULL, look, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_job_mpi_version(NULL, NULL, 1), TSR_ERROR_ARGUMENT);
}

static tsr_status fail_on_rank_1(tsr_comm *comm, void *arg)
{
    (void)arg;
    if (tsr_comm_rank(comm) == 1)
        return tsr_status_set(TSR_ERROR_IO, "the file is gone");
    return tsr_comm_barrier(comm);
}

static void a_run_returns_the_failure_of_a_rank(void **state)
{
    (void)state;
    setenv("TSR_RANKS", "3", 1);
    assert_int_equal(tsr_run(0, NULL, fail_on_rank_1, NULL), TSR_ERROR_IO);
    assert_string_equal(tsr_status_message(), "rank 1: the file is gone");
}

/* Rank 1 comes to its end only when rank 0 has given up. */
static tsr_status give_up(tsr_comm *comm, void *arg)
{
    atomic_int *const given_up = arg;
    if (tsr_comm_rank(comm) == 0) {
        const tsr_status status = tsr_comm_barrier(comm);
        atomic_store(given_up, 1);
        return status;
    }
    while (!atomic_load(given_up))
        sched_yield();
    return TSR_OK;
}

static void calls_wait_as_long_as_the_options_say(void **state)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    atomic_int given_up = 0;
    (void)state;
    options.ranks = 2;
    options.timeout_ms = 20;
    assert_int_equal(tsr_run_with(0, NULL, give_up, &given_up, &options), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "within 20 ms"));
}

static void without_memory_a_run_says_so_and_leaves_nothing(void **state)
{
    counted_memory memory = {0};
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    tsr_status status = TSR_ERROR_MEMORY;
    (void)state;
    options.ranks = 2;
    options.context = counted_context(&memory);
    size_t failures = 0;
    for (size_t n = 1; status == TSR_ERROR_MEMORY; n++, failures++) {
        seen all = {0};
        memory.fail_at = memory.allocations + n;
        status = tsr_run_with(0, NULL, look, &all, &options);
    }
    assert_int_equal(status, TSR_OK);
    assert_true(failures > 2);
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

static void a_job_runs_several_times(void **state)
{
    tsr_job *job;
    seen all = {0};
    (void)state;
    setenv("TSR_RANKS", "3", 1);
    assert_int_equal(tsr_job_create(0, NULL, NULL, &job), TSR_OK);
    assert_string_equal(tsr_job_engine(job), "threads");
    assert_int_equal(tsr_job_rank(job), 0);
    assert_int_equal(tsr_job_size(job), 3);
    assert_int_equal(tsr_job_run(job, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_job_run(job, look, &all), TSR_OK);
    assert_int_equal(tsr_job_run(job, fail_on_rank_1, NULL), TSR_ERROR_IO);
    assert_int_equal(tsr_job_run(job, look, &all), TSR_OK);
    assert_int_equal(all.mains, 6);
    tsr_job_destroy(job);
    tsr_job_destroy(NULL);
}

/* An environment, and the launch that it is of. */
static const struct {
    const char *pairs[2 * MOST_VARIABLES + 1];
    const char *launcher;
    int rank, ranks;
} launches[] = {
    {{NULL}, NULL, 0, 0},
    {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "3"}, "Open MPI", 3, 4},
    {{"OMPI_COMM_WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "0"}, "Open MPI", 0, 1},
    {{"OMPI_COMM_WORLD_SIZE", "4"}, NULL, 0, 0},
    {{"OMPI_COMM_WORLD_SIZE", "four", "OMPI_COMM_WORLD_RANK", "0"}, NULL, 0, 0},
    {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "4"}, NULL, 0, 0},
    {{"PMI_SIZE", "2", "PMI_RANK", "1"}, "MPICH", 1, 2},
    /* srun --mpi=pmi2 */
    {{"PMI_SIZE", "2", "PMI_RANK", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_PROCID", "1"}, "MPICH", 1, 2},
    /* srun --mpi=pmix */
    {{"PMIX_RANK", "2", "SLURM_STEP_NUM_TASKS", "3", "SLURM_PROCID", "2"}, "Slurm", 2, 3},
    /* an mpirun whose daemons are one step of Slurm */
    {{"OMPI_COMM_WORLD_SIZE", "8", "OMPI_COMM_WORLD_RANK", "5", "SLURM_STEP_NUM_TASKS", "2", "SLURM_PROCID", "1"},
     "Open MPI",
     5,
     8},
    /* plain srun */
    {{"SLURM_STEP_NUM_TASKS", "3", "SLURM_PROCID", "2", "SLURM_NTASKS", "3"}, "Slurm", 2, 3},
    /* an interactive shell of Slurm, then a batch script */
    {{"SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "PMIX_RANK", "0"}, NULL, 0, 0},
    {{"SLURM_NTASKS", "4", "SLURM_PROCID", "0"}, NULL, 0, 0},
};

static void launches_are_told_by_their_variables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        set_environment(launches[i].pairs);
        const tsr_launch launch = tsr_launch_get();
        if (launches[i].launcher)
            assert_string_equal(launch.launcher, launches[i].launcher);
        else
            assert_null(launch.launcher);
        assert_int_equal(launch.rank, launches[i].rank);
        assert_int_equal(launch.ranks, launches[i].ranks);
    }
}

static void a_batch_script_of_slurm_is_no_launch(void **state)
{
    (void)state;
    set_environment((const char *const[]){"SLURM_NTASKS", "4", "SLURM_PROCID", "0", "TSR_RANKS", "2", NULL});
    expect_threads(NULL, 2);
}

static void tasks_of_plain_srun_are_not_run_as_many_jobs(void **state)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    (void)state;
    set_environment((const char *const[]){"SLURM_STEP_NUM_TASKS", "3", "SLURM_PROCID", "2", NULL});
    expect_refusal(NULL, TSR_ERROR_STATE, "tsr_run: srun started 3 tasks, but no PMI");
    expect_refusal(NULL, TSR_ERROR_STATE, "srun --mpi=pmix");
    options.engine = "mpi";
    expect_refusal(&options, TSR_ERROR_STATE, "no PMI");
    options.engine = "threads";
    options.ranks = 2;
    expect_threads(&options, 2);
}

static void libraries_are_found_by_the_loader_or_refused_in_its_words(void **state)
{
    void *library = NULL;
    (void)state;
    assert_int_equal(tsr_library_load("libm.so.6", RTLD_LAZY | RTLD_LOCAL, &library), TSR_OK);
    assert_non_null(library);
    dlclose(library);
    library = NULL;
    assert_int_equal(tsr_library_load("libtessera-nothing.so", RTLD_LAZY, &library), TSR_ERROR_UNAVAILABLE);
    assert_non_null(strstr(tsr_status_message(), "libtessera-nothing.so"));
    assert_null(library);
    assert_int_equal(tsr_library_load(NULL, RTLD_LAZY, &library), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_library_load("libm.so.6", RTLD_LAZY, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_library_load("./libm.so.6", RTLD_LAZY, &library), TSR_ERROR_UNAVAILABLE);
}

static void objects_without_devices_are_refused(void **state)
{
    tsr_device_driver *driver = NULL;
    (void)state;
    assert_int_equal(tsr_device_driver_load(NULL, "libm.so.6", &driver), TSR_ERROR_UNAVAILABLE);
    assert_non_null(strstr(tsr_status_message(), "libm.so.6: it has no devices"));
    assert_int_equal(tsr_device_driver_load(NULL, "libtessera-nothing.so", &driver), TSR_ERROR_UNAVAILABLE);
    assert_int_equal(tsr_device_driver_load(NULL, NULL, &driver), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_device_driver_load(NULL, "libm.so.6", NULL), TSR_ERROR_ARGUMENT);
    assert_null(driver);
}

#define CASE(name) cmocka_unit_test_setup(name, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_program_by_itself_has_a_rank_for_each_processor),
        CASE(options_and_then_the_environment_say_how_many),
        CASE(unfit_numbers_and_names_are_refused),
        CASE(a_run_returns_the_failure_of_a_rank),
        CASE(calls_wait_as_long_as_the_options_say),
        CASE(without_memory_a_run_says_so_and_leaves_nothing),
        CASE(a_job_runs_several_times),
        CASE(launches_are_told_by_their_variables),
        CASE(a_batch_script_of_slurm_is_no_launch),
        CASE(tasks_of_plain_srun_are_not_run_as_many_jobs),
        CASE(libraries_are_found_by_the_loader_or_refused_in_its_words),
        CASE(objects_without_devices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
