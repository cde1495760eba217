/**
 * @file
 * MPI: communicators over MPI_Comm, in libtessera-mpi-ompi and libtessera-mpi-mpich, one library
 * per implementation. A rank is a process.
 *
 * @par Memory
 * Ranks of one node share memory: what tsr_comm_alloc() returns lies at the same address in all of
 * them, and plans read it in place, as among rank threads. Tensors in other memory are copied there
 * first; each rank decides this by itself at every execution. For these copies tsr_plan_prepare()
 * allocates room for the local source, and for the destination if peers write it, beside any
 * workspace and beyond max_workspace. Over several nodes plans send messages; ranks of one node
 * copy them from shared memory where they lie there. Device memory is refused: ranks with GPUs use
 * NCCL.
 *
 * @par Reductions inside nodes
 * Reductions that add up inside nodes first need host memory, which tsr_plan_prepare() also
 * allocates beyond max_workspace: up to 4 MiB, or 192 elements for each rank that reduces where
 * that is more. The communicator keeps, for each set of ranks, the largest room that a plan has
 * asked for, until it is destroyed.
 *
 * @par Threads and timeouts
 * MPI must be initialized, with at least MPI_THREAD_FUNNELED if the process has threads. Calls of a
 * communicator come from the thread that MPI allows. MPI's calls are polled; if nothing comes for
 * `timeout_ms` they give up, and the communicator is broken. A call that gives up, for any reason,
 * first waits for transfers that both sides have begun: for at most two seconds, and within a node
 * for at most ten while the peer runs and copies. Then the call's memory is the caller's again,
 * except for transfers that have still not ended because a rank is dead, stopped, cut off or gave
 * up at the same time: MPI may touch their memory until MPI_Finalize().
 *
 * @par Lost and late ranks
 * Within a node, a rank whose process has ended is named within a second by the ranks that wait for
 * it. So are ranks of one node that wait for one another in different communicators of one
 * tsr_comm_from_mpi(), because they called in different orders; but not if MPI was initialized for
 * more than one thread, where another thread may be about to call. Elsewhere a call waits until the
 * timeout, and after five seconds tells the log which ranks it waits for. Ranks of different nodes
 * do not see what the others wait for.
 *
 * @par Errors in exchanges
 * If a message of tsr_comm_exchange() is not as long as its receiver expects, all ranks are told
 * where they share one node. Otherwise only the receiver is told, in the same words: to tell all,
 * every exchange would have to wait for all ranks once more.
 *
 * @par Aborts
 * A rank that aborts, or leaves while others go on, tells ranks on other nodes by messages.
 * tsr_comm_abort() sends these messages itself if its thread may call MPI at any time: every thread
 * with MPI_THREAD_MULTIPLE, only the main thread with MPI_THREAD_FUNNELED or less, and none with
 * MPI_THREAD_SERIALIZED. Elsewhere the messages go out with the rank's next call, or at its end.
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
                               ever. TSR_TIMEOUT_MS overrides it */
    int no_split;         /**< 1: the communicator is lent and may not be split; plans then do
                               without groups */
    int unchecked;        /**< 1: executions by messages compare nothing (TSR_COMM_UNCHECKED in
                               tessera/sys/comm.h) */
    int no_sharing;       /**< 1: ranks of one node use messages too */
    int64_t chunk_bytes;  /**< longer messages travel in pieces of at most this many bytes; 0:
                               2^30, which is also the most */
} tsr_mpi_options;

/** A timeout of ten minutes; everything else off. */
#define TSR_MPI_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(tsr_mpi_options), TSR_NULL, 600000, 0, 0, 0, 0                                      \
    }

/**
 * tsr_comm_from_mpi() for programs that do not know the type MPI_Comm, such as bindings: `comm`
 * points to an MPI_Comm of `bytes` bytes, which is read during the call. Collective.
 * TSR_ERROR_ARGUMENT: an MPI_Comm of this library's MPI has another size (the program was compiled
 * for another MPI), or `comm` is NULL; else as for tsr_comm_from_mpi().
 */
TSR_API tsr_status tsr_comm_from_mpi_handle(const void *comm, size_t bytes,
                                            const tsr_mpi_options *options, tsr_comm **out);

