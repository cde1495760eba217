#include "comm_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A program that takes longer counts as hung: the slowest takes a few seconds, and twenty times
 * that with sanitizers. */
#define WATCHDOG_SECONDS 240

const comm_engine *suite_engine;

static void start_watchdog(void)
{
    alarm(getenv("TSR_TEST_THIN") ? 8 * WATCHDOG_SECONDS : WATCHDOG_SECONDS);
}

void suite_start(int count, char **arguments)
{
    const char *engine = count > 1 ? arguments[1] : suite_engines[0].name;
    for (const comm_engine *known = suite_engines; known->name; known++)
        if (strcmp(known->name, engine) == 0)
            suite_engine = known;
    if (!suite_engine) {
        fprintf(stderr, "no engine is called %s\n", engine);
        exit(2);
    }
    if (suite_engine->rank)
        suite_engine->rank();
    start_watchdog();
}

int suite_run_part(const suite_part *part)
{
    start_watchdog();
    return part->run();
}

void suite_end(suite_ending *ending, tsr_status status)
{
    ending->status = (int)status;
    ending->sentence[0] = '\0';
    if (status != TSR_OK)
        snprintf(ending->sentence, sizeof ending->sentence, "%s", tsr_status_message());
}

tsr_status suite_conclude(const suite_ending *endings, int ranks)
{
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < ranks; r++)
            if (endings[r].status != TSR_OK && (pass == 1 || endings[r].status != TSR_ERROR_PEER))
                return tsr_status_set((tsr_status)endings[r].status, "rank %d: %s", r, endings[r].sentence);
    return TSR_OK;
}

void suite_skip(const char *reason)
{
    print_message("[  SKIPPED ] %s: %s\n", suite_engine->name, reason);
    skip();
}

void suite_run_with(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    const tsr_status status = suite_engine->run(nranks, body, arg, options);
    if (status != TSR_OK)
        fail_msg("%s with %d ranks: %s: %s", suite_engine->name, nranks, tsr_status_name(status), tsr_status_message());
}

void suite_run(int nranks, tsr_rank_main *body, void *arg)
{
    suite_run_with(nranks, body, arg, NULL);
}

tsr_status suite_check_error(tsr_status status, tsr_status wanted, const char *part, const char *file, int line)
{
    const char *message = status == TSR_OK ? "" : tsr_status_message();
    if (status == wanted && strstr(message, part))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s:%d: gave %s (%s), not %s naming \"%s\"", file, line,
                          tsr_status_name(status), message, tsr_status_name(wanted), part);
}

tsr_status suite_check_usable(tsr_comm *comm)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int32_t mine = rank + 1, sum = 0;
    TSR_TRY(tsr_comm_all_reduce(comm, &mine, &sum, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    CHECK(sum == size * (size + 1) / 2);
    return tsr_comm_barrier(comm);
}

static tsr_status exchange_at_once(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                   const tsr_message *receives, size_t receive_count)
{
    return tsr_comm_exchange(comm, sends, send_count, receives, receive_count, tsr_device_host(), NULL);
}

static tsr_status exchange_in_halves(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                     const tsr_message *receives, size_t receive_count)
{
    TSR_TRY(tsr_comm_exchange_start(comm, sends, send_count, receives, receive_count, tsr_device_host(), NULL));
    return tsr_comm_exchange_finish(comm);
}

suite_exchange *const suite_exchanges[EXCHANGES] = {exchange_at_once, exchange_in_halves};

void suite_sleep(int milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

void suite_await(atomic_int *count, int wanted, int milliseconds)
{
    if (suite_engine->apart)
        suite_sleep(milliseconds);
    while (!suite_engine->apart && atomic_load(count) < wanted)
        suite_sleep(1);
}
