/** Interrupts the threads of ranks by signals again and again, without SA_RESTART, so that waits
 * fail with EINTR. */
#ifndef TESTS_STORM_H
#define TESTS_STORM_H

#include <stdint.h>

/** The calling thread may be interrupted between storm_enter() and storm_leave(). */
void storm_enter(void);
void storm_leave(void);

/** Start and end the signals. Without them, storm_enter() and storm_leave() have no effect. */
void storm_begin(uint64_t seed);
void storm_end(void);

#endif
