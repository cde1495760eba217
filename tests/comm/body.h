/** What every engine of the suites does with a rank's program. */
#ifndef TESSERA_TEST_BODY_H
#define TESSERA_TEST_BODY_H

#include <tessera/sys/comm.h>

/** Runs the program and ends the handle, which the program may have ended itself. Returns the program's status. */
static inline tsr_status run_body(tsr_rank_main *body, tsr_comm *comm, void *arg)
{
    tsr_comm_retain(comm);
    const tsr_status status = body(comm, arg);
    tsr_comm_destroy(comm);
    tsr_comm_release(comm);
    return status;
}

#endif
