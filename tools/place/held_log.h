/**
 * The library's log, in a program that tells its own failures.
 *
 * Lines of level error are about what breaks a communicator, and about ranks that wait long. The
 * first end in a failure that the program tells in one line of its own, so that they would say the
 * same twice: each line is held for three seconds, and printed, as `tessera: LINE`, only if the program
 * still runs by then and has told nothing. Where TSR_LOG is set the log is the library's own, at
 * once.
 */
#ifndef TESSERA_TOOLS_PLACE_HELD_LOG_H
#define TESSERA_TOOLS_PLACE_HELD_LOG_H

#include <tessera/context.h>

/** Keeps standard error for the log, also where the program gives its own up later: of the
 * processes of a launcher one tells failures, and each what it waits for. Once, first of all. */
void held_log_begin(void);

/** A context with this log; the caller gives it back. Errors as of tsr_context_create(). Any
 * thread. */
tsr_status held_log_context(tsr_context **out);

/** The program tells a failure: what is held is not printed. Any thread. */
void held_log_drop(void);

#endif
