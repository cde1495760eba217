/** A build of libtessera-mpi (for Open MPI or MPICH), opened at run time: the launcher decides
 * which one fits, so the tool is linked with neither. */
#ifndef TESSERA_TOOLS_PLACE_MPI_LIBRARY_H
#define TESSERA_TOOLS_PLACE_MPI_LIBRARY_H

#include <tessera/mpi.h>

#include <stdbool.h>

/** Bytes of the reason why no library can be opened. */
#define MPI_REASON_BYTES 1100

/** Functions of libtessera-mpi, under their own names without the prefix. */
typedef struct mpi_library {
    tsr_status (*job_create)(tsr_mpi_job **out);
    void (*job_destroy)(tsr_mpi_job *job);
    int (*job_rank)(const tsr_mpi_job *job);
    int (*job_size)(const tsr_mpi_job *job);
    tsr_status (*job_run)(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options);
    size_t (*version_print)(char *text, size_t capacity);
} mpi_library;

/** Opens the library for the MPI that TSR_MPI names (openmpi, mpich), else the one of the launcher
 * that started this process, else the first that can be opened. Returns false, with the reason, if
 * there is none; errno is then ENOMEM for a lack of memory, else 0. The library stays open. */
bool mpi_library_open(mpi_library *out, char reason[MPI_REASON_BYTES]);

/** tsr_mpi_job_create() of the library; an error of state also tells that TSR_MPI chose the
 * library. */
tsr_status mpi_library_create_job(const mpi_library *library, tsr_mpi_job **out);

/** The number of processes that a launcher started, and this process's rank among them, by the
 * environment; 0 without a launcher. */
int mpi_launched(void);
int mpi_launched_rank(void);

/** Bytes of the text of mpi_launch_advice(). */
enum { MPI_ADVICE_BYTES = 256 };

/** Writes what was launched and how to launch `wanted` ranks, where `joined` ranks were started. */
void mpi_launch_advice(int wanted, int joined, char advice[MPI_ADVICE_BYTES]);

#endif
