#include "processes.h"

#include "place/held_log.h"
#include "program.h"

#include <tessera/sys/status.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Room for any sentence of the library, NUL included. */
#define SENTENCE_BYTES 1024

tsr_status llama_processes_join(llama_processes *out)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    TSR_TRY(held_log_context(&out->context));
    options.context = out->context;
    options.engine = "mpi";
    tsr_status status = tsr_job_create(0, NULL, &options, &out->job);
    if (status != TSR_OK) {
        tsr_context_destroy(out->context);
        return tsr_status_set(status, "--engine mpi: %s", tsr_status_message());
    }
    out->said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (llama_processes_speak(out) || (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr)))
        return TSR_OK;
    llama_processes_leave(out);
    return tsr_status_set(TSR_ERROR_IO, "--engine mpi: /dev/null cannot be opened");
}

void llama_processes_leave(llama_processes *processes)
{
    if (processes->said >= 0)
        close(processes->said);
    tsr_job_destroy(processes->job);
    tsr_context_destroy(processes->context);
}

int llama_processes_count(const llama_processes *processes)
{
    return tsr_job_size(processes->job);
}

bool llama_processes_speak(const llama_processes *processes)
{
    return tsr_job_rank(processes->job) == 0;
}

int llama_processes_fail(const llama_processes *processes, tsr_status status)
{
    if (llama_processes_speak(processes) || status != TSR_ERROR_PEER || processes->said < 0)
        return llama_fail(LLAMA_REFUSED);
    char sentence[SENTENCE_BYTES];
    snprintf(sentence, sizeof sentence, "%s", tsr_status_message());
    (void)tsr_status_set(status, "rank %d: %s", tsr_job_rank(processes->job), sentence);
    (void)dup2(processes->said, STDERR_FILENO);
    return llama_fail(LLAMA_REFUSED);
}

tsr_status llama_processes_run(const llama_processes *processes, tsr_rank_main *main, void *arg)
{
    return tsr_job_run(processes->job, main, arg);
}

typedef struct ending {
    tsr_status status;
    char sentence[SENTENCE_BYTES];
} ending;

static tsr_status say_how_it_ended(tsr_comm *comm, void *arg)
{
    const ending *const own = arg;
    (void)comm;
    return own->status == TSR_OK ? TSR_OK : tsr_status_set(own->status, "%s", own->sentence);
}

tsr_status llama_processes_agree(const llama_processes *processes, tsr_status status)
{
    ending own = {.status = status};
    if (status != TSR_OK)
        snprintf(own.sentence, sizeof own.sentence, "%s", tsr_status_message());
    return llama_processes_run(processes, say_how_it_ended, &own);
}
