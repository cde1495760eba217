/** One call of nearly every public entry point that can fail. */
#ifndef TESTS_WORKLOAD_H
#define TESTS_WORKLOAD_H

#include "drill.h"
#include <tessera/context.h>

enum { WORKLOAD_RANKS = 3 };

/**
 * Calls what plans, in this thread, then what communicates, on three rank threads, and frees all that it made. A rank goes on until a call
 * fails. Returns the first failure, or TSR_OK. Fails the drill where a call fails without a sentence, or with a status that no missing
 * memory or thread explains. `context` NULL: one is made. `file` holds at least 1,200 bytes.
 */
tsr_status workload_run(drill *d, tsr_context *context, const char *file);

#endif
