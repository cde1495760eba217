/** Ranks that are processes, started by mpirun: this process is one of them. */
#ifndef LLAMA_PROCESSES_H
#define LLAMA_PROCESSES_H

#include <tessera/run.h>

#include <stdbool.h>

typedef struct llama_processes {
    tsr_context *context;
    tsr_job *job;
    int said; /* a descriptor of standard error, to which other ranks than 0 print nothing else */
} llama_processes;

/** Opens the library of the MPI whose launcher started this process, and initializes it. From then
 * on only rank 0 prints. Undone by llama_processes_leave(). */
tsr_status llama_processes_join(llama_processes *out);
void llama_processes_leave(llama_processes *processes);

int llama_processes_count(const llama_processes *processes);

/** True on rank 0. */
bool llama_processes_speak(const llama_processes *processes);

/** llama_fail() for work of all processes that ended with `status`: rank 0 prints the sentence.
 * After the loss of a peer each rank does, with its number, since rank 0 may be the lost one. */
int llama_processes_fail(const llama_processes *processes, tsr_status status);

/** Runs `main` on this process's rank, as tsr_threads_run() does on threads. */
tsr_status llama_processes_run(const llama_processes *processes, tsr_rank_main *main, void *arg);

/** Collective, after work that each rank does by itself: returns the status of the lowest rank that
 * failed, with its sentence; TSR_OK if no rank failed. */
tsr_status llama_processes_agree(const llama_processes *processes, tsr_status status);

#endif
