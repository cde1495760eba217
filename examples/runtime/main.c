/*
 * runtime plan FILE               makes plans ahead of time
 * runtime run FILE [OPTION..]     executes them
 *
 * What a runtime does that has plans, threads, memory, streams and a communicator of its own.
 */
#include "memory.h"
#include "session.h"

#include <tessera/sys/library.h>
#include <tessera/sys/status.h>

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: runtime plan FILE\n"
                            "       runtime run FILE [OPTION..]\n"
                            "\n"
                            "  --device OBJECT   tensors lie on the devices of a shared object\n"
                            "  --threads N       threads of the pool (default 6)\n"
                            "  --flights N       executions under way at once (default 2)\n"
                            "  --rounds N        executions of each flight, 2 or more (default 8)\n"
                            "  --fail RANK       the rank brings a wrong tensor in the first round\n"
                            "  --abort RANK      the rank aborts in the first round\n";

typedef struct options {
    const char *device;
    int threads, flights, rounds, rank;
    fault fault;
} options;

static int fail(void)
{
    fflush(stdout);
    fprintf(stderr, "runtime: %s\n", tsr_status_message());
    return 1;
}

static int make_plans(const char *path)
{
    memory m = {0};
    tsr_context *context;
    if (memory_context(&m, &context) != TSR_OK)
        return fail();
    const tsr_status status = plans_write(context, program_moves, path);
    tsr_context_destroy(context);
    return status == TSR_OK ? 0 : fail();
}

/* Starts a round of every flight before it waits for any. */
static tsr_status fly(session *s, const options *o, int round)
{
    tsr_status status = TSR_OK;
    for (int f = 0; f < o->flights; f++)
        session_start(s, f, round == 0 && f == 0 ? o->fault : FAULT_NONE, o->rank);
    for (int f = 0; f < o->flights; f++) {
        const tsr_status ended = session_wait(s, f);
        status = status == TSR_OK ? ended : status;
    }
    return status;
}

static void tell_fault(const session *s, const plans *file)
{
    for (int r = 0; r < file->ranks; r++) {
        const char *sentence;
        const tsr_status status = session_status(s, 0, r, &sentence);
        printf("rank %d: %s: %s\n", r, tsr_status_name(status), sentence);
    }
}

/* The first round has the fault, and takes what is made once, such as a device's events. What the
 * rounds after it take and how often their ranks meet is told. */
static tsr_status run_rounds(session *s, const plans *file, const options *o, const memory *m)
{
    const tsr_status first = fly(s, o, 0);
    if (first != TSR_OK && o->fault != FAULT_NONE)
        tell_fault(s, file);
    if (first != TSR_OK && o->fault != FAULT_TENSOR)
        return first; /* an aborted communicator stays broken */
    const size_t calls = atomic_load(&m->calls), meetings = session_meetings(s);
    for (int round = 1; round < o->rounds; round++)
        TSR_TRY(fly(s, o, round));
    const size_t executions = (size_t)(o->rounds - 1) * (size_t)o->flights;
    printf("%zu executions of %d moves on %d ranks, %d at once\n", executions, file->count, file->ranks, o->flights);
    printf("a rank met the others %zu times in each\n",
           (session_meetings(s) - meetings) / executions / (size_t)file->ranks);
    printf("Tessera called the allocator %zu times\n", atomic_load(&m->calls) - calls);
    for (int f = 0; f < o->flights; f++)
        TSR_TRY(session_check(s, f));
    printf("every element is right\n");
    return TSR_OK;
}

/* The device gets a context of its own, so that its commands are not counted as Tessera's. */
static tsr_status open_device(const char *object, memory *m, tsr_device_driver **out)
{
    tsr_context *context;
    TSR_TRY(memory_context(m, &context));
    const tsr_status status = tsr_device_driver_load(context, object, out);
    tsr_context_destroy(context);
    return status;
}

static tsr_status run_with(tsr_context *context, const options *o, const char *path, memory m[2])
{
    host h = {.context = context, .flights = o->flights, .timeout_ms = 60000};
    tsr_device_driver *driver = NULL;
    plans file = {.bytes = NULL};
    session *s = NULL;
    tsr_status status = plans_open(context, path, &file);
    if (status == TSR_OK && o->fault != FAULT_NONE && o->rank >= file.ranks)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "rank %d cannot fail: the plans have ranks 0 to %d", o->rank,
                                file.ranks - 1);
    if (status == TSR_OK)
        status = pool_create(context, o->threads, &h.pool);
    if (status == TSR_OK && o->device)
        status = open_device(o->device, &m[1], &driver);
    h.device = driver;
    if (status == TSR_OK)
        status = session_open(&h, &file, &s);
    if (status == TSR_OK)
        status = run_rounds(s, &file, o, &m[0]);
    if (s)
        session_close(s);
    pool_destroy(h.pool);
    tsr_device_driver_destroy(driver);
    plans_close(context, &file);
    return status;
}

static int run_plans(const char *path, const options *o)
{
    memory m[2] = {{0}, {0}}; /* the library's, and the device's */
    tsr_context *context;
    if (memory_context(&m[0], &context) != TSR_OK)
        return fail();
    const int result = run_with(context, o, path, m) == TSR_OK ? 0 : fail();
    tsr_context_destroy(context);
    const size_t left = atomic_load(&m[0].blocks) + atomic_load(&m[1].blocks);
    if (left > 0)
        printf("%zu blocks were not given back\n", left);
    return result;
}

static int read_number(const char *text, int least)
{
    char *end;
    const long number = strtol(text, &end, 10);
    if (*end || end == text || number < least || number > 1000) {
        fprintf(stderr, "runtime: \"%s\" is not a number from %d to 1000\n%s", text, least, usage);
        exit(2);
    }
    return (int)number;
}

static void read_option(int found, options *o)
{
    if (found == 'd')
        o->device = optarg;
    else if (found == 't')
        o->threads = read_number(optarg, 1);
    else if (found == 'l')
        o->flights = read_number(optarg, 1);
    else if (found == 'r')
        o->rounds = read_number(optarg, 2); /* the first is not counted */
    else {
        o->rank = read_number(optarg, 0);
        o->fault = found == 'f' ? FAULT_TENSOR : FAULT_ABORT;
    }
}

int main(int count, char **arguments)
{
    static const struct option known[] = {{"device", required_argument, NULL, 'd'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"flights", required_argument, NULL, 'l'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"fail", required_argument, NULL, 'f'},
                                          {"abort", required_argument, NULL, 'a'},
                                          {NULL, 0, NULL, 0}};
    options o = {.threads = 6, .flights = 2, .rounds = 8};
    for (int found; (found = getopt_long(count, arguments, "", known, NULL)) >= 0;) {
        if (found == '?') {
            fputs(usage, stderr);
            return 2;
        }
        read_option(found, &o);
    }
    if (optind + 2 == count && strcmp(arguments[optind], "plan") == 0)
        return make_plans(arguments[optind + 1]);
    if (optind + 2 == count && strcmp(arguments[optind], "run") == 0)
        return run_plans(arguments[optind + 1], &o);
    fputs(usage, stderr);
    return 2;
}
