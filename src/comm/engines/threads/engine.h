/** Rank threads as an engine: the operation table and the handles over it. */
#ifndef TSR_COMM_ENGINES_THREADS_ENGINE_H
#define TSR_COMM_ENGINES_THREADS_ENGINE_H

#include "comm/engines/threads/world.h"

/** Checks the arguments of `call`. `*out` becomes the options with defaults, overridden by the
 * environment, and with a context that the caller destroys. */
tsr_status tsr_threads_decide(const char *call, int nranks, const tsr_threads_options *given, tsr_threads_options *out);

/** Makes a world and one handle per rank, handles[0..nranks), in an array from the context's
 * memory: the caller destroys the handles and releases the array. `options` are those of
 * tsr_threads_decide(); `watched` as in tsr_world_create(). */
tsr_status tsr_threads_create(int nranks, const tsr_threads_options *options, bool watched, tsr_comm ***handles);

/** tsr_world_seat() for the rank of `comm`, a handle made by tsr_threads_create(). Returns its
 * world. */
tsr_world *tsr_threads_seat(tsr_comm *comm);

#endif
