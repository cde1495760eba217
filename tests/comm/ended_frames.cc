/* Frames of C++ through which a rank's thread ends: their objects go, those that hold communicators
 * too. */
#include "ended_frames.h"

#include <atomic>
#include <pthread.h>
#include <stdexcept>

namespace
{

std::atomic<int> gone{0};

struct group {
    tsr_comm *comm = nullptr;

    ~group()
    {
        tsr_comm_destroy(comm);
        gone++;
    }
};

tsr_status split_and_throw(tsr_comm *comm, group *made)
{
    const tsr_status status = tsr_comm_split(comm, 0, 0, &made->comm);
    if (status != TSR_OK)
        return status;
    throw std::runtime_error("caught by the caller");
}

tsr_status work(tsr_comm *comm, bool cancelled)
{
    group made;
    try {
        return split_and_throw(comm, &made);
    } catch (const std::runtime_error &) {
        if (tsr_comm_rank(comm) != 1)
            return tsr_comm_barrier(made.comm);
    }
    if (!cancelled)
        pthread_exit(nullptr);
    pthread_cancel(pthread_self());
    const tsr_status status = tsr_comm_barrier(made.comm);
    pthread_testcancel(); /* whoever comes last does not wait */
    return status;
}

} // namespace

tsr_status ended_frames_main(tsr_comm *comm, void *arg)
{
    return work(comm, *static_cast<int *>(arg) != 0);
}

int ended_frames_gone(void)
{
    return gone;
}
