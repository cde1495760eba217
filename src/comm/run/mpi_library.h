/** libtessera-mpi, the build for Open MPI or that for MPICH, opened at run time: the launcher
 * decides which one fits. */
#ifndef TSR_COMM_RUN_MPI_LIBRARY_H
#define TSR_COMM_RUN_MPI_LIBRARY_H

#include <tessera/mpi.h>
#include <tessera/run.h>

/** Functions of libtessera-mpi, under their own names without the prefix. */
typedef struct tsr_mpi_library {
    tsr_status (*job_create)(int argc, char **argv, tsr_mpi_job **out);
    void (*job_destroy)(tsr_mpi_job *job);
    int (*job_rank)(const tsr_mpi_job *job);
    int (*job_size)(const tsr_mpi_job *job);
    tsr_status (*job_run)(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options);
    size_t (*version_print)(char *text, size_t capacity);
} tsr_mpi_library;

/** An MPI that a user has named. */
typedef struct tsr_mpi_wish {
    const char *source; /**< TSR_MPI, or the option, for sentences; NULL: none is named */
    const char *mpi;    /**< static text, by tsr_environment_mpi() */
} tsr_mpi_wish;

/** Opens the library for the MPI that the user names, else for the launcher's, else the first
 * that can be opened. It stays open. TSR_ERROR_UNAVAILABLE: there is none, with the reason. */
tsr_status tsr_mpi_library_open(const tsr_mpi_wish *wish, tsr_mpi_library *out);

/** tsr_mpi_job_create_with() of the library; an error of state also tells that the user's wish
 * chose the library. */
tsr_status tsr_mpi_library_create_job(const tsr_mpi_library *library, const tsr_mpi_wish *wish, int argc, char **argv,
                                      tsr_mpi_job **out);

#endif
