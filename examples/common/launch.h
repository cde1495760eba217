/** How a program begins and ends whose ranks are threads, or processes where a launcher started
 * several. */
#ifndef EXAMPLE_LAUNCH_H
#define EXAMPLE_LAUNCH_H

#include <tessera/run.h>

#include <stdbool.h>

/** The first call of main(): of processes the first speaks for all. False: the others cannot be
 * silenced. */
bool example_begin(void);

/** Runs `main` on `ranks` ranks, or on as many as tsr_run() finds if that is 0. Prints an error
 * behind the program's `name`. Returns the exit status, 0 or 1. */
int example_run(const char *name, int argc, char **argv, int ranks, tsr_rank_main *main, void *arg);

#endif
