/** How a rank that waits for others looks for them, before it sleeps. */
#ifndef TSR_COMM_CORE_PATIENCE_H
#define TSR_COMM_CORE_PATIENCE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/** Looks of a rank with a core to itself, each of some ten nanoseconds: long enough for the peer's part of a layer, short against a time
 * slice. Of one that shares its core with those for whom it waits each look gives the core to somebody else. */
#define TSR_LOOKS_ALONE   20000
#define TSR_LOOKS_CROWDED 20

/** So many looks without a system call; after each further such number the processor is offered to others, who may be busy with our own
 * peers. */
#define TSR_LOOKS_BETWEEN_YIELDS 32

static inline void tsr_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/** Whether there is nothing more to wait for. */
typedef bool tsr_is_over(void *arg);

/** Looks up to `looks` times; true as soon as there is no need to sleep. */
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
