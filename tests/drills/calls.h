/** Calls that ranks make together, in drills of what happens to ranks. */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include <stdint.h>
#include <tessera/comm.h>

enum { CALLS = 7 };

/** Call number `which`, 0 to CALLS - 1. What it makes it destroys. A result that is wrong is TSR_ERROR_INTERNAL, which no drill allows. */
tsr_status make_call(tsr_comm *comm, int64_t which);

#endif
