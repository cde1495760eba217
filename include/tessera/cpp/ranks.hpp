/**
 * @file
 * For tessera.hpp: programs of ranks, which may throw.
 */
#ifndef TESSERA_CPP_RANKS_HPP
#define TESSERA_CPP_RANKS_HPP

#include <tessera/cpp/comm.hpp>
#include <tessera/sys/status.h>

#include <exception>
#include <mutex>
#include <new>
#include <type_traits>

namespace tessera
{

namespace detail
{

/** The status that the exception in hand becomes on its rank, with its sentence. */
inline tsr_status caught()
{
    try {
        throw;
    } catch (const error &failure) {
        return tsr_status_set(failure.status() != TSR_OK ? failure.status() : TSR_ERROR_STATE, "%s",
                              failure.what());
    } catch (const std::bad_alloc &failure) {
        return tsr_status_set(TSR_ERROR_MEMORY, "%s", failure.what());
    } catch (const std::exception &failure) {
        return tsr_status_set(TSR_ERROR_STATE, "%s", failure.what());
    } catch (...) {
        return tsr_status_set(TSR_ERROR_STATE, "an exception that is no std::exception");
    }
}

/** Calls `main` as a rank's program. pthread_exit() and cancellation unwind the thread as if by a
 * foreign exception: it is passed on. */
template <typename Main> tsr_status call_rank(Main &main, comm_ref comm, std::exception_ptr &kept)
{
    try {
        if constexpr (std::is_same_v<decltype(main(comm)), tsr_status>) {
            return main(comm);
        } else {
            main(comm);
            return TSR_OK;
        }
    } catch (...) {
        kept = std::current_exception();
        if (!kept)
            throw;
        return caught();
    }
}

/** What the ranks of one process share while they run. */
template <typename Main> struct run {
    explicit run(Main &rank_main) : main(rank_main) {}
    Main &main;
    std::mutex lock;
    std::exception_ptr first; /**< of a rank that failed for a reason of its own */

    static tsr_status call(tsr_comm *comm, void *arg)
    {
        run &self = *static_cast<run *>(arg);
        std::exception_ptr kept;
        const tsr_status status = call_rank(self.main, comm, kept);
        if (status != TSR_OK && status != TSR_ERROR_PEER) {
            const std::lock_guard<std::mutex> guard(self.lock);
            if (!self.failed) {
                self.failed = true;
                self.first = kept;
            }
        }
        return status;
    }
    /** Throws what made the run fail: the first exception of a type that is not this header's, else
     * an error with the sentence that names the rank. */
    void rethrow(tsr_status status) const
    {
        if (first) {
            try {
                std::rethrow_exception(first);
            } catch (const error &) {
                check(status);
            }
        }
        check(status);
    }

  private:
    bool failed = false;
};

} // namespace detail

/**
 * Runs `main(comm_ref)` on `nranks` ranks, each on a thread of its own, as tsr_threads_run() does.
 * It returns nothing or a tsr_status, and may throw: the rank then leaves, its peers fail instead
 * of waiting for it, and when all ranks have returned this call throws. It throws a tessera::error
 * with the number and the sentence of the rank that failed first for a reason of its own; or that
 * rank's own exception, if it is of another type.
 */
template <typename Main>
void threads_run(int nranks, Main &&main, const tsr_threads_options *options = nullptr)
{
    detail::run<std::remove_reference_t<Main>> shared_by_ranks(main);
    shared_by_ranks.rethrow(
        tsr_threads_run(nranks, decltype(shared_by_ranks)::call, &shared_by_ranks, options));
}

/**
 * A tsr_rank_main for C calls that run one, such as tsr_mpi_job_run(): `arg` points to a callable
 * of type Main, which is called with a comm_ref as threads_run() does. An exception becomes the
 * rank's status and sentence: that of a tessera::error, TSR_ERROR_MEMORY for std::bad_alloc,
 * TSR_ERROR_STATE with what() for others.
 */
template <typename Main> tsr_status rank_main(tsr_comm *comm, void *arg)
{
    std::exception_ptr kept;
    return detail::call_rank(*static_cast<Main *>(arg), comm, kept);
}

} // namespace tessera

#endif
