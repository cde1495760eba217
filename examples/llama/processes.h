/** Ranks that are processes, started by mpirun: this one is a rank of theirs. */
#ifndef LLAMA_PROCESSES_H
#define LLAMA_PROCESSES_H

#include "place/mpi_library.h"

typedef struct llama_processes {
    mpi_library library;
    tsr_mpi_job *job;
} llama_processes;

/** Opens the library of the MPI whose launcher started this process, and initializes it. From then on only rank 0 is heard. Undone by
 * llama_processes_leave(). */
tsr_status llama_processes_join(llama_processes *out);
void llama_processes_leave(llama_processes *processes);

int llama_processes_count(const llama_processes *processes);

/** True on rank 0. */
bool llama_processes_speak(const llama_processes *processes);

/** tsr_threads_run() of the processes; `ranks` is how many there are. */
tsr_status llama_processes_run(const llama_processes *processes, tsr_rank_main *main, void *arg);

/** Collective, for what each rank does by itself: returns the status of the lowest rank that failed, with its sentence; TSR_OK if none did.
 */
tsr_status llama_processes_agree(const llama_processes *processes, tsr_status status);

#endif
