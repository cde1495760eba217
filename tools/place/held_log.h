/**
 * The library's log, in a program that reports its own failures.
 *
 * The library logs, at level error, what breaks a communicator and which ranks wait long. A broken
 * communicator ends in a failure that the program reports itself, so its line would repeat that.
 * Hence each line is held for three seconds, and printed as `tessera: LINE` only if the program
 * still runs then and has reported no failure. Where TSR_LOG is set the library logs by itself, at
 * once.
 */
#ifndef TESSERA_TOOLS_PLACE_HELD_LOG_H
#define TESSERA_TOOLS_PLACE_HELD_LOG_H

#include <tessera/context.h>

/** Keeps a duplicate of standard error for the log. Under a launcher only rank 0 reports failures,
 * and the others redirect standard error to /dev/null, but every rank logs. Call once, first of
 * all. */
void held_log_begin(void);

/** A context with this log, which the caller destroys. Errors as of tsr_context_create(). Any
 * thread. */
tsr_status held_log_context(tsr_context **out);

/** Drops the lines held, since the program reports a failure. Any thread. */
void held_log_drop(void);

#endif
