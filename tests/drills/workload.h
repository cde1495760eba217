/** A workload that calls nearly every public function that can fail. */
#ifndef TESTS_WORKLOAD_H
#define TESTS_WORKLOAD_H

#include "drill.h"

#include <tessera/context.h>

enum { WORKLOAD_RANKS = 3 };

/**
 * Calls the functions that plan, in this thread, then those that communicate, on three rank
 * threads, and frees all objects. A rank stops at its first failure. Returns the first failure, or
 * TSR_OK. Fails the drill if a call fails without a sentence, or with a status that a lack of
 * memory or threads does not explain. `context` NULL: makes one. `file` has at least 1,200 bytes.
 */
tsr_status workload_run(drill *d, tsr_context *context, const char *file);

#endif
