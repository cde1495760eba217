/** Runs a rank's program, in every engine of the suites. */
#ifndef TESSERA_TEST_BODY_H
#define TESSERA_TEST_BODY_H

#include <tessera/sys/comm.h>

/** Runs the program and destroys the handle, which the program may have destroyed itself. Returns
 * the program's status. */
static inline tsr_status run_body(tsr_rank_main *body, tsr_comm *comm, void *arg)
{
    tsr_comm_retain(comm);
    const tsr_status status = body(comm, arg);
    tsr_comm_destroy(comm);
    tsr_comm_release(comm);
    return status;
}

#endif
