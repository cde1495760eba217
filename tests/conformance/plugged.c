#include "plugged.h"

#include "body.h"
#include "comm_suite.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60000, MOST_DIRECTORY = 256, OPEN_DIRECTORIES = 8 };

/* A run of a program on all ranks, with what they need to meet. */
typedef struct run {
    tsr_rank_main *body;
    void *arg;
    int64_t timeout_ms;
    int ranks;
    char directory[MOST_DIRECTORY];
} run;

static tsr_comm_conformance *create;

void plugged_use(tsr_comm_conformance *given)
{
    create = given;
}

static tsr_status begin(run *r)
{
    const char *const place = getenv("TMPDIR");
    snprintf(r->directory, sizeof r->directory, "%s/tessera-conformance-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(r->directory))
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", r->directory, strerror(errno));
    return TSR_OK;
}

static int remove_one(const char *path, const struct stat *known, int kind, struct FTW *walk)
{
    (void)known;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void end(const run *r)
{
    nftw(r->directory, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

static tsr_status run_rank(const run *r, int rank)
{
    tsr_comm *comm = NULL;
    TSR_TRY(create(r->directory, rank, r->ranks, r->timeout_ms, &comm));
    if (tsr_comm_rank(comm) != rank || tsr_comm_size(comm) != r->ranks)
        return tsr_status_set(TSR_ERROR_INTERNAL, "tessera_conformance made rank %d of %d, not %d of %d",
                              tsr_comm_rank(comm), tsr_comm_size(comm), rank, r->ranks);
    return run_body(r->body, comm, r->arg);
}

static tsr_status run_thread(tsr_comm *comm, void *arg)
{
    return run_rank(arg, tsr_comm_rank(comm));
}

/* Runs a rank in its own process, keeps its status and sentence, and exits. */
static void run_forked(const run *r, int rank, suite_ending *ending)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    suite_end(ending, run_rank(r, rank));
    _exit(0);
}

static tsr_status fork_ranks(const run *r, pid_t *children, suite_ending *endings)
{
    fflush(NULL);
    for (int rank = 1; rank < r->ranks; rank++) {
        children[rank] = fork();
        if (children[rank] == 0)
            run_forked(r, rank, &endings[rank]);
        if (children[rank] < 0)
            return tsr_status_set(TSR_ERROR_IO, "fork: %s", strerror(errno));
    }
    return TSR_OK;
}

/* A process that was killed has left no sentence, so one is made for it. */
static void await_ranks(const run *r, const pid_t *children, suite_ending *endings)
{
    for (int rank = 1; rank < r->ranks; rank++) {
        int result = 0;
        if (children[rank] <= 0 || waitpid(children[rank], &result, 0) < 0 || result == 0)
            continue;
        endings[rank].status = (int)TSR_ERROR_INTERNAL;
        snprintf(endings[rank].sentence, sizeof endings[rank].sentence, "its process ended with %s %d",
                 WIFSIGNALED(result) ? "signal" : "status",
                 WIFSIGNALED(result) ? WTERMSIG(result) : WEXITSTATUS(result));
    }
}

static tsr_status run_apart(const run *r, pid_t *children, suite_ending *endings)
{
    const tsr_status forked = fork_ranks(r, children, endings);
    if (forked == TSR_OK)
        suite_end(&endings[0], run_rank(r, 0));
    for (int rank = 1; rank < r->ranks && forked != TSR_OK; rank++)
        if (children[rank] > 0)
            kill(children[rank], SIGKILL);
    await_ranks(r, children, endings);
    return forked == TSR_OK ? suite_conclude(endings, r->ranks) : forked;
}

static int64_t timeout_of(const tsr_threads_options *options)
{
    return options && options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS;
}

tsr_status plugged_run_threads(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    run r = {.body = body, .arg = arg, .timeout_ms = timeout_of(options), .ranks = nranks};
    TSR_TRY(begin(&r));
    const tsr_status status = tsr_threads_run(nranks, run_thread, &r, NULL);
    end(&r);
    return status;
}

tsr_status plugged_run_processes(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    run r = {.body = body, .arg = arg, .timeout_ms = timeout_of(options), .ranks = nranks};
    const size_t bytes = (size_t)nranks * sizeof(suite_ending);
    suite_ending *endings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *children = calloc((size_t)nranks, sizeof *children);
    tsr_status status = TSR_ERROR_MEMORY;
    if (endings != MAP_FAILED && children)
        status = begin(&r);
    if (status == TSR_OK) {
        status = run_apart(&r, children, endings);
        end(&r);
    }
    free(children);
    if (endings != MAP_FAILED)
        munmap(endings, bytes);
    return status;
}
