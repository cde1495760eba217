/**
 * @file
 * MPI: communicators over MPI_Comm, in libtessera-mpi-ompi and libtessera-mpi-mpich, one library an
 * implementation. A rank is a process.
 *
 * Ranks of one node share memory: what tsr_comm_alloc() gives lies at the same address in all of
 * them, and plans read it in place, as among rank threads. Tensors in other memory are copied there
 * first, which each rank decides by itself at every execution: for that tsr_plan_prepare()
 * allocates room for the local source, and for the destination where peers write it, beside any
 * workspace and beyond max_workspace. Over several nodes plans send messages, which ranks of one
 * node copy from that memory where they lie there. Reductions that add up inside nodes first need
 * host memory, which prepare allocates too, likewise beyond max_workspace: up to 4 MiB, or 192
 * elements for each rank that reduces where that is more. The communicator keeps, for each set of
 * ranks, the largest room that a plan has asked for, until it is destroyed. Device memory is
 * refused: ranks with GPUs are NCCL's.
 *
 * MPI has to be initialized, at least MPI_THREAD_FUNNELED where the process has threads; calls of a
 * communicator come from the thread that MPI allows. MPI's calls are polled, and give up once
 * nothing has come for `timeout_ms`: then the communicator is broken. A call that gives up, for
 * whatever reason, first waits for transfers that both sides have begun, for two seconds at most,
 * and for ten within a node as long as the peer runs and copies. Then memory of the call is the
 * caller's again, but for what has not ended by then, because a rank is dead, stopped or cut off or
 * has given up at the same time: MPI may touch that until MPI_Finalize().
 *
 * Within a node a rank whose process has ended is named within a second by those who wait for it.
 * So are ranks that wait for one another in different communicators of one tsr_comm_from_mpi(), all
 * within a node, because they called in different orders: unless MPI was initialized for more than
 * one thread, where another thread may be about to call. Elsewhere a call waits until the timeout,
 * and tells the log after five seconds which ranks it waits for. Ranks of different nodes do not
 * see what the others wait for.
 *
 * A message of tsr_comm_exchange() that is not as long as its receiver expects is told to all ranks
 * where they share one node, and else to the receiver alone, in the same words: to tell all, every
 * exchange would have to wait for all ranks once more.
 *
 * A rank that aborts, or leaves while others go on, tells those on other nodes by messages.
 * tsr_comm_abort() sends them itself where its thread may call MPI: with MPI_THREAD_MULTIPLE, or in
 * the main thread where that alone may. Elsewhere the rank's next call does, or its end.
 */
#ifndef TESSERA_MPI_H
#define TESSERA_MPI_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of communicators over MPI. */
typedef struct tsr_mpi_options {
    size_t size;          /**< sizeof(tsr_mpi_options) */
    tsr_context *context; /**< retained; NULL: defaults */
    int64_t timeout_ms;   /**< how long a call waits while nothing comes from its peers; 0: for
                               ever. TSR_TIMEOUT_MS overrides */
    int no_split;         /**< 1: it is lent and may not be split, so that plans make do without
                               groups */
    int unchecked;        /**< 1: executions by messages compare nothing (TSR_COMM_UNCHECKED in
                               tessera/sys/comm.h) */
    int no_sharing;       /**< 1: messages within a node too */
    int64_t chunk_bytes;  /**< longer messages travel in pieces of so many bytes; 0: 2^30, more
                               is not possible */
} tsr_mpi_options;

/** Ten minutes. */
#define TSR_MPI_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(tsr_mpi_options), 0, 600000, 0, 0, 0, 0                                             \
    }

#ifdef MPI_VERSION
/**
 * Declared where <mpi.h> was included before. Collective: duplicates `comm`, an intra-communicator,
 * which is not used afterwards and keeps its error handler; `*out` is destroyed before
 * MPI_Finalize(). MPI is never initialized nor finalized here. `options` may be NULL. A duplicate
 * that broke, or whose ranks destroy `*out` more than a tenth of a second apart, is left to
 * MPI_Finalize(), which then waits for the others for a second at most, and its number stays in
 * use; MPICH has about two thousand. TSR_ERROR_STATE: MPI is not initialized, or is finalized, or
 * this is not the thread that may call it; or the MPI that answers is not the one this library is
 * for; or the launcher of another MPI started several processes, of which MPI knows this one alone.
 * TSR_ERROR_ARGUMENT, on this rank alone: MPI_COMM_NULL, an inter-communicator, an option out of
 * range.
 */
TSR_API tsr_status tsr_comm_from_mpi(MPI_Comm comm, const tsr_mpi_options *options, tsr_comm **out);
#endif

/** For programs that have nothing of MPI but a launcher (`mpirun -n 4 program`). */
typedef struct tsr_mpi_job tsr_mpi_job;

/** Initializes MPI with MPI_THREAD_FUNNELED, unless that was done; a program that no launcher
 * started is a job of one rank. The caller frees `*out` with tsr_mpi_job_destroy(). Errors as for
 * tsr_comm_from_mpi(). */
TSR_API tsr_status tsr_mpi_job_create(tsr_mpi_job **out);

/** Finalizes MPI if the job had initialized it, but not where a peer was lost, for whom that would
 * wait: then the launcher ends the job when the process ends. NULL is fine. */
TSR_API void tsr_mpi_job_destroy(tsr_mpi_job *job);

TSR_API int tsr_mpi_job_rank(const tsr_mpi_job *job); /**< this process */
TSR_API int tsr_mpi_job_size(const tsr_mpi_job *job); /**< how many were launched */

/** What this library's MPI calls itself ("Open MPI v4.1.4, .."), in the manner of snprintf():
 * returns the length of the whole text. Before MPI is initialized too. */
TSR_API size_t tsr_mpi_version_print(char *text, size_t capacity);

/**
 * Collective: runs `main` on every rank of the job, with a communicator that lives for the call of
 * main. Returns TSR_OK if all did, else on every rank the status of the lowest that failed for a
 * reason of its own (not TSR_ERROR_PEER), with its rank and its sentence ("returned io without a
 * sentence" where main set none). A rank that does not come to the end within the timeout is
 * TSR_ERROR_PEER. Where this rank has lost a peer already it waits a second at most for the others,
 * and then returns the failure that main returned; where main coped with the loss, and returned
 * TSR_OK, it returns TSR_ERROR_PEER, which names the ranks that did not come. A rank that comes
 * later gets what its own main returned if that is a failure, else TSR_ERROR_PEER, which names the
 * rank that went on after a loss. A rank that is struck while main's communicator is made is named.
 * A rank that never came to this call, or is struck at its very beginning, is not named, for MPI's
 * collectives do not tell which rank is missing. `options` may be NULL. TSR_ERROR_STATE: a rank was
 * lost in an earlier run.
 */
TSR_API tsr_status tsr_mpi_job_run(tsr_mpi_job *job, tsr_rank_main *main, void *arg,
                                   const tsr_mpi_options *options);

#ifdef __cplusplus
}
#endif

#endif