#ifdef MPI_VERSION
/**
 * A communicator over a duplicate of `comm`, an intra-communicator, which is not used afterwards
 * and keeps its error handler. Collective. `options` may be NULL. The caller destroys `*out` before
 * MPI_Finalize(). This library's communicators never initialize or finalize MPI.
 *
 * <mpi.h> may be included before or after this header. Where it comes after, this is a macro in C
 * and a template in C++, over tsr_comm_from_mpi_handle().
 *
 * A duplicate that broke, or whose ranks destroy `*out` more than a tenth of a second apart, is
 * left to MPI_Finalize(), which then waits at most a second for the others. Its number stays in
 * use; MPICH has about two thousand numbers.
 *
 * TSR_ERROR_STATE: MPI is not initialized, or is finalized; this is not the thread that may call
 * it; the MPI in use is not the one that this library is for; or the launcher of another MPI
 * started several processes, of which MPI knows only this one. TSR_ERROR_ARGUMENT, on this rank
 * alone: MPI_COMM_NULL, an inter-communicator, an option out of range.
 */
TSR_API tsr_status tsr_comm_from_mpi(MPI_Comm comm, const tsr_mpi_options *options, tsr_comm **out);
#elif defined(__cplusplus)
extern "C++" {
template <typename Comm>
inline tsr_status tsr_comm_from_mpi(Comm comm, const tsr_mpi_options *options, tsr_comm **out)
{
    return tsr_comm_from_mpi_handle(&comm, sizeof comm, options, out);
}
}
#else
#define tsr_comm_from_mpi(comm, options, out)                                                      \
    tsr_comm_from_mpi_handle(&(MPI_Comm){(comm)}, sizeof(MPI_Comm), options, out)
#endif

/** A launched program (`mpirun -n 4 program`), for programs that link this library but do not use
 * MPI themselves. tsr_run() of tessera/run.h does without linking it, and with any launcher. */
typedef struct tsr_mpi_job tsr_mpi_job;

/** Initializes MPI with MPI_THREAD_FUNNELED, unless it is initialized already. Without a launcher
 * the program is a job of one rank. The caller frees `*out` with tsr_mpi_job_destroy(). Errors as
 * for tsr_comm_from_mpi(). */
TSR_API tsr_status tsr_mpi_job_create(tsr_mpi_job **out);

/** tsr_mpi_job_create() with the arguments of the program's main(), for an MPI that reads them. */
TSR_API tsr_status tsr_mpi_job_create_with(int argc, char **argv, tsr_mpi_job **out);

/** Finalizes MPI if the job had initialized it. If a peer was lost it does not, for MPI_Finalize()
 * would wait for that peer; the launcher then ends the job when the process ends. NULL is fine. */
TSR_API void tsr_mpi_job_destroy(tsr_mpi_job *job);

TSR_API int tsr_mpi_job_rank(const tsr_mpi_job *job); /**< this process's rank */
TSR_API int tsr_mpi_job_size(const tsr_mpi_job *job); /**< the number of launched processes */

/** The name and version of this library's MPI ("Open MPI v4.1.4, .."), like snprintf(): returns the
 * length of the whole text. Works before MPI is initialized too. */
TSR_API size_t tsr_mpi_version_print(char *text, size_t capacity);

/**
 * Collective: runs `main` on every rank of the job, with a communicator that lives for the call of
 * main. `options` may be NULL.
 *
 * Returns TSR_OK if all ranks did. Otherwise every rank gets the status of the lowest rank that
 * failed for a reason of its own (not TSR_ERROR_PEER), with that rank's number and sentence
 * ("returned io without a sentence" where main set none). TSR_ERROR_STATE: a rank was lost in an
 * earlier run.
 *
 * @par Ranks that do not come to the end
 * TSR_ERROR_PEER: a rank did not come to the end within the timeout. If this rank has already lost
 * a peer, it waits at most a second for the others. Then it returns the failure that main returned;
 * if main coped with the loss and returned TSR_OK, it returns TSR_ERROR_PEER, which names the ranks
 * that did not come. A rank that comes later returns its own main's failure, if any, else
 * TSR_ERROR_PEER, which names the rank that went on after a loss.
 *
 * @par Which ranks are named
 * A rank that dies or hangs while main's communicator is made is named. A rank that never came to
 * this call, or dies or hangs at its very beginning, is not: MPI's collectives do not tell which
 * rank is missing.
 */
TSR_API tsr_status tsr_mpi_job_run(tsr_mpi_job *job, tsr_rank_main *main, void *arg,
                                   const tsr_mpi_options *options);

#ifdef __cplusplus
}
#endif

#endif
