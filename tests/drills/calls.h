/** Collective calls for drills about failing ranks. */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include <tessera/comm.h>

#include <stdint.h>

enum { CALLS = 7 };

/** Makes call number `which`, from 0 to CALLS - 1, and destroys its objects. A wrong result is
 * TSR_ERROR_INTERNAL, which no drill allows. */
tsr_status make_call(tsr_comm *comm, int64_t which);

#endif
