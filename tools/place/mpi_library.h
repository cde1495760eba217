/** A library of libtessera-mpi, opened for whoever asks for it: the tool is not linked with any, for which one depends on who launched it.
 */
#ifndef TESSERA_TOOLS_PLACE_MPI_LIBRARY_H
#define TESSERA_TOOLS_PLACE_MPI_LIBRARY_H

#include <stdbool.h>
#include <tessera/mpi.h>

/** Room for why none can be opened. */
#define MPI_REASON_BYTES 1100

/** What the tool calls of it, under the functions' own names. */
typedef struct mpi_library {
    tsr_status (*job_create)(tsr_mpi_job **out);
    void (*job_destroy)(tsr_mpi_job *job);
    int (*job_rank)(const tsr_mpi_job *job);
    int (*job_size)(const tsr_mpi_job *job);
    tsr_status (*job_run)(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options);
    size_t (*version_print)(char *text, size_t capacity);
} mpi_library;

/** That of the MPI which TSR_MPI names (openmpi, mpich), else of the one whose launcher started this process, else the first that there is.
 * False with the reason where there is none, and with errno ENOMEM if that is a lack of memory, else 0. What was opened
 * stays open. */
bool mpi_library_open(mpi_library *out, char reason[MPI_REASON_BYTES]);

/** tsr_mpi_job_create() of that library; a refusal also says that TSR_MPI chose it. */
tsr_status mpi_library_create_job(const mpi_library *library, tsr_mpi_job **out);

/** How many processes a launcher started with this one, and which of them this is, by its environment; both 0 where none did. */
int mpi_launched(void);
int mpi_launched_rank(void);

enum { MPI_ADVICE_BYTES = 256 };

/** Where `wanted` ranks were asked for and MPI has `joined`: a sentence of what was launched, and what to do. */
void mpi_launch_advice(int wanted, int joined, char advice[MPI_ADVICE_BYTES]);

#endif
