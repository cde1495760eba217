/** A message engine as somebody else would write it, from public headers alone: it lends rank threads' exchange, barrier and split. */
#ifndef TESTS_MESSAGE_ENGINE_H
#define TESTS_MESSAGE_ENGINE_H

#include <tessera/sys/comm.h>

/** tsr_threads_run() with every communicator behind this engine. */
tsr_status message_engine_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The same with the engine's own collectives. */
tsr_status message_engine_run_own(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** A communicator over `inner`, which it owns from then on; with the engine's own collectives if `own`. On failure `inner` stays the
 * caller's. */
tsr_status message_engine_wrap(tsr_comm *inner, int own, tsr_comm **out);

/** A handle's `self` and the table, for tests of tables. */
tsr_status message_engine_self(tsr_comm *inner, void **self);
void message_engine_release(void *self);
extern const tsr_comm_table message_engine_table;

#endif
