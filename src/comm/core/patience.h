/** How a rank that waits for peers polls before it sleeps. */
#ifndef TSR_COMM_CORE_PATIENCE_H
#define TSR_COMM_CORE_PATIENCE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/** Number of polls before a rank sleeps. With a core to itself, a poll takes some ten nanoseconds:
 * together long enough for a peer's part of a layer, short against a time slice. A rank that shares
 * its core with peers yields the core at each poll. */
#define TSR_LOOKS_ALONE   20000
#define TSR_LOOKS_CROWDED 20

/** A rank with a core to itself yields it after each run of this many polls: a peer may be waiting
 * for it. */
#define TSR_LOOKS_BETWEEN_YIELDS 32

static inline void tsr_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/** Returns true if there is nothing to wait for any more. */
typedef bool tsr_is_over(void *arg);

/** Polls up to `looks` times. Returns true as soon as `is_over` does, false if it never did.
 * `crowded`: ranks share cores. */
static inline bool tsr_look(int64_t looks, bool crowded, tsr_is_over *is_over, void *arg)
{
    const int64_t between = crowded ? 1 : TSR_LOOKS_BETWEEN_YIELDS;
    for (int64_t look = 1; look <= looks; look++) {
        if (is_over(arg))
            return true;
        if (look % between == 0)
            sched_yield();
        else
            tsr_relax();
    }
    return false;
}

#endif
