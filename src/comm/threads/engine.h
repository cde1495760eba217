/** Rank threads as an engine: the operation table and the handles over it. */
#ifndef TSR_COMM_THREADS_ENGINE_H
#define TSR_COMM_THREADS_ENGINE_H

#include "comm/threads/world.h"

/** A world with its handles, handles[0..nranks), in an array from the context's memory: the caller destroys the handles and releases the
 * array. Checks its arguments, in the words of `call`. */
tsr_status tsr_threads_create(const char *call, int nranks, const tsr_threads_options *options, bool watched, tsr_comm ***handles);

/** The calling thread is the rank of `comm`, a handle made by tsr_threads_create(). */
void tsr_threads_seat(tsr_comm *comm);

#endif
