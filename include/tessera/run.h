/**
 * @file
 * One program for every launcher. By itself its ranks are threads; under an mpirun or srun they are
 * the processes that this started. Nothing of MPI is linked: the library of the launcher's MPI,
 * libtessera-mpi-ompi or libtessera-mpi-mpich, is opened at run time.
 *
 * @par A main function
 * A failed run returns the same status, with the same sentence, to every process. So each process
 * exits with its own status, and one of them can say why:
 *
 *     int main(int argc, char **argv)
 *     {
 *         const tsr_status status = tsr_run(argc, argv, rank_main, NULL);
 *         if (status != TSR_OK && tsr_launch_get().rank == 0)
 *             fprintf(stderr, "%s: %s\n", tsr_status_name(status), tsr_status_message());
 *         return status != TSR_OK;
 *     }
 *
 * @par Launchers
 * Launchers are recognized by the environment variables that they set: OMPI_COMM_WORLD_SIZE and
 * OMPI_COMM_WORLD_RANK (Open MPI's mpirun); PMI_SIZE and PMI_RANK (the mpirun of MPICH and of its
 * descendants, srun --mpi=pmi2); SLURM_STEP_NUM_TASKS and PMIX_RANK (srun --mpi=pmix). Under plain
 * srun of several tasks (SLURM_STEP_NUM_TASKS and SLURM_PROCID alone) every task would be a job of
 * its own, so runs are refused with a sentence that says how to start them. A step of one task, and
 * a batch script (SLURM_NTASKS alone), is not launched.
 *
 * @par The MPI
 * It is the one that TSR_MPI or options.mpi names, else the launcher's; under srun --mpi=pmix, and
 * where nothing launched the program, the first that can be opened of Open MPI and MPICH. Its
 * library is looked for in LD_LIBRARY_PATH, then beside libtessera-core, then where the loader
 * looks. It stays open. A program that is linked with libtessera-core.a has a copy of the library
 * of its own, which the MPI's library does not know: it is refused.
 */
#ifndef TESSERA_RUN_H
#define TESSERA_RUN_H

#include <tessera/comm.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the launcher's environment variables say of this process. */
typedef struct tsr_launch {
    const char *launcher; /**< "Open MPI", "MPICH" (also others that set PMI_SIZE) or "Slurm";
                               static text; NULL: this process was not launched */
    int rank;             /**< this process's rank; 0 if it was not launched */
    int ranks;            /**< how many processes were launched; 0 if this one was not */
} tsr_launch;

/** How this process was launched. Opens and initializes nothing, so that a program can know before
 * its run whether it is the one to print. Any thread; does not communicate. */
TSR_API tsr_launch tsr_launch_get(void);

/** Options of a program's ranks. */
typedef struct tsr_run_options {
    size_t size;          /**< sizeof(tsr_run_options) */
    tsr_context *context; /**< retained; NULL: defaults. Its environment overrides the fields below;
                               launchers' variables are always those of the process */
    const char *engine; /**< "threads": rank threads, whatever the launcher; "mpi": this process is
                             a rank of MPI, of a job of one where nothing launched it; NULL: mpi
                             under a launcher, else threads */
    const char *mpi;    /**< "openmpi" or "mpich"; NULL: the launcher's. TSR_MPI overrides it */
    int ranks;          /**< how many rank threads; 0: one for each processor that the process may
                             use. A launcher decides itself. TSR_RANKS overrides it */
    int64_t timeout_ms; /**< how long a call waits for its peers; 0: for ever; -1: ten minutes over
                             MPI, for ever among threads. TSR_TIMEOUT_MS overrides it */
} tsr_run_options;

/** Everything by the launcher and the environment. */
#define TSR_RUN_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(tsr_run_options), TSR_NULL, TSR_NULL, TSR_NULL, 0, -1                               \
    }

/**
 * Runs `main` on every rank, with a communicator that lives for the call of main: on threads of
 * this process, or on this process, which is one rank of the job that a launcher started. Then
 * collective. `argc` and `argv`, those of the program's main(), are handed to MPI; 0 and NULL are
 * fine.
 *
 * Returns TSR_OK if all ranks did, else what tsr_threads_run() or tsr_mpi_job_run() would: the
 * status of a rank that failed for a reason of its own, with its number and sentence.
 *
 * MPI is initialized and finalized by the call, unless the program has initialized it before. Since
 * MPI can be initialized only once, a program that runs several times makes a tsr_job.
 *
 * Errors, after which no rank of this process has run: TSR_ERROR_ARGUMENT: main is NULL, or an
 * option is out of range. TSR_ERROR_UNAVAILABLE: the MPI's library cannot be opened.
 * TSR_ERROR_STATE: srun started several tasks without a PMI; MPI is finalized; the MPI that was
 * opened finds one process where the launcher started several. TSR_ERROR_MEMORY: there are too few
 * threads or too little memory.
 */
TSR_API tsr_status tsr_run(int argc, char **argv, tsr_rank_main *main, void *arg);

/** tsr_run() with options; NULL: the defaults. */
TSR_API tsr_status tsr_run_with(int argc, char **argv, tsr_rank_main *main, void *arg,
                                const tsr_run_options *options);

/** The ranks of a program that runs them several times. */
typedef struct tsr_job tsr_job;

/** Decides where ranks run, and initializes MPI if they are processes. The caller frees `*out` with
 * tsr_job_destroy(). Errors as of tsr_run(); a process that gets one alone is alone in knowing it,
 * so print the sentence in every process. */
TSR_API tsr_status tsr_job_create(int argc, char **argv, const tsr_run_options *options,
                                  tsr_job **out);

/** Finalizes MPI if the job had initialized it; no job after it can then be made of processes. NULL
 * is fine. */
TSR_API void tsr_job_destroy(tsr_job *job);

TSR_API const char *tsr_job_engine(const tsr_job *job); /**< "threads" or "mpi"; static text */
TSR_API int tsr_job_rank(const tsr_job *job); /**< this process's rank; 0 if ranks are threads */
TSR_API int tsr_job_size(const tsr_job *job); /**< the number of ranks */

/** Runs `main` on every rank, as tsr_run() does. Collective over the processes of the job; one run
 * at a time. TSR_ERROR_STATE: a rank was lost in an earlier run. */
TSR_API tsr_status tsr_job_run(tsr_job *job, tsr_rank_main *main, void *arg);

/**
 * Prints the name and version of the MPI that a job of processes would use ("Open MPI v4.1.4, .."),
 * like snprintf(): cut at `capacity` bytes, NUL included. Opens its library and initializes
 * nothing. `options` may be NULL; of them `context` and `mpi` count. TSR_ERROR_UNAVAILABLE: the
 * library cannot be opened.
 */
TSR_API tsr_status tsr_job_mpi_version(const tsr_run_options *options, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
