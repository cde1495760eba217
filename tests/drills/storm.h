/** Signals in the midst of calls: every rank's thread is interrupted again and again, without SA_RESTART, so that waits see EINTR. */
#ifndef TESTS_STORM_H
#define TESTS_STORM_H

#include <stdint.h>

/** Threads may be hit from storm_enter() until storm_leave(). */
void storm_enter(void);
void storm_leave(void);

/** Starts and ends the storm. Without one, storm_enter() and storm_leave() do nothing that matters. */
void storm_begin(uint64_t seed);
void storm_end(void);

#endif
