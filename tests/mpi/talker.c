/*
 * Ranks that communicate until one is lost: talker talk | die RANK | look. Rank 0 writes to
 * standard output how ranks lie on nodes, that it communicates, and the status of the call in which
 * it lost a rank.
 */
#include <tessera/mpi.h>
#include <tessera/sys/status.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, ROUNDS_BEFORE_DEATH = 20, TIMEOUT_MS = 3000 };

static char out[BYTES], in[BYTES];

typedef struct part {
    int victim; /* the rank that dies; -1: none */
    int look;   /* only prints how ranks lie on nodes */
} part;

static void say(const tsr_comm *comm, const char *words)
{
    if (tsr_comm_rank(comm) > 0)
        return;
    puts(words);
    fflush(stdout);
}

static tsr_status talk(tsr_comm *comm, const part *p)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    const tsr_message send = {(rank + 1) % size, out, BYTES}, receive = {(rank + size - 1) % size, in, BYTES};
    for (int round = 0;; round++) {
        TSR_TRY(tsr_comm_exchange(comm, &send, 1, &receive, 1, tsr_device_host(), NULL));
        if (round == ROUNDS_BEFORE_DEATH && rank == p->victim)
            raise(SIGKILL);
        if (round == ROUNDS_BEFORE_DEATH)
            say(comm, "talking");
    }
}

static tsr_status take_part(tsr_comm *comm, void *arg)
{
    const part *p = arg;
    char words[1100];
    int length = snprintf(words, sizeof words, "%d ranks on nodes", tsr_comm_size(comm));
    for (int r = 0; r < tsr_comm_size(comm) && (size_t)length < sizeof words; r++)
        length += snprintf(words + length, sizeof words - (size_t)length, " %d", tsr_comm_node_of(comm, r));
    say(comm, words);
    if (p->look)
        return TSR_OK;
    const tsr_status status = talk(comm, p);
    snprintf(words, sizeof words, "lost: %s: %s", tsr_status_name(status), tsr_status_message());
    say(comm, words);
    return status;
}

int main(int count, char **arguments)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    tsr_mpi_job *job;
    part p = {.victim = count > 2 ? atoi(arguments[2]) : -1, .look = count > 1 && strcmp(arguments[1], "look") == 0};
    options.timeout_ms = TIMEOUT_MS;
    if (tsr_mpi_job_create(&job) != TSR_OK)
        return 2;
    const tsr_status status = tsr_mpi_job_run(job, take_part, &p, &options);
    tsr_mpi_job_destroy(job);
    return status == TSR_OK ? 0 : 1;
}
