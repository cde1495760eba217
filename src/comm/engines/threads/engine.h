/** Rank threads as an engine: the operation table and the handles over it. */
#ifndef TSR_COMM_ENGINES_THREADS_ENGINE_H
#define TSR_COMM_ENGINES_THREADS_ENGINE_H

#include "comm/engines/threads/world.h"

/** Checks what `call` was given. `out`: all options, as the environment has them, with a context that the caller destroys. */
tsr_status tsr_threads_decide(const char *call, int nranks, const tsr_threads_options *given, tsr_threads_options *out);

/** A world with its handles, handles[0..nranks), in an array from the context's memory: the caller destroys the handles and releases the
 * array. `options` are those of tsr_threads_decide(). */
tsr_status tsr_threads_create(int nranks, const tsr_threads_options *options, bool watched, tsr_comm ***handles);

/** The calling thread is the rank of `comm`, a handle made by tsr_threads_create(), in the world that is returned: see
 * tsr_world_seat(). */
tsr_world *tsr_threads_seat(tsr_comm *comm);

#endif
